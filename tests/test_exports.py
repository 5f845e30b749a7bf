"""Grades as tables: nothing is computed by a spreadsheet, nothing that is open looks like a 0."""

import csv
import io
import json
import re

import pytest
from made_class import exercise_grade, submission_grade

from vitedu.exercises import find
from vitedu.grading.grades import Flag
from vitedu.grading.pages.exports import (
    MARK,
    canvas_csv,
    grades_csv,
    gradescope_results,
    moodle_csv,
    open_csv,
    safe_cell,
    totals_csv,
)

TWO = [find("patchify"), find("unpatchify")]


def three():
    """Passed and failed; one of two open; everything open."""
    gone = {"state": "not_gradable", "reason": "crashed", "detail": "rc -9"}
    return [
        submission_grade("Anna", [exercise_grade(), exercise_grade("unpatchify", "failed")]),
        submission_grade("Bob", [exercise_grade(), exercise_grade("unpatchify", "not_gradable")]),
        submission_grade(
            "Cleo", [exercise_grade("patchify", **gone), exercise_grade("unpatchify", **gone)]
        ),
    ]


def rows(text):
    return list(csv.reader(io.StringIO(text.removeprefix(MARK), newline="")))


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "|cmd", "＝1"]
FORMULAS += ["=cmd|' /C calc'!A0", '=HYPERLINK("http://x")', "\x00=1", "\ufeff=1"]
FORMULAS.append("\u202e=1")


@pytest.mark.parametrize("words", FORMULAS, ids=ascii)
def test_text_that_begins_like_a_formula_is_made_text(words):
    """Whatever stands before the sign, no cell begins with it, nor with blanks before it."""
    assert not safe_cell(words).lstrip(" \t\r\n\x00\ufeff\u202e").startswith(tuple("=+-@|\t\r＝"))


NAMES = ["Anna-Lena", "a=b", "01_patches.ipynb", "", "Zoë", "李雷", "O'Hara"]


@pytest.mark.parametrize("words", NAMES)
def test_other_text_stays(words):
    """Nothing is added where nothing is needed."""
    assert safe_cell(words) == words


def test_cells_have_one_line_and_an_end():
    """Line ends and control characters are gone; a megabyte is cut."""
    assert safe_cell("a\r\nb\tc\x1b[1m") == "a b c�[1m"
    assert len(safe_cell("x" * 10**6)) <= 1001


def test_students_and_details_are_safe_in_every_table():
    """A name, a file, a detail and a flag that are formulas are text in each file."""
    bad = "=HYPERLINK(1)"
    grade = submission_grade(
        bad,
        [exercise_grade("patchify", "not_gradable", detail=bad, flags=[Flag(bad, bad)])],
        files=[bad],
        identity={"canvas_id": bad, "moodle_id": bad, "email": bad},
        flags=[Flag(bad, bad)],
    )
    platforms = canvas_csv([grade], TWO[:1], bad), moodle_csv([grade], TWO[:1])
    for text in (grades_csv([grade]), totals_csv([grade], 1), open_csv([grade]), *platforms):
        cells = [each for row in rows(text) for each in row]
        assert any("HYPERLINK" in each for each in cells)
        assert not any(each.startswith(tuple("=+-@")) for each in cells)


def test_grades_have_a_row_a_student_and_exercise():
    """Points of what is not gradable are empty; its state and reason are not."""
    grades = three()
    grades[0].exercises[1].flags.append(Flag("unstable", "x"))
    grades[0].flags.append(Flag("similar", "y"))
    lines = rows(grades_csv(grades))
    assert lines[0][:6] == ["student", "exercise", "points", "max_points", "state", "reason"]
    assert [row[:6] for row in lines[1:4]] == [
        ["Anna", "patchify", "6.0", "6.0", "passed", ""],
        ["Anna", "unpatchify", "1.5", "4.0", "failed", ""],
        ["Bob", "patchify", "6.0", "6.0", "passed", ""],
    ]
    assert lines[4][:6] == ["Bob", "unpatchify", "", "4.0", "not_gradable", "timeout"]
    table = [dict(zip(lines[0], row, strict=True)) for row in lines[1:]]
    assert table[1]["misconceptions"] == "row_major" and table[1]["flags"] == "unstable similar"


def test_totals_say_whether_they_are_final():
    """Open points stand in a column of their own."""
    lines = rows(totals_csv(three(), 2))
    table = [dict(zip(lines[0], row, strict=True)) for row in lines[1:]]
    points = [(float(t["points"]), float(t["open_points"])) for t in table]
    assert points == [(7.5, 0), (6, 4), (0, 10)]
    assert [t["final"] for t in table] == ["yes", "no", "no"]
    assert [t["not_gradable"] for t in table] == ["0", "1", "2"]


