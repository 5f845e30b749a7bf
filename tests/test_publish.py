"""The command writes everything that comes out of a class, and nothing twice."""

import csv
import io
import json
import os
import re
import zipfile
from types import SimpleNamespace

import pytest
from made_class import hand_in, made_parts

from vitedu.__main__ import main
from vitedu.grading.grades import Submission, safe_name
from vitedu.grading.pages import publish
from vitedu.grading.pages.publish import main_grade

CLASS = {
    "anna": {"patchify": "passed", "unpatchify": "failed"},
    "bob": {"patchify": "passed", "unpatchify": 'not_gradable {"reason": "memory"}'},
}
CHOICES = {"exercises": ("patchify", "unpatchify")}


@pytest.fixture
def folder(tmp_path):
    return hand_in(tmp_path / "in", **CLASS)


def files(out):
    paths = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
    return {name: (path.read_bytes(), path.stat().st_mtime_ns) for name, path in paths.items()}


def test_everything_is_written_and_told(folder, out, capsys):
    """Tables, a page a student, the report; the terminal says what is open and where to look."""
    assert main_grade(folder, out, parts=made_parts(), **CHOICES) == 0
    expected = {
        ".lock",
        "class.json",
        "secret.json",
        "tables.json",
        "grades.csv",
        "totals.csv",
        "open.csv",
    }
    for name in map(safe_name, CLASS):
        expected |= {f"submissions/{name}.json", f"feedback/{name}.html"}
    assert set(files(out)) == expected | {"report.html", "examples.html", "feedback.zip"}
    output = capsys.readouterr().out
    assert output.startswith("2 submissions: 2 graded now, 0 before. Isolation: full.")
    assert "Mean 6 of 6 core points, 6.75 of all 10, median 6.75 (1 of 2 are final)." in output
    assert "stored in this folder of grades and nowhere else" in output
    assert "4 points of 1 submission are open" in output and f"{out / 'open.csv'}" in output


def test_files_for_platforms_are_written_when_asked_for(folder, out, capsys):
    """One for Canvas under the assignment's name, one for Moodle, one a student for Gradescope."""
    formats = ("canvas", "moodle", "gradescope")
    main_grade(folder, out, formats=formats, assignment="Hw (7)", parts=made_parts(), **CHOICES)
    written = set(files(out))
    assert {"canvas.csv", "moodle.csv", f"gradescope/{safe_name('anna')}.json"} <= written
    rows = list(csv.reader(io.StringIO((out / "canvas.csv").read_text())))
    assert "moodle.csv: 2 students without the number that Moodle gives" in capsys.readouterr().out
    assert rows[0][-1] == "Hw (7)" and [row[-1] for row in rows[2:]] == ["7.5", ""]


def test_pages_without_names_stand_in_a_folder_of_their_own(folder, out):
    """Numbers in the place of names, in every page; who is who stands outside."""
    main_grade(folder, out, formats=("anonymous",), parts=made_parts(), **CHOICES)
    pages = {path.name: path.read_text("utf-8") for path in (out / "anonymous").iterdir()}
    assert len(pages) == 3 and "report.html" in pages
    assert all(not re.search("anna|bob", name + text) for name, text in pages.items())
    assert "student 001" in pages["report.html"] and "student 002" in pages["report.html"]
    rows = csv.DictReader(io.StringIO((out / "anonymous.csv").read_text("utf-8-sig")))
    assert sorted(row["student"] for row in rows) == ["anna", "bob"]


def test_examples_of_mistakes_have_neither_names_nor_comments(tmp_path, out):
    """The shortest two; an answer with a name in it is left out, and so is what is no Python."""
    codes = {"ada": "x = 1  # ada", "ben": "x = 'cy'", "cy": "x = (2,", "dan": "x = 22"}
    codes["eve"] = "x = 333"
    students = {
        name: {"patchify": f"failed {json.dumps({'code': code})}"} for name, code in codes.items()
    }
    main_grade(hand_in(tmp_path / "in", **students), out, parts=made_parts(), **CHOICES)
    page = (out / "examples.html").read_text("utf-8")
    assert re.findall(r"<pre class=\"code\">(.*)</pre>", page) == ["x = 1", "x = 22"]
    assert "5 students" in page and "got: 7/9 values differ" in page
    assert not re.search(r"\b(ada|ben|cy|dan|eve)\b", page)


