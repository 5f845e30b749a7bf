"""Notebooks as assignments: plain copies, and sources that the real nbgrader runs and grades."""

import ast
import contextlib
import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from conftest import whole
from sound_notebook import build

from vitedu.__main__ import main
from vitedu.course.notebooks import exercise_cells, find_notebooks, read
from vitedu.course.references import reference_source, solution_source
from vitedu.course.workspace import PAGES
from vitedu.exercises import BY_ID, EXERCISES, in_file, in_notebook
from vitedu.grading.adapters.assign import (
    BEGIN,
    END,
    GIVEN,
    assign,
    assign_nbgrader,
    source_notebook,
)
from vitedu.grading.intake.extraction import extract
from vitedu.grading.intake.submissions import find_submissions, read_folder

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
# what nbgrader gave for each cell
SCORES = "SELECT name, auto_score FROM grade JOIN base_cell ON cell_id = base_cell.id"
has_nbgrader = importlib.util.find_spec("nbgrader") is not None


def test_plain_assignment_is_the_students_notebooks_without_outputs(tmp_path):
    """And a README with a line for each, beside the pages that the notebooks link."""
    written = assign(tmp_path / "out", NOTEBOOKS)
    assert [path.name for path in written[-3:]] == [*PAGES, "README.md"]
    files = [path.relative_to(NOTEBOOKS) for path in find_notebooks(NOTEBOOKS)]
    assert [path.relative_to(tmp_path / "out") for path in written[:-3]] == files
    for path, file in zip(written[:-3], files, strict=True):
        own, original = read(path), read(NOTEBOOKS / file)
        assert [c.source for c in own.cells] == [c.source for c in original.cells]
        assert not any(c.outputs or c.execution_count for c in own.cells if c.cell_type == "code")
        exercises = in_file(path.stem)
        numbers = ", ".join(each.number for each in exercises)
        row = f"| {file.as_posix()} | {numbers} | {sum(each.points for each in exercises)} |"
        assert row in written[-1].read_text()
    assert "vitedu grade FOLDER --out GRADES\n" in written[-1].read_text()


def test_a_part_of_the_course_is_assigned(tmp_path, capsys):
    """Ranges and ids: other stubs are given, their checks go, and so does a file without any."""
    words = ["--exercises", "1.1-1.3", "1.5", "softmax"]
    assert main(["assign", str(tmp_path / "out"), str(NOTEBOOKS), *words]) == 0
    written = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    more = "01_patches_more.ipynb"
    assert written == ["01_patches.ipynb", "02_attention.ipynb", more, *PAGES, "README.md"]
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "--exercises 1.1 1.2 1.3 1.5 2.1\n" in readme
    first, rest = read(tmp_path / "out" / written[0]), read(tmp_path / "out" / "more" / more)
    ids = ["patchify", "PatchEmbed", "tokens_at_224"]
    assert [id for _, id in exercise_cells(first)] == ids
    assert [id for _, id in exercise_cells(rest)] == ["unpatchify"]
    text = "\n".join(cell.source for cell in (*first.cells, *rest.cells))
    handed_in = extract(read_folder(tmp_path / "out", "ada"))
    known = {exercise for stem in handed_in.notebooks for exercise in in_file(stem)}
    assert handed_in.given == {each.id for each in known} - {*ids, "unpatchify", "softmax"}
    given = f"{GIVEN}\nfrom vitedu.patches import add_class_token_and_positions"
    assert given in text and "check(add_class_token_and_positions" not in text
    assert f"{GIVEN}\nseam_neighbours = " in text and "check(patchify)" in text


def test_the_core_is_assigned_in_every_form(tmp_path):
    """For students, for nbgrader and for Gradescope, with the core exercises and no others."""
    core = [exercise.id for exercise in in_notebook("01_patches") if exercise.core]
    source = str(NOTEBOOKS / "01_patches.ipynb")
    assert main(["assign", str(tmp_path / "a"), source, "--core"]) == 0
    notebook = read(tmp_path / "a" / "01_patches.ipynb")
    assert [id for _, id in exercise_cells(notebook)] == core
    assert main(["assign", "--nbgrader", str(tmp_path / "b"), source, "--core"]) == 0
    notebook = read(tmp_path / "b" / "source" / "01_patches" / "01_patches.ipynb")
    graded = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade")]
    assert len(graded) == len(core)
    assert main(["assign", "--gradescope", str(tmp_path / "c.zip"), source, "--core"]) == 0
    with zipfile.ZipFile(tmp_path / "c.zip") as archive:
        assert json.loads(archive.read("assignment.json"))["exercises"] == core
    assert main(["assign", str(tmp_path / "d"), source, "--exercises", "softmax"]) == 2
    assert (
        main(["assign", "--gradescope", str(tmp_path / "d.zip"), source, "--exercises", "2.1"]) == 2
    )
    for wrong in ("1.77", "1.5-1.1", "1.1-"):
        assert main(["assign", str(tmp_path / "d"), source, "--exercises", wrong]) == 2
    assert not (tmp_path / "d").exists() and not (tmp_path / "d.zip").exists()


