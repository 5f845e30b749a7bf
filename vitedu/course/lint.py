"""Rules that keep notebooks, references and syllabus consistent.

Role: reads one notebook as data and lists its problems: the place, and what to do. Nothing is run
and no reference is imported. Not here: checkers (``commands.inspection``); names and imports,
which ruff checks.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from vitedu.course import colab, core
from vitedu.course.notebooks import NBVAL_TAG, exercise_cells, is_compared, read, shelf_path
from vitedu.course.parsing import parse, without_docstrings
from vitedu.course.references import defined_names, reference_source
from vitedu.course.stub_text import check_lines, stub_text
from vitedu.exercises import STEMS, Exercise, in_file
from vitedu.words import read as read_words

ABSOLUTE = re.compile(
    r"""(?<![\w./:~])/(?:home|Users|root|tmp|var|opt|usr|etc|mnt|work|content|workspace)/[\w.-]+"""
    r"""|(?<!\w)[A-Za-z]:\\+[\w.-]+"""
)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"(?m)^#+ +(.+?) *$")
MEASURED = re.compile(r"""\bmeasured\([^,()]*(,\s*(\w+=)?["'][^()]*)?\)""")  # without live images
BOLD = re.compile(r"\*\*(.+?)\*\*")
SHOWS = re.compile(r"\b(?:print|compare|measured|show_\w+|explore_\w+|plots\.\w+)\(")
ARXIV = re.compile(r"\d{4}\.\d{4,5}")
TURNS = read_words(Path(__file__).with_name("turns.toml"))  # what nobody says -> what is said
MOST_LINES = 25  # of a given code cell that is open


def lint(path: Path) -> list[str]:
    """List what is wrong with one notebook of the course.

    Args:
        path: the student variant, named as in the syllabus.

    Returns:
        Sentences that name file, cell and remedy; an empty list if nothing is wrong.

    Raises:
        ValueError: the file is not a notebook.
    """
    path = Path(path)
    notebook = read(path)
    problems = [
        *_lint_format(notebook),
        *_lint_exercises(notebook, path.stem),
        *_lint_outputs(notebook),
        *_lint_text(notebook, path),
        *_lint_data(notebook),
        *_lint_numbers(notebook),
        *_lint_length(notebook),
        *colab.find_problems(notebook, path.stem),
        *core.find_problems(notebook, path.stem),
    ]
    return [f"{path.name}, {problem}" for problem in problems]


def missing_notebooks(folder: Path) -> list[str]:
    """List the notebooks of the syllabus that a folder does not have."""
    return [
        f"{file} is missing from {folder}; the syllabus has exercises in it."
        for file in (shelf_path(f"{stem}.ipynb") for stem in STEMS)
        if not (Path(folder) / file).is_file()
    ]


def _place(notebook: NotebookNode, index: int) -> str:
    return f"cell {notebook.cells[index].get('id', index)!r}"


# --- the file -----------------------------------------------------------------------------------


def _lint_format(notebook: NotebookNode) -> Iterator[str]:
    """Rule: valid nbformat, with unique cell ids."""
    ids = Counter(cell.get("id") for cell in notebook.cells)
    faults = {name: count for name, count in ids.items() if count > 1 or name is None}
    for name, count in faults.items():
        yield f"cell {name!r}: {count} cells have this id; give each its own, as Jupyter does."
    if not faults:
        try:
            nbformat.validate(notebook)
        except nbformat.ValidationError as error:
            yield f"file: not valid nbformat ({error.message}); save it in Jupyter again."


def _lint_outputs(notebook: NotebookNode) -> Iterator[str]:
    """Rule: outputs are stored only where nbval compares them, and are text only."""
    for index, cell in enumerate(notebook.cells):
        where = _place(notebook, index)
        if cell.get("attachments"):
            yield f"{where}: holds an attached picture; let a cell draw it."
        if cell.cell_type != "code":
            continue
        kinds = {kind for output in cell.outputs for kind in output.get("data", ())}
        was_run = cell.outputs, cell.execution_count is not None
        if not is_compared(cell):
            if any(was_run):
                yield (
                    f"{where}: holds an output or a count that nothing compares; "
                    f"`vitedu lint --fix` clears it. Or tag the cell {NBVAL_TAG}."
                )
        elif not all(was_run):
            yield (
                f"{where}: is tagged {NBVAL_TAG} but lacks its output or its execution count, "
                "without which nbval refuses it; run the cell and save, or drop the tag."
            )
        elif kinds - {"text/plain"} or any(out.output_type == "error" for out in cell.outputs):
            yield f"{where}: holds a stored error or picture; let the cell print text."


def _lint_text(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Rule: no absolute paths, no broken links, no pictures in the text, no turns of the table."""
    for index, cell in enumerate(notebook.cells):
        where = _place(notebook, index)
        match = ABSOLUTE.search(cell.source + str(cell.get("outputs", "")))
        if match:
            yield (
                f"{where}: holds the absolute path {match[0]!r}; use one relative to the notebook."
            )
        if cell.cell_type != "markdown":
            continue
        text = re.sub("`[^`]*`", "", cell.source)
        for pattern, better in TURNS.items():
            if match := re.search(pattern, text):
                yield f"{where}: says {match[0]!r}; write it as in {better!r}."
        for words, target in LINK.findall(cell.source):
            if target.startswith("data:"):
                yield f"{where}: holds a picture as text; let a cell draw it."
            elif ARXIV.findall(words) and "arxiv.org" in target:
                if ARXIV.findall(words) != ARXIV.findall(target):
                    yield f"{where}: links {words!r} to {target}; make the two numbers equal."
            elif not re.match(r"[a-z]+:", target):
                name, _, anchor = target.partition("#")
                file = path.parent / name if name else path
                if not file.exists():
                    yield f"{where}: links to {target}, which is not there; correct the link."
                elif anchor and anchor not in _find_anchors(read(file) if name else notebook):
                    yield f"{where}: links to {target}, but no heading has that name; correct it."


def _find_anchors(notebook: NotebookNode) -> set[str]:
    """Return the link targets in a notebook: its headings as Jupyter names them."""
    texts = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return {re.sub(r"[`*]", "", heading).replace(" ", "-") for heading in HEADING.findall(texts)}


# --- the exercises ------------------------------------------------------------------------------


def _lint_exercises(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Rule: every exercise of this notebook has one stub and a reference, in order."""
    places = list(exercise_cells(notebook))
    counts = Counter(exercise_id for _, exercise_id in places)
    own = [exercise.id for exercise in in_file(name)]
    if not own:
        yield "file: the syllabus has no exercises in a notebook of this name; rename it."
    for index, exercise_id in places:
        if exercise_id not in own:
            yield (
                f"{_place(notebook, index)}: is the stub of {exercise_id!r}, which the syllabus "
                "does not have here; correct the metadata or add it to vitedu/exercises.toml."
            )
    order = [exercise_id for _, exercise_id in places if exercise_id in own]
    if order != own and sorted(order) == sorted(own):
        yield "file: the stubs are not in the order of vitedu/exercises.toml; move one of them."
    for exercise in in_file(name):
        about = f"exercise {exercise.id}"
        if counts[exercise.id] != 1:
            yield (
                f"{about}: has {counts[exercise.id]} stubs; mark just one cell with the metadata "
                f'{{"vitedu": {{"exercise": "{exercise.id}"}}}}.'
            )
        try:
            reference_source(exercise)
        except ValueError as error:
            yield f"{about}: {error}"
            continue
        for index in (index for index, exercise_id in places if exercise_id == exercise.id):
            where = _place(notebook, index)
            yield from (f"{where}: {text}" for text in _lint_stub(notebook.cells[index], exercise))
            yield from (f"{where}: {text}" for text in _lint_check_cell(notebook, index, exercise))


def _lint_stub(cell: NotebookNode, exercise: Exercise) -> Iterator[str]:
    """Rule: a stub cell holds an unsolved stub and nothing else, and agrees with its reference."""
    try:
        body = parse(cell.source).body
    except SyntaxError as error:
        yield f"the stub is no valid Python ({error.msg}, line {error.lineno}); correct it."
        return
    if len(body) != 1 or exercise.id not in defined_names(body[0]):
        yield f"a stub cell holds the stub of {exercise.id} and nothing else; move the rest out."
        return
    if not re.search(rf"# TODO {re.escape(exercise.number)}\b", cell.source):
        yield f"the stub has no comment '# TODO {exercise.number}: ...'; say what to do."
    if exercise.kind == "value":
        if ast.unparse(body[0]) != f"{exercise.id} = None":
            yield f"the stub gives the answer; write {exercise.id} = None."
        return
    open_parts = body
    if isinstance(body[0], ast.ClassDef):
        given = {ast.dump(node) for node in parse(reference_source(exercise)).body[0].body}
        methods = [node for node in body[0].body if isinstance(node, ast.FunctionDef)]
        open_parts = [method for method in methods if ast.dump(method) not in given]
    if not open_parts:
        yield f"class {exercise.id} is solved; let a method raise NotImplementedError."
    words = f"{exercise.number} {exercise.id}"
    for part in open_parts:
        if not re.search(rf"raise NotImplementedError\(.{words}.*\)$", ast.unparse(part)):
            name = defined_names(part)[0]
            yield f'{name} must end in raise NotImplementedError("{words}").'
    # as the reference would have it, from its docstrings to the parts that are given
    wanted = stub_text(exercise, without_docstrings(cell.source))
    both = (ast.unparse(parse(text)).splitlines() for text in (cell.source, wanted))
    for own, expected in zip_longest(*both, fillvalue=""):
        if own != expected:
            yield (
                f"the stub of {exercise.id} has {own.strip()!r}, its reference "
                f"{expected.strip()!r}; copy it from there (`vitedu lint --fix` does signatures)."
            )
            return


def _lint_check_cell(notebook: NotebookNode, index: int, exercise: Exercise) -> Iterator[str]:
    """Rule: the next cell begins with the two lines of a check cell."""
    expected = check_lines(exercise)
    following = notebook.cells[index + 1 : index + 2]
    lines = [line for cell in following for line in cell.source.splitlines()[:2]]
    if tuple(lines) != expected:
        yield f"the next cell must begin with the lines '{expected[0]}' and '{expected[1]}'."


def _lint_length(notebook: NotebookNode) -> Iterator[str]:
    """Rule: a long code cell that is given is folded."""
    for index in core.open_cells(notebook):
        count = sum(bool(line.strip()) for line in notebook.cells[index].source.splitlines())
        if count > MOST_LINES:
            yield (
                f"{_place(notebook, index)}: has {count} lines of given code, at most {MOST_LINES} "
                "stay open; tag it hide-input, shorten it or divide it."
            )


# --- the data -----------------------------------------------------------------------------------


def _lint_data(notebook: NotebookNode) -> Iterator[str]:
    """Rule: shipped measurements are asked for beside live images, or their cell names their data.

    That such images are of the right data is checked at run time.
    """
    for index, cell in enumerate(notebook.cells):
        is_alone = cell.cell_type == "code" and MEASURED.search(cell.source)
        if is_alone and ".data" not in cell.source:
            yield (
                f"{_place(notebook, index)}: shows measurements without their data; give the live "
                "images as second argument of measured, or print the field data of one."
            )


def _lint_numbers(notebook: NotebookNode) -> Iterator[str]:
    """Rule: a number in bold has its source beside it: a cell that shows it, or a link."""
    start = 0  # of the section
    for index, cell in enumerate(notebook.cells):
        start = index if re.match("## ", cell.source) else start
        beside = notebook.cells[max(start, index - 3) : index + 2]
        if cell.cell_type != "markdown" or LINK.search(cell.source):
            continue
        if not any(each.cell_type == "code" and SHOWS.search(each.source) for each in beside):
            for words in filter(re.compile(r"\b\d").search, BOLD.findall(cell.source)):
                yield (
                    f"{_place(notebook, index)}: has {words!r} in bold, and no cell beside it "
                    "shows the number; link its row or its paper, or take the bold away."
                )