def test_pages_come_as_one_file_that_a_platform_takes(tmp_path, out):
    """In the folders of Moodle's download, under the names of Canvas's, else the student's."""
    names = {
        "Zoe Ott": {"name": "Zoe Ott", "moodle_id": "12 13"},
        "ottzoe": {"canvas_id": "7"},
        "anna": {},
    }
    (tmp_path / "in").mkdir()
    canvas = tmp_path / "in" / "ottzoe_LATE_7_88_01_patches.ipynb"
    for name in (canvas, tmp_path / "in" / "x"):
        name.write_text("patchify: passed")

    def find(folder):
        files = {"ottzoe": canvas}
        own = [Submission(s, (files.get(s, folder / "x"),), ids) for s, ids in names.items()]
        return SimpleNamespace(submissions=own, problems=[])

    main_grade(tmp_path / "in", out, parts=made_parts(find=find), **CHOICES)
    with zipfile.ZipFile(out / "feedback.zip") as archive:
        assert archive.namelist() == [
            "Zoe Ott_12_assignsubmission_file_/feedback.html",
            "Zoe Ott_13_assignsubmission_file_/feedback.html",
            f"{safe_name('anna')}.html",
            "ottzoe_LATE_7_88_feedback.html",
        ]
        assert b"Feedback" in archive.read("ottzoe_LATE_7_88_feedback.html")


def test_fault_of_a_page_costs_one_page(folder, out, monkeypatch):
    """The points are there all the same, and the log says what happened."""
    real = publish.feedback_page

    def broken(grade):
        if grade.student == "anna":
            raise KeyError("a label")
        return real(grade)

    monkeypatch.setattr(publish, "feedback_page", broken)
    main_grade(folder, out, parts=made_parts(), **CHOICES)
    pages = [(out / "feedback" / f"{safe_name(name)}.html").read_text() for name in CLASS]
    assert "7.5 of 10 points" in pages[0] and "1.5" in pages[1]
    assert "'anna', feedback: KeyError" in (out / "grader.log").read_text()


@pytest.mark.skipif(os.name == "nt", reason="file modes")
def test_trouble_with_folders_is_one_line_and_status_2(tmp_path, capsys):
    """As with every command."""
    assert main(["grade", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("vitedu: ") and "nowhere" in error and error.count("\n") == 1
    (tmp_path / "in").mkdir()
    assert main(["grade", str(tmp_path / "in"), "--out", str(tmp_path / "out")]) == 2
    assert "holds no notebooks" in capsys.readouterr().err


def test_overrides_are_read_on_every_grading(folder, out, capsys):
    """From the output folder, into every table and page, and shown as a person's."""
    main_grade(folder, out, parts=made_parts(), **CHOICES)
    path = out / "overrides.csv"
    path.write_text("student;exercise;points;reason\nanna;1.5;4;explained it orally\n")
    for _ in range(2):
        main_grade(folder, out, parts=made_parts(), **CHOICES)
        assert f"1 exercise decided by {path}." in capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO((out / "grades.csv").read_text("utf-8-sig"))))
    row = next(row for row in rows if (row["student"], row["exercise"]) == ("anna", "unpatchify"))
    assert (row["points"], row["comment"]) == ("4.0", "explained it orally")
    assert row["decided_by"] == "overrides.csv (by machine: 1.5 points)"
    page = (out / "feedback" / f"{safe_name('anna')}.html").read_text()
    assert "Your instructor decided about these points: explained it orally" in page
    path.write_text("student,exercise,points,reason\nanna,1.5,9,x\n")
    with pytest.raises(ValueError, match="line 2: points must be a number from 0 to 4"):
        main_grade(folder, out, parts=made_parts(), **CHOICES)
