"""The example class through the real grader: what an instructor meets, and what he decides.

Hostile answers, files and names are in ``test_attacks``.
"""

import csv
import getpass
import io
import json
import shutil
from pathlib import Path

import pytest
from test_feedback import assert_harmless

from vitedu.__main__ import main
from vitedu.exercises import find
from vitedu.grading.grades import safe_name

pytestmark = pytest.mark.slow

FEW = "--exercises 1.1 1.3 PatchEmbed unpatchify --allow-unsafe".split()


def tree(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def table(path):
    """Read a table that the grader wrote, by student and exercise."""
    rows = csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline=""))
    return {(row["student"], row["exercise"]): row for row in rows}


def fill_in(path, rows):
    """Write a table as a spreadsheet would."""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Grade the class of six; gives the folder of grades and the command that does it again."""
    root = tmp_path_factory.mktemp("class")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(__file__).parents[1])
        assert main(["grade", "--example", "--out", str(root), *FEW]) == 0
    out = root / "grades"
    return out, ["grade", str(root / "submissions"), "--out", str(out), *FEW]


def outcome(rows, student, exercise="patchify"):
    row = rows[student, exercise]
    return row["state"], row["reason"], row["points"]


def test_the_example_class_shows_what_an_instructor_meets(graded, tmp_path, capsys):
    """Full points, recognised mistakes, stubs, an answer and a file that cannot be read."""
    out, _ = graded
    assert len(list((out.parent / "submissions").iterdir())) == 12
    rows = table(out / "grades.csv")
    assert not any(row["reason"] == "grader" for row in rows.values())
    assert {outcome(rows, "anna", id)[0] for id in ("patchify", "unpatchify")} == {"passed"}
    assert outcome(rows, "cleo") == ("passed", "", str(float(find("patchify").points)))
    assert rows["ben", "patchify"]["misconceptions"] == "reshape_only"
    assert rows["ben", "tokens_at_224"]["misconceptions"] == "no_class_token"
    assert outcome(rows, "ben", "unpatchify")[0] == "passed"  # a mistake costs its own points
    assert outcome(rows, "cleo", "unpatchify") == ("failed", "", "0.0")
    assert rows["cleo", "unpatchify"]["attempted"] == "no"
    assert outcome(rows, "emil", "PatchEmbed") == ("not_gradable", "syntax", "")
    assert outcome(rows, "finn") == ("not_gradable", "unreadable", "")
    page = assert_harmless((out / "report.html").read_text("utf-8")).said
    assert "1.1 cut an image into patches: every pixel stands where it should." in page
    assert "Missed by 3 of 5 who tried (60 %)." in page
    source = (out / "feedback" / f"{safe_name('anna')}.html").read_text("utf-8")
    assert "4 of 4 exercises passed" in assert_harmless(source).said
    assert main(["grade", "--out", str(tmp_path / "x")]) == 2
    assert "or --example" in capsys.readouterr().err


def test_the_same_command_again_touches_nothing(graded, capsys):
    """Neither a file of the output nor a process."""
    out, words = graded
    before = {path: path.stat().st_mtime_ns for path in tree(out)}
    assert main(words) == 0
    assert {path: path.stat().st_mtime_ns for path in tree(out)} == before
    assert "6 submissions: 0 graded now, 6 before." in capsys.readouterr().out


def test_a_person_decides_what_is_open(graded, tmp_path, capsys):
    """Points and comment of a filled-in open.csv come into every table and page, and stay there."""
    out, words = graded
    mine = tmp_path / "out"
    shutil.copytree(out, mine)
    words = [*words[:3], str(mine), *words[4:]]
    rows = table(mine / "open.csv")
    rows["emil", "PatchEmbed"] |= {"points": "2.5", "comment": "A colon too many, no more."}
    fill_in(tmp_path / "filled.csv", [*rows.values()])
    assert main([*words, "--with", str(tmp_path / "filled.csv")]) == 0
    log = capsys.readouterr().out
    assert "6 submissions: 0 graded now, 6 before." in log and "1 open exercise decided by" in log

    for more in ([], ["--for", "canvas"]):  # the same command later, without the file
        assert outcome(table(mine / "grades.csv"), "emil", "PatchEmbed") == ("failed", "", "2.5")
        assert ("emil", "PatchEmbed") not in table(mine / "open.csv")
        page = (mine / "feedback" / f"{safe_name('emil')}.html").read_text("utf-8")
        assert "A colon too many, no more." in page
        decided = json.loads((mine / "decisions.json").read_text())["emil"]["PatchEmbed"]
        assert decided["points"] == 2.5 and decided["by"] == getpass.getuser()
        assert main([*words, *more]) == 0

    before = tree(mine)
    rows["finn", "patchify"] |= {"points": "100"}
    fill_in(tmp_path / "filled.csv", [*rows.values()])
    assert main([*words, "--with", str(tmp_path / "filled.csv")]) == 2
    assert "points must be a number from 0 to" in capsys.readouterr().err and tree(mine) == before
    new = [*words[:3], str(tmp_path / "new"), *words[4:]]
    assert main([*new, "--with", str(tmp_path / "no.csv")]) == 2 and not (tmp_path / "new").exists()
    assert "no.csv" in capsys.readouterr().err
