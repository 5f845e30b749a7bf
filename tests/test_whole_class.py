"""A real class through the real grader: right, partly right, untouched, broken and hostile."""

import copy
import csv
import getpass
import io
import json
import shutil
from pathlib import Path

import pytest
from test_feedback import assert_harmless

from vitedu.__main__ import main
from vitedu.course.notebooks import solve
from vitedu.exercises import find
from vitedu.grading.grades import safe_name

pytestmark = pytest.mark.slow

STUDENT_VERSION = Path(__file__).parents[1] / "notebooks" / "01_patches.ipynb"
EXERCISES = ("patchify", "tokens_at_224", "add_class_token_and_positions")
HOSTILE = {
    "patchify": "import os\n\ndef patchify(images, patch_size):\n    os._exit(0)\n",
    "tokens_at_224": "tokens_at_224 = '=<script>alert(1)</script>'\n",
}


def with_answers(notebook, answers):
    """Put other sources into the cells of exercises."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook["cells"]:
        exercise = cell["metadata"].get("vitedu", {}).get("exercise")
        if exercise in answers:
            cell["source"] = answers[exercise]
    return notebook


def tree(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def table(path):
    """Read a table that the grader wrote."""
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def fill_in(path, rows):
    """Write a table as a spreadsheet would."""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Grade a class of six; gives the folders and the rows of grades.csv."""
    root = tmp_path_factory.mktemp("class")
    folder, out = root / "in", root / "out"
    folder.mkdir()
    solved = json.loads(solve(STUDENT_VERSION, root / "solved")[0].read_text("utf-8"))
    stub = json.loads(STUDENT_VERSION.read_text("utf-8"))
    swapped = "import torch\n\ndef patchify(images, patch_size):\n    return images\n"
    partly = {"patchify": swapped, "tokens_at_224": "tokens_at_224 = 196"}
    for name, notebook in {
        "anna_right": solved,
        "bob_partly": with_answers(solved, partly),
        "cleo_untouched": stub,
        "=eve": with_answers(solved, HOSTILE),
    }.items():
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (folder / "dan_broken.ipynb").write_text('{"cells": [', encoding="utf-8")
    (folder / "finn.ipynb").write_bytes(b"\x00\xff" * 1000)
    before = tree(folder)
    words = ["grade", str(folder), "--out", str(out), "--exercises", *EXERCISES, "--jobs", "2"]
    words += ["--seed", "5", "--allow-unsafe"]
    status = main([*words, "--for", "canvas", "gradescope"])
    assert status == 0 and tree(folder) == before
    rows = table(out / "grades.csv")
    log = out / "grader.log"
    has_faults = any(row["reason"] == "grader" for row in rows)
    assert not has_faults, log.read_text() if log.exists() else "no log"
    return out, {(row["student"], row["exercise"]): row for row in rows}, words


def outcome(rows, student, exercise="patchify"):
    row = rows[student, exercise]
    return row["state"], row["reason"], row["points"]


def test_right_answers_earn_everything(graded):
    """Whatever neighbours do."""
    _, rows, _ = graded
    for exercise in EXERCISES:
        points = str(float(find(exercise).points))
        assert outcome(rows, "anna_right", exercise) == ("passed", "", points)


def test_mistakes_are_named_and_cost_their_own_points(graded):
    """The rest of the notebook is judged as if they had not happened."""
    out, rows, _ = graded
    assert outcome(rows, "bob_partly")[0] == "failed"
    assert float(rows["bob_partly", "patchify"]["points"]) == 0  # handing the input back is no work
    page = (out / "feedback" / f"{safe_name('bob_partly')}.html").read_text("utf-8")
    assert "the result has the wrong shape" in page
    assert rows["bob_partly", "tokens_at_224"]["misconceptions"] == "no_class_token"
    assert outcome(rows, "bob_partly", "add_class_token_and_positions")[0] == "passed"


def test_untouched_stubs_earn_nothing_and_say_so(graded):
    """A 0 that is a 0."""
    _, rows, _ = graded
    for exercise in EXERCISES:
        assert outcome(rows, "cleo_untouched", exercise) == ("failed", "", "0.0")
        assert rows["cleo_untouched", exercise]["attempted"] == "no"


def test_files_that_can_not_be_read_are_open(graded):
    """Neither points nor a 0."""
    _, rows, _ = graded
    for student in ("dan_broken", "finn"):
        for exercise in EXERCISES:
            assert outcome(rows, student, exercise) == ("not_gradable", "unreadable", "")


