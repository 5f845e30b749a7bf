"""What a person decides about open points: read back, kept, never taken for another submission."""

import csv
from dataclasses import replace

import pytest
from made_class import exercise_grade, submission_grade

from vitedu.grading.pages.decisions import apply, bind_rows, read_points
from vitedu.grading.pages.exports import open_csv
from vitedu.grading.pages.feedback import feedback_page


def grade(student="Anna"):
    """One exercise right, one open."""
    open_one = exercise_grade("unpatchify", "not_gradable", digest="d")
    return submission_grade(student, [exercise_grade(), open_one])


def read(path, grades, by="me"):
    """Read a filled-in open.csv."""
    return read_points(path, grades, by, only_open=True, warn=print)


def filled(tmp_path, points, comment="seen", grades=None, separator=","):
    """Fill the open rows in as a spreadsheet would."""
    rows = list(csv.DictReader(open_csv(grades or [grade()]).lstrip("\ufeff").splitlines()))
    path = tmp_path / "open.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=separator)
        writer.writeheader()
        for row in rows:
            writer.writerow(row | {"points": points, "comment": comment})
    return path


@pytest.mark.parametrize(
    ("points", "separator", "found"),
    [("2.5", ",", 2.5), ("2,5", ";", 2.5), ("4", ",", 4.0), ("0", ",", 0.0)],
)
def test_points_and_comment_come_back(tmp_path, points, separator, found):
    """Also from a spreadsheet that writes decimal commas; who decided stays in the record."""
    path = filled(tmp_path, points, separator=separator)
    now = apply(grade(), read(path, [grade()], "the instructor"))
    each = now.exercises[1]
    assert (each.points, each.comment) == (found, "seen")
    assert each.decided_by == "the instructor (by machine: open)"
    assert each.state == ("passed" if found == 4 else "failed") and now.open_points == 0
    assert now.points == 6 + found
    assert "Your instructor decided about these points: seen" in feedback_page(now)


def test_rows_without_points_stay_open(tmp_path):
    """The file may be filled in bit by bit."""
    assert read(filled(tmp_path, " "), [grade()], "me") == {}


def test_names_that_a_spreadsheet_would_compute_come_back(tmp_path):
    """The apostrophe in front of them is not part of the name."""
    odd = grade("=Anna")
    assert set(read(filled(tmp_path, "1", grades=[odd]), [odd], "me")) == {"=Anna"}


@pytest.mark.parametrize(
    ("points", "words"),
    [("5", "0 to 4"), ("-1", "0 to 4"), ("many", "got 'many'"), ("nan", "0 to 4")],
)
def test_impossible_points_are_refused(tmp_path, points, words):
    """With the line, and nothing is taken."""
    with pytest.raises(ValueError, match=rf"line 2.*{words}"):
        read(filled(tmp_path, points), [grade()], "me")


def test_a_row_must_name_what_is_open(tmp_path, capsys):
    """Of an exercise that was graded it is refused; of nobody in the class there is a warning."""
    path = filled(tmp_path, "1")
    assert read(path, [grade("Bob")], "me") == {}
    assert capsys.readouterr().out == "open.csv, line 2: no student 'Anna' is graded\n"
    graded = submission_grade("Anna", [exercise_grade(), exercise_grade("unpatchify")])
    with pytest.raises(ValueError, match="not open"):
        read(path, [graded], "me")


def test_a_later_submission_waits_for_a_person_again(tmp_path):
    """A decision belongs to the files that it was made for."""
    known = read(filled(tmp_path, "3"), [grade()], "me")
    later = [replace(each, digest="another") for each in grade().exercises]
    assert apply(replace(grade(), exercises=later), known).open_points == 4


def overridden(tmp_path, *rows, grades=None):
    """Write an overrides.csv and apply it."""
    path = tmp_path / "overrides.csv"
    path.write_text("\n".join(["student,exercise,points,reason", *rows]), encoding="utf-8")
    known = grades or [grade()]
    decisions = read_points(path, known, "overrides.csv", only_open=False, warn=print)
    return [apply(each, decisions) for each in known]


def test_an_override_counts_whatever_the_machine_says(tmp_path):
    """By id or number; the machine's points stay to be read, also on the student's page."""
    (now,) = overridden(tmp_path, "Anna,1.1,4.5,copied from Bob", "Anna,unpatchify,4,")
    first, second = now.exercises
    assert (first.state, first.points, second.state, second.points) == ("failed", 4.5, "passed", 4)
    assert first.decided_by == "overrides.csv (by machine: 6 points)"
    assert now.points == 8.5 and now.open_points == 0
    assert "copied from Bob" in feedback_page(now)
    untouched = exercise_grade(state="failed", points=0.0, attempted=False)
    (now,) = overridden(
        tmp_path, "Anna,1.1,6,orally", grades=[submission_grade("Anna", [untouched])]
    )
    assert now.exercises[0].state == "passed" and now.exercises[0].attempted


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("Anna,9.9,3,x", "line 2: there is no exercise"),
        ("Anna,softmax,3,x", "line 2: 'softmax' of Anna is not graded"),
        ("Anna,1.1,7,x", "line 2: points must be a number from 0 to 6"),
    ],
)
def test_an_override_that_makes_no_sense_is_refused(row, words, tmp_path):
    """With its line, before any table is written."""
    with pytest.raises(ValueError, match=words):
        overridden(tmp_path, row)


def test_an_override_may_be_a_comment_alone(tmp_path, capsys):
    """The points stay the machine's; a row of somebody else is a warning and stops nothing."""
    (now,) = overridden(tmp_path, "Zoe,1.1,3,x", "Anna,1.1,,see me")
    assert now.exercises[0].points == 6 and not now.exercises[0].decided_by
    assert "Your instructor says: see me" in feedback_page(now)
    assert capsys.readouterr().out == "overrides.csv, line 2: no student 'Zoe' is graded\n"


def test_a_row_ends_with_the_files_for_which_it_was_written():
    """After a new hand-in it counts no more, until its words change."""

    def rows(reason):
        return {"Anna": {"patchify": {"points": 3.0, "comment": reason, "by": "overrides.csv"}}}

    bound, stale = bind_rows(rows("oral"), {}, {"Anna": "first"})
    assert stale == [] and bind_rows(rows("oral"), bound, {"Anna": "first"}) == (bound, [])
    old = rows("oral")
    later, stale = bind_rows(old, bound, {"Anna": "second"})
    assert old == {"Anna": {}} and "Anna has handed in anew since the row of patchify" in stale[0]
    assert bind_rows(rows("oral"), later, {"Anna": "second"})[1] == stale
    assert bind_rows(rows("oral, again"), later, {"Anna": "second"})[1] == []


def test_an_override_is_of_the_student_whose_cell_it_is(tmp_path):
    """``=x`` and ``'=x`` have cells of their own."""
    twins = [grade("=x"), grade("'=x")]
    now = overridden(tmp_path, "'=x,1.1,1,", "''=x,1.1,2,", grades=twins)
    assert [each.exercises[0].points for each in now] == [1, 2]
