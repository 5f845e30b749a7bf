"""A made class of six to rehearse with: ``vitedu grade --example``.

Role: ``write_class`` writes six notebooks with what an instructor meets: full points, recognised
mistakes, stubs, an answer that is no Python, and a file that ends in the middle.
"""

from pathlib import Path

import nbformat

from vitedu.checks.writing.checker import find_checker
from vitedu.checks.writing.mistakes import Mistake, apply_edits, bare_source
from vitedu.course.notebooks import exercise_cells, read, solve_notebook
from vitedu.course.workspace import find_sources
from vitedu.exercises import in_notebook

NOTEBOOK = "01_patches"
STUB, TYPING_ERROR = "stub", "typing error"
LEFT = dict.fromkeys(("unpatchify", "linear_from_conv", "sincos_positions_2d", "stem_tokens"), STUB)
PATCHES_ONLY = {"add_class_token_and_positions": "positions_on_patches_only"}
# student -> exercise -> id of a known mistake, or another way to go wrong; the rest is right
STUDENTS: dict[str, dict[str, str]] = {
    "anna": {},
    "ben": {"patchify": "reshape_only", "tokens_at_224": "no_class_token"},
    "cleo": LEFT,
    "dana": {"patchify": "reshape_only", **PATCHES_ONLY, **LEFT},
    "emil": {"patchify": "axes_split_backwards", **PATCHES_ONLY, "PatchEmbed": TYPING_ERROR},
    "finn": {},
}
CUT_OFF = "finn"  # whose files end in the middle


def write_class(folder: Path) -> Path:
    """Write the class, both files of each student, into a folder, which is returned.

    Raises:
        ValueError: the course's notebooks, of which they are made, are not here.
    """
    stems = {exercise.stem for exercise in in_notebook(NOTEBOOK)}
    folder.mkdir(parents=True, exist_ok=True)
    for source in (path for path in find_sources() if path.stem in stems):
        stubs = read(source)
        for student, choices in STUDENTS.items():
            notebook = solve_notebook(stubs)
            for index, id in exercise_cells(notebook):
                if id in choices:
                    stub = stubs.cells[index].source
                    notebook.cells[index].source = _wrong_answer(id, choices[id], stub)
            text = nbformat.writes(notebook)
            text = text[: len(text) // 2] if student == CUT_OFF else text
            (folder / f"{student}_{source.name}").write_text(text, encoding="utf-8")
    return folder


def _wrong_answer(id: str, choice: str, stub: str) -> str:
    if choice == STUB:
        return stub
    if choice == TYPING_ERROR:
        return bare_source(id).replace("):", ") :::", 1)
    mistake = next(each for each in find_checker(id).bank if each.id == choice)
    if isinstance(mistake, Mistake):
        return apply_edits(bare_source(id), [mistake.edits]) or stub
    return f"{id} = {mistake.value!r}"
