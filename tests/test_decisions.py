"""What a person decides about open points: read back, kept, never taken for another submission."""

import csv
from dataclasses import replace

import pytest
from made_class import exercise_grade, submission_grade

from vitedu.grading.decisions import apply_decisions, read_decisions
from vitedu.grading.pages.exports import open_csv
from vitedu.grading.pages.feedback import feedback_page


def grade(student="Anna"):
    """One exercise right, one open."""
    open_one = exercise_grade("unpatchify", "not_gradable")
    return submission_grade(student, [exercise_grade(), open_one])


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
    now = apply_decisions(grade(), read_decisions(path, [grade()], "the instructor"))
    each = now.exercises[1]
    assert (each.points, each.comment, each.decided_by) == (found, "seen", "the instructor")
    assert each.state == ("passed" if found == 4 else "failed") and now.open_points == 0
    assert now.points == 6 + found
    assert "Your instructor decided about these points: seen" in feedback_page(now)


def test_rows_without_points_stay_open(tmp_path):
    """The file may be filled in bit by bit."""
    assert read_decisions(filled(tmp_path, " "), [grade()], "me") == {}


def test_names_that_a_spreadsheet_would_compute_come_back(tmp_path):
    """The apostrophe in front of them is not part of the name."""
    odd = grade("=Anna")
    assert set(read_decisions(filled(tmp_path, "1", grades=[odd]), [odd], "me")) == {"=Anna"}


@pytest.mark.parametrize(
    ("points", "words"),
    [("5", "0 to 4"), ("-1", "0 to 4"), ("many", "got 'many'"), ("nan", "0 to 4")],
)
def test_impossible_points_are_refused(tmp_path, points, words):
    """With the line, and nothing is taken."""
    with pytest.raises(ValueError, match=rf"line 2.*{words}"):
        read_decisions(filled(tmp_path, points), [grade()], "me")


def test_a_row_must_name_what_is_open(tmp_path):
    """Nobody of that name, or an exercise that was graded."""
    path = filled(tmp_path, "1")
    with pytest.raises(ValueError, match="no student 'Anna'"):
        read_decisions(path, [grade("Bob")], "me")
    graded = submission_grade("Anna", [exercise_grade(), exercise_grade("unpatchify")])
    with pytest.raises(ValueError, match="not open"):
        read_decisions(path, [graded], "me")


def test_a_later_submission_waits_for_a_person_again(tmp_path):
    """A decision belongs to the files that it was made for."""
    known = read_decisions(filled(tmp_path, "3"), [grade()], "me")
    assert apply_decisions(replace(grade(), digest="another"), known).open_points == 4