def test_source_notebooks_are_schema_3_and_their_points_are_the_courses(tmp_path):
    """Every exercise has a solution cell and a locked test cell with its points; ids are unique."""
    points = {}
    for path in assign_nbgrader(tmp_path, NOTEBOOKS)[:-1]:
        assert path == tmp_path / "source" / path.stem / path.name
        notebook = read(path)
        nbformat.validate(notebook)
        marked = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
        ids = [cell.metadata.nbgrader.grade_id for cell in marked]
        assert len(ids) == len(set(ids))
        for cell in marked:
            schema = cell.metadata.nbgrader
            assert schema.schema_version == 3 and schema.task is False
            if schema.solution:
                assert (schema.grade, schema.locked) == (False, False) and "points" not in schema
                assert cell.metadata.vitedu.exercise == schema.grade_id
                assert cell.source.count(BEGIN) == cell.source.count(END) > 0
                ast.parse(cell.source)
            else:
                assert (schema.grade, schema.locked) == (True, True)
                assert cell.source.endswith("report.points  # nbgrader's partial credit")
                points[schema.grade_id.removesuffix("-points")] = schema.points
    assert points == {exercise.id: exercise.points for exercise in EXERCISES}


def test_solutions_stand_below_the_stubs():
    """The stub stays as the course has it; what follows it goes when the notebook is released."""
    notebook = read(NOTEBOOKS / "03_encoder.ipynb")
    places = {id: index for index, id in exercise_cells(notebook)}
    for id, index in places.items():
        source = source_notebook(notebook).cells[index].source
        parts = [notebook.cells[index].source, BEGIN, solution_source(BY_ID[id]), END]
        assert source == "\n".join(parts)


def test_notebook_without_a_check_is_refused():
    """A stub that nothing checks would be worth nothing."""
    notebook = build("01_patches")
    notebook.cells = [cell for cell in notebook.cells if not cell.source.startswith("report")]
    with pytest.raises(ValueError, match="no cell below the stub of patchify"):
        source_notebook(notebook)


def test_notebooks_are_not_overwritten(tmp_path, capsys):
    """Neither by a folder that is theirs nor onto a file; an edited configuration stays."""
    (tmp_path / "file").write_text("x")
    for out in (NOTEBOOKS, tmp_path / "file"):
        assert main(["assign", str(out), str(NOTEBOOKS)]) == 2
    assert "holds the notebooks themselves" in capsys.readouterr().err
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "nbgrader_config.py").write_text("# mine")
    assert main(["assign", "--nbgrader", str(tmp_path / "course"), str(NOTEBOOKS)]) == 0
    assert (tmp_path / "course" / "nbgrader_config.py").read_text() == "# mine"


@whole
@pytest.mark.skipif(not has_nbgrader, reason="nbgrader is not installed; the extra `test` has it")
def test_the_real_nbgrader_validates_releases_and_grades_it(tmp_path):
    """From `vitedu assign --nbgrader` to nbgrader's own grades, partial credit among them."""
    (tmp_path / "notebooks").mkdir()
    small = build("01_patches")  # of which three exercises, since checks take seconds
    asked = ("imports", "patchify", "tokens_at_224", "add_class_token_and_positions")
    small.cells = [cell for cell in small.cells if cell.id.split("-")[0] in asked]
    nbformat.write(small, tmp_path / "notebooks" / "01_patches.ipynb")
    course = tmp_path / "course"
    assert main(["assign", "--nbgrader", str(course), str(tmp_path / "notebooks")]) == 0
    tools = Path(sys.executable).parent  # it calls alembic
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    for kind in ("CONFIG", "DATA", "RUNTIME"):
        environment[f"JUPYTER_{kind}_DIR"] = str(tmp_path / "jupyter")

    def nbgrader(*words):
        quiet = {"capture_output": True, "text": True, "timeout": 240}
        words = [sys.executable, "-m", "nbgrader", *words]
        done = subprocess.run(words, cwd=course, env=environment, **quiet)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout + done.stderr

    output = nbgrader("validate", "source/01_patches/01_patches.ipynb")
    assert "Success! Your notebook passes all the tests." in output
    nbgrader("generate_assignment", "01_patches")
    text = (course / "release" / "01_patches" / "01_patches.ipynb").read_text()
    assert "BEGIN SOLUTION" not in text and "permute(0, 2, 4, 1, 3, 5)" not in text

    order = reference_source(BY_ID["patchify"]).replace("0, 2, 4, 1, 3, 5", "0, 2, 4, 3, 5, 1")
    answers = {"patchify": order, "tokens_at_224": "tokens_at_224 = 197"}
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        id = cell["metadata"].get("vitedu", {}).get("exercise")
        cell["source"] = answers.get(id, cell["source"])
    folder = course / "submitted" / "ann" / "01_patches"
    folder.mkdir(parents=True)
    (folder / "01_patches.ipynb").write_text(json.dumps(notebook))
    nbgrader("autograde", "01_patches")
    with contextlib.closing(sqlite3.connect(course / "gradebook.db")) as book:
        scores = dict(book.execute(SCORES).fetchall())
    points = {id: scores.pop(f"{id}-points") for id in asked[1:]}
    assert not scores and 0 < points["patchify"] < BY_ID["patchify"].points
    assert points["tokens_at_224"] == BY_ID["tokens_at_224"].points
    assert points["add_class_token_and_positions"] == 0  # left as it was

    # the same submission, as vitedu's own grader reads it
    (submission,) = find_submissions(course).submissions
    own = extract(submission).answers
    assert submission.student == "ann" and {e for e in own if own[e].cell} == set(asked[1:])
    assert own["patchify"].source == order