def test_hostile_answers_earn_nothing_and_cost_nobody_anything(graded):
    """An answer that ends its process is open, a script is text, the rest of a notebook counts."""
    _, rows, _ = graded
    assert outcome(rows, "'=eve") == ("not_gradable", "crashed", "")
    assert outcome(rows, "'=eve", "tokens_at_224")[0] == "failed"
    assert outcome(rows, "'=eve", "add_class_token_and_positions")[0] == "passed"


def test_pages_are_harmless_and_hold_the_points(graded):
    """Every page of the class, with what its students typed."""
    out, rows, _ = graded
    assert_harmless((out / "report.html").read_text("utf-8"))
    for student in ("anna_right", "bob_partly", "cleo_untouched", "dan_broken", "finn", "=eve"):
        source = (out / "feedback" / f"{safe_name(student)}.html").read_text("utf-8")
        words = assert_harmless(source).said
        if student == "anna_right":
            points = sum(find(exercise).points for exercise in EXERCISES)
            assert f"{points} of {points} points" in words and "3 of 3 exercises passed" in words


def test_the_same_command_again_touches_nothing(graded, capsys):
    """Neither a file of the output nor a process."""
    out, _, words = graded
    before = {path: path.stat().st_mtime_ns for path in tree(out)}
    assert main([*words, "--for", "canvas", "gradescope"]) == 0
    assert {path: path.stat().st_mtime_ns for path in tree(out)} == before
    assert "6 submissions: 0 graded now, 6 before." in capsys.readouterr().out


def test_a_person_decides_what_is_open(graded, tmp_path, capsys):
    """Points and comment of a filled-in open.csv come into every table and page, and stay there."""
    out, _, words = graded
    mine = tmp_path / "out"
    shutil.copytree(out, mine)
    words = [*words[:3], str(mine), *words[4:]]
    rows = table(mine / "open.csv")
    assert {(row["student"], row["exercise"]) for row in rows} >= {("'=eve", "patchify")}
    for row in rows:
        if row["student"] == "'=eve":
            row |= {"points": "2.5", "comment": "It ends Python, but the idea is right."}
    fill_in(tmp_path / "filled.csv", rows)
    capsys.readouterr()
    assert main([*words, "--with", str(tmp_path / "filled.csv")]) == 0
    log = capsys.readouterr().out
    assert "6 submissions: 0 graded now, 6 before." in log and "1 open exercise decided by" in log

    for more in ([], ["--for", "canvas"]):  # the same command later, without the file
        by_key = {(row["student"], row["exercise"]): row for row in table(mine / "grades.csv")}
        assert outcome(by_key, "'=eve") == ("failed", "", "2.5")
        assert "'=eve" not in (mine / "open.csv").read_text("utf-8-sig")
        page = (mine / "feedback" / f"{safe_name('=eve')}.html").read_text("utf-8")
        assert "It ends Python, but the idea is right." in page
        decided = json.loads((mine / "decisions.json").read_text())["=eve"]["patchify"]
        assert decided["points"] == 2.5 and decided["by"] == getpass.getuser()
        assert main([*words, *more]) == 0

    before = tree(mine)
    rows[0] |= {"points": "100"}
    fill_in(tmp_path / "filled.csv", rows)
    assert main([*words, "--with", str(tmp_path / "filled.csv")]) == 2
    assert "points must be a number from 0 to" in capsys.readouterr().err and tree(mine) == before


def test_the_example_class_shows_what_an_instructor_meets(tmp_path, monkeypatch, capsys):
    """Full points, recognised mistakes, stubs, an answer and a file that cannot be read."""
    monkeypatch.chdir(STUDENT_VERSION.parents[1])
    few = ["--exercises", "1.1", "PatchEmbed", "unpatchify", "--polish", "0", "--allow-unsafe"]
    assert main(["grade", "--example", "--out", str(tmp_path), *few]) == 0
    assert len(list((tmp_path / "submissions").iterdir())) == 12
    rows = {(r["student"], r["exercise"]): r for r in table(tmp_path / "grades" / "grades.csv")}
    assert {outcome(rows, "anna", id)[0] for id in ("patchify", "unpatchify")} == {"passed"}
    assert rows["ben", "patchify"]["misconceptions"] == "reshape_only"
    assert rows["cleo", "unpatchify"]["attempted"] == "no"
    assert outcome(rows, "emil", "PatchEmbed") == ("not_gradable", "syntax", "")
    assert outcome(rows, "finn") == ("not_gradable", "unreadable", "")
    page = assert_harmless((tmp_path / "grades" / "report.html").read_text("utf-8")).said
    assert "1.1 cut an image into patches: every pixel stands where it should." in page
    assert "Missed by 3 of 5 who tried (60 %)." in page
    assert main(["grade", "--out", str(tmp_path / "x")]) == 2
    assert "or --example" in capsys.readouterr().err
