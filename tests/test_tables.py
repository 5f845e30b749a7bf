"""Tables that stay true: whatever is graded in part, again, twice or under an odd name."""

import csv
import io
import unicodedata

import pytest
from made_class import exercise_grade, hand_in, made_parts, submission_grade
from test_submissions import put

from vitedu.exercises import EXERCISES, find, in_file
from vitedu.grading.intake.submissions import find_submissions
from vitedu.grading.pages.class_report import report_page, summarise
from vitedu.grading.pages.exports import safe_cell, write_table
from vitedu.grading.pages.publish import main_grade

CLASS = {name: {"patchify": "passed", "unpatchify": "failed"} for name in ("anna", "bob", "david")}
TWO = {"exercises": ("patchify", "unpatchify")}
ALL = ("canvas", "moodle", "gradescope")


@pytest.fixture
def folder(tmp_path):
    return hand_in(tmp_path / "in", **CLASS)


def table(path):
    """Read a table that the grader wrote, by column."""
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def grade(folder, out, **choices):
    main_grade(folder, out, parts=made_parts(), **choices)
    return {row["student"]: row for row in table(out / "totals.csv")}


# --- a part of a class ----------------------------------------------------------------------------


def test_one_exercise_of_one_student_changes_nothing_else(folder, out):
    """Others stay in all tables, and nobody's maximum falls."""
    before = grade(folder, out, formats=ALL, **TWO)
    hand_in(folder, david={"patchify": "failed", "unpatchify": "passed"})
    choices = {"only": ["david"], "exercises": ["patchify"], "again": True, "formats": ALL}
    after = grade(folder, out, **choices)
    assert {name: row for name, row in after.items() if name != "david"} == {
        name: row for name, row in before.items() if name != "david"
    }
    david = after["david"]
    assert (david["points"], david["max_points"], david["exercises"]) == ("3.0", "10.0", "2")
    assert len(table(out / "grades.csv")) == 6
    assert len(table(out / "moodle.csv")) == 3 and len(table(out / "canvas.csv")) == 4
    assert len(list((out / "feedback").iterdir())) == len(list((out / "gradescope").iterdir())) == 3
    # his unpatchify is that of the older file, which is said and mended by the full command
    assert "stale" in david["flags"] and "stale" not in after["anna"]["flags"]
    last = grade(folder, out, **TWO)
    assert last["david"]["points"] == "5.5" and "stale" not in last["david"]["flags"]


def test_what_has_a_grade_is_not_graded_again_for_another_choice(folder, out, capsys):
    """An exercise more is one exercise more; all of them later are no work."""
    grade(folder, out, exercises=["patchify"])
    capsys.readouterr()
    rows = grade(folder, out, exercises=["unpatchify"])
    assert "3 submissions: 3 graded now" in capsys.readouterr().out
    assert {row["max_points"] for row in rows.values()} == {"10.0"}
    grade(folder, out, **TWO)
    assert "3 submissions: 0 graded now, 3 before." in capsys.readouterr().out


def test_totals_say_of_how_many_exercises_they_are(folder, out):
    """A student of whom a part was graded has the sum of that part, and no final points."""
    grade(folder, out, only=["anna"], exercises=["patchify"])
    rows = grade(folder, out, only=["bob"], **TWO)
    assert [(row["exercises"], row["max_points"], row["final"]) for row in rows.values()] == [
        ("1", "6.0", "no"),
        ("2", "10.0", "yes"),
    ]
    assert [row["max_points"] for row in rows.values()] == ["6.0", "10.0"]


# --- tables of an earlier run ---------------------------------------------------------------------


def test_tables_of_an_earlier_run_are_renewed(folder, out):
    """Also without --for, and under the column's name of then."""
    grade(folder, out, formats=ALL, assignment="Patches (7)", **TWO)
    hand_in(folder, anna={"patchify": "failed", "unpatchify": "failed"})
    grade(folder, out, **TWO)
    assert [row["Patches (7)"] for row in table(out / "canvas.csv")][1:] == ["3.0", "7.5", "7.5"]
    assert [row["Grade"] for row in table(out / "moodle.csv")] == ["3.0", "7.5", "7.5"]


