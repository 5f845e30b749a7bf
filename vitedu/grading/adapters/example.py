"""A made class of six to rehearse with: ``vitedu grade --example``.

Role: ``write_class`` writes six notebooks with what an instructor meets: full points, recognised
mistakes, stubs, an answer that is no Python, and a file that ends in the middle. The flags are
true: anna wrote her answers herself (``own_answers.txt``), ben copied three of hers, and cleo took
one that the course publishes.
"""

from pathlib import Path

import nbformat

from vitedu.checks.writing.checker import find_checker
from vitedu.checks.writing.mistakes import apply_edits, bare_source
from vitedu.course.notebooks import exercise_cells, read, solve_notebook
from vitedu.course.workspace import find_sources
from vitedu.exercises import in_notebook
from vitedu.grading.adapters.assign import read_template

NOTEBOOK = "01_patches"
STUB, OWN, TYPING_ERROR = "stub", "own", "typing error"
HARD = ("unpatchify", "sincos_positions", "sincos_positions_2d")
LEFT = dict.fromkeys((*HARD, "linear_from_conv", "stem_tokens"), STUB)
# student -> exercise -> id of a known mistake, or another way to go wrong; the rest is right
STUDENTS: dict[str, dict[str, str]] = {
    "anna": dict.fromkeys(("patchify", *HARD), OWN),
    "ben": {
        "patchify": "reshape_only",
        "tokens_at_224": "no_class_token",
        **dict.fromkeys(HARD, OWN),
    },
    "cleo": LEFT,
    "dana": {
        "patchify": "reshape_only",
        "add_class_token_and_positions": "positions_on_patches_only",
        **LEFT,
    },
    "emil": {
        "patchify": "axes_split_backwards",
        "PatchEmbed": TYPING_ERROR,
        "add_class_token_and_positions": "no_positions",
        **LEFT,
    },
    "finn": {},
}
OWN_ANSWERS = read_template("own_answers.txt").strip().split("\n\n\n")
CUT_OFF = "finn"  # whose files end in the middle


def write_class(folder: Path) -> Path:
    """Write the class, both files of each student, into a folder, which is returned."""
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
    if choice == OWN:
        return next(text for text in OWN_ANSWERS if text.startswith(f"def {id}("))
    if choice == TYPING_ERROR:
        return bare_source(id).replace("):", ") :::", 1)
    mistake = next(each for each in find_checker(id).bank if each.id == choice)
    if mistake.edits:
        return apply_edits(bare_source(id), [mistake.edits]) or stub
    return f"{id} = {mistake.value!r}"
