"""Deadlines: the most particular row counts, and points go where a row says so."""

import csv
import io
import os
from datetime import datetime

import pytest
from made_class import exercise_grade, hand_in, made_parts, submission_grade
from test_publish import CHOICES, CLASS

from vitedu.exercises import find
from vitedu.grading.pages.deadlines import apply_deadlines, read_deadlines
from vitedu.grading.pages.exports import canvas_csv
from vitedu.grading.pages.publish import main_grade


def rows(tmp_path, *lines, students=("Anna", "Bob"), warn=print):
    path = tmp_path / "deadlines.csv"
    path.write_text("\n".join(["student,notebook,due,points_a_day", *lines]), encoding="utf-8")
    return read_deadlines(path, students, warn)


def at(text):
    return datetime.fromisoformat(text).timestamp()


def test_the_most_particular_row_counts(tmp_path):
    """A student's own before everybody's, a notebook's before that of all."""
    table = rows(tmp_path, ",,2026-10-05", ",01,2026-10-06 12:00", "Anna,,2026-10-09 12:00")
    times = {"01_patches": at("2026-10-06 13:00"), "02_attention_more": at("2026-10-05 23:00")}

    def late(student, times=times):
        own = [exercise_grade(), exercise_grade("softmax")]
        flags = apply_deadlines(submission_grade(student, own), table, times).flags
        return [(flag.kind, flag.message) for flag in flags]

    words = "01_patches: handed in 2026-10-06 13:00, due 2026-10-06 12:00, 1 day late"
    assert late("Anna") == [] and late("Bob") == [("late", words)]
    assert len(late("Bob", {"": at("2026-10-08 13:00")})) == 2  # one file of another name
    assert late("Bob", {}) == []


def test_points_go_by_the_day_and_never_below_zero(tmp_path):
    """Once a notebook, in every sum, and not in the other notebook's."""
    table = rows(tmp_path, ",01,2026-10-05,2", ",02,2026-10-05,100")
    own = [exercise_grade(), exercise_grade("softmax"), exercise_grade("gelu")]
    times = {"01_patches": at("2026-10-07 01:00"), "02_attention": at("2026-10-06 01:00")}
    grade = apply_deadlines(submission_grade("Anna", own), table, times)
    assert grade.points == (6 - 2 * 2) + 0 + 3 and grade.flags[0].message.endswith("4 points less")
    table = canvas_csv([grade], [find("patchify"), find("gelu")])
    assert list(csv.reader(io.StringIO(table)))[2][-2:] == ["2.0", "3.0"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (",01,soon", "line 2: Invalid isoformat.*A date is written 2026-10-05 23:59"),
        (",10_x,2026-10-05", "line 2: there is not a notebook '10_x'"),
        (",01,2026-10-05,-1", "line 2: points_a_day must be 0 or more"),
    ],
)
def test_rows_that_make_no_sense_are_refused(line, words, tmp_path):
    """With their line."""
    with pytest.raises(ValueError, match=words):
        rows(tmp_path, line)


def test_a_class_has_its_deadlines_in_the_folder_of_grades(tmp_path, out, capsys):
    """Tables, pages and the terminal follow; who is not in the class is told and stops nothing."""
    folder = hand_in(tmp_path / "in", **CLASS)
    out.mkdir()
    lines = "student,notebook,due,points_a_day", ",,2026-10-05,1", "Zoe,,1"
    (out / "deadlines.csv").write_text("\n".join(lines))
    for path in folder.iterdir():
        os.utime(path, (at("2026-10-06 10:00"), at("2026-10-06 10:00")))
    main_grade(folder, out, parts=made_parts(), **CHOICES)
    totals = list(csv.DictReader(io.StringIO((out / "totals.csv").read_text("utf-8-sig"))))
    assert [(row["points"], row["flags"]) for row in totals] == [
        ("6.5", "late"),
        ("5.0", "similar late"),
    ]
    assert "handed in late" in (out / "report.html").read_text("utf-8")
    assert "deadlines.csv, line 3: no student 'Zoe' is graded" in capsys.readouterr().out