def test_what_is_open_is_listed_with_its_reason():
    """And nothing else is."""
    lines = rows(open_csv(three()))
    assert [(row[0], row[1], row[3]) for row in lines[1:]] == [
        ("Bob", "unpatchify", "timeout"),
        ("Cleo", "patchify", "crashed"),
        ("Cleo", "unpatchify", "crashed"),
    ]


def test_tables_for_people_tell_excel_their_encoding():
    """A byte order mark there; none where a program looks for the first word."""
    for text in (grades_csv([]), totals_csv([], 0), open_csv([])):
        assert text.encode().startswith(b"\xef\xbb\xbf")
    assert canvas_csv([], TWO).startswith("Student,ID,SIS User ID,SIS Login ID,Section,")
    assert moodle_csv([], TWO).startswith("Identifier,")


def test_canvas_finds_students_and_points():
    """Header, points possible, the ID from the download's name, no number where some is open."""
    grades = three()
    grades[0].identity = {"canvas_id": "4711"}
    lines = rows(canvas_csv(grades, TWO, "Patches (99)"))
    assert lines[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Patches (99)"]
    assert lines[1] == ["Points Possible", "", "", "", "", "10.0"]
    assert [row[0] for row in lines[2:]] == ["Anna", "Bob", "Cleo"]
    assert [row[1] for row in lines[2:]] == ["4711", "", ""]
    assert [row[5] for row in lines[2:]] == ["7.5", "", ""]


def test_canvas_has_a_column_a_notebook():
    """What is open in one leaves the other alone; no name has a word that Canvas keeps."""
    grade = submission_grade("Anna", [exercise_grade(), exercise_grade("softmax", "not_gradable")])
    lines = rows(canvas_csv([grade], [find("patchify"), find("softmax")]))
    assert lines[0][5:] == ["vitedu 01_patches", "vitedu 02_attention"]
    assert lines[2][5:] == ["6.0", ""]
    assert not re.search("(Current|Final|Override) (Score|Points|Grade|Status)", ",".join(lines[0]))


def test_an_exercise_that_the_grade_does_not_hold_is_open():
    """A sum over less than was asked for is no sum."""
    lines = rows(canvas_csv([submission_grade("Anna", [exercise_grade()])], TWO))
    assert lines[2][5] == ""


def test_moodle_finds_students_and_points():
    """The columns that its importer wants, "Participant N", no grade where some is open."""
    grades = three()
    grades[0].identity = {"moodle_id": "12 34"}
    grades[1].identity = {"moodle_id": "56"}
    lines = rows(moodle_csv(grades, TWO))
    table = [dict(zip(lines[0], row, strict=True)) for row in lines[1:]]
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(lines[0])
    numbers = [f"Participant {number}" for number in (12, 34, 56)]
    assert [t["Identifier"] for t in table] == [*numbers, ""]
    assert [t["Grade"] for t in table] == ["7.5", "7.5", "", ""]
    assert {t["Maximum Grade"] for t in table} == {"10.0"}


def test_gradescope_scores_what_was_graded():
    """Scores and states of the tests; the seed of the class is nowhere."""
    anna = three()[0]
    results = gradescope_results(anna)
    assert results["score"] == 7.5 == sum(test["score"] for test in results["tests"])
    assert [test["status"] for test in results["tests"]] == ["passed", "failed"]
    assert [test["max_score"] for test in results["tests"]] == [6.0, 4.0]
    assert results["stdout_visibility"] == "hidden"
    assert "987654" not in json.dumps(results)


def test_gradescope_shows_no_zero_for_what_could_not_be_graded():
    """Such a test has neither score nor status, and the text says so before anything else."""
    results = gradescope_results(three()[1])
    test = results["tests"][1]
    assert "score" not in test and "status" not in test
    words = "Not graded yet, and not a 0: the answer did not come to an end"
    assert test["output"].startswith(words)
    assert results["output"].startswith("The score shown is not final.\n1 exercise with 4 points")
    nothing = gradescope_results(three()[2])
    words = "Nothing could be graded by machine. The score shown is not a grade"
    assert nothing["output"].startswith(words)
    assert nothing["extra_data"]["open_points"] == 10


def test_gradescope_uses_only_keys_that_it_knows():
    """As its specification lists them."""
    known = {"score", "execution_time", "output", "output_format", "test_output_format"}
    known |= {"test_name_format", "visibility", "stdout_visibility", "extra_data", "tests"}
    of_tests = {"score", "max_score", "status", "name", "name_format", "number", "output"}
    of_tests |= {"output_format", "tags", "visibility", "extra_data"}
    for grade in three():
        results = gradescope_results(grade)
        assert set(results) <= known
        assert all(set(test) <= of_tests for test in results["tests"])