def test_pages_of_those_who_left_are_removed(folder, out):
    """A page without a row in the tables is an old one; the grade itself is kept."""
    grade(folder, out, formats=ALL, **TWO)
    (out / "feedback" / "notes.txt").write_text("mine")
    (folder / "bob.txt").unlink()
    assert set(grade(folder, out, **TWO)) == {"anna", "david"}
    assert len(list((out / "feedback").glob("*.html"))) == 2
    assert len(list((out / "gradescope").iterdir())) == 2
    assert len(list((out / "submissions").iterdir())) == 3
    assert (out / "feedback" / "notes.txt").exists()


# --- one number, one source -----------------------------------------------------------------------


def test_the_median_is_drawn_where_it_is_written():
    """Both are of those of whom something could be graded."""
    grades = [submission_grade(name, [exercise_grade()]) for name in ("Anna", "Bob")]
    grades += [
        submission_grade(f"s{i}", [exercise_grade(state="not_gradable", reason="crashed")])
        for i in range(3)
    ]
    summary = summarise(grades, [find("patchify")])
    source = report_page(summary)
    assert "<b>6</b><span>median of 2 who handed in" in source
    assert "Median 6 of 2 who handed in." in source


# --- cells ----------------------------------------------------------------------------------------

SIGNS = ("=", "+", "-", "@", "\t", "\r", "|", "＝")
HOSTILE = [f"{before}{sign}1+1" for sign in SIGNS for before in ("", "a;", 'a";', "a\n", "a,")]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_no_cell_is_a_formula_whatever_separates_the_cells(separator):
    """A spreadsheet that splits at semicolons or tabs sees no sign first, and no cell more."""
    text = write_table("student points", ([words, 1.5] for words in HOSTILE))
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
        assert not any(cell.lstrip(' "\ufeff').startswith(SIGNS) for cell in row), row
    if separator != ",":
        rows = text.removeprefix("\ufeff").splitlines()
        assert not any(separator in row for row in rows) and len(rows) == 1 + len(HOSTILE)


def test_two_names_are_never_one_cell():
    """What marks a formula is no name of somebody else's."""
    names = ["=x", "'=x", "''=x", "x", "'x", "a;b", "a,b", 'a"b', "a'b"]
    assert len({safe_cell(name) for name in names}) == len(names)


# --- names ----------------------------------------------------------------------------------------

COMPOSED, LOOSE = unicodedata.normalize("NFC", "Zoë"), unicodedata.normalize("NFD", "Zoë")


@pytest.mark.parametrize(
    "names", [("anna", "anna "), (COMPOSED, LOOSE), ("a\u200bb", "a\u200cb")], ids=ascii
)
def test_two_folders_of_one_name_are_open_and_both_are_named(names, tmp_path):
    """Nobody can say whose is whose: no point and no 0, until a folder has another name."""
    for name in names:
        put(tmp_path / "in", f"{name}/01_patches.ipynb", f"{name}/x.txt")
    parts = made_parts(find=find_submissions, extract=None, compare=lambda answers: {})
    choices = {"exercises": ["patchify"], "parts": parts}
    main_grade(tmp_path / "in", tmp_path / "out", **choices)
    rows = table(tmp_path / "out" / "grades.csv")
    assert len({row["student"] for row in rows}) == len(rows) == 2
    for row in rows:
        assert (row["state"], row["reason"]) == ("not_gradable", "ambiguous")
        assert all(ascii(name) in row["detail"].replace("’", "'") for name in names)
    main_grade(tmp_path / "in", tmp_path / "out", **choices)  # and so it stays


def test_anonymous_canvas_download_of_two_chapters_is_one_student(tmp_path):
    """The number behind an anonymous name is the file's, not the student's."""
    put(tmp_path, "anon_k3Yz_678904_01_patches.ipynb", "anon_k3Yz_678905_02_attention.ipynb")
    put(tmp_path, "LATE_anon_Q1x_678906_01_patches-1.ipynb", "anon_777_678907_text.html")
    found = {each.student: len(each.files) for each in find_submissions(tmp_path).submissions}
    assert found == {"anon_k3Yz": 2, "anon_Q1x": 1, "anon_777": 0}


# --- marks of another course ----------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 7])
def test_marks_of_all_chapters_raise_nobodys_maximum(size, tmp_path, out):
    """One file of a small class claims every exercise; the others' sums stay those of theirs."""
    honest = {f"s{i}": {"patchify": "passed"} for i in range(size)}
    claims = {exercise.id: "passed" for exercise in EXERCISES}
    rows = grade(hand_in(tmp_path / "in", mallory=claims, **honest), out)
    most = float(sum(exercise.points for exercise in in_file("01_patches")))
    assert {row["max_points"] for row in rows.values()} == {str(most)}
