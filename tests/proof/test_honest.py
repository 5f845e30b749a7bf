"""Honest notebooks: their answers are right, and the grader says so."""

import functools
from collections import Counter

import pytest
from conftest import sample, whole

from proof.honest import students
from proof.honest.grading import grade
from proof.honest.running import wrong_answers
from vitedu.exercises import BY_ID

STUDENTS = functools.cache(students)  # read once, by the worker that judges them
# of 102 students: raise the first and lower the others when the grader becomes fairer
FULL_AT_LEAST, BELOW_AT_MOST, ACCUSED_AT_MOST = 97, 0, 0


def test_notebooks_are_many_and_say_what_they_are():
    """A hundred, each with exercises of the course and a verdict that a grader can give."""
    assert len(STUDENTS()) >= 100
    for student in STUDENTS():
        assert student.files and student.about and student.verdict in ("full", "open")
        assert student.exercises and BY_ID.keys() >= set(student.exercises), student.name


@whole
@pytest.mark.notebook
@pytest.mark.timeout(1800)
def test_answers_are_right():
    """In IPython, in order: no cell raises, and ``check`` finds no fault in any answer."""
    assert {student.name: wrong for student, wrong in wrong_answers(STUDENTS()) if wrong} == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_most_honest_notebooks_have_full_points(tmp_path):
    """Every sixth, graded as one class; a reason for each missing point; few are accused."""
    verdicts = grade(sample(STUDENTS(), 6), tmp_path)
    counts = Counter(verdict.word for verdict in verdicts)
    lost = {verdict.student: verdict.reasons for verdict in verdicts if verdict.word != "full"}
    assert len(lost) <= len(STUDENTS()) - FULL_AT_LEAST and counts["below"] <= BELOW_AT_MOST, lost
    accused = {verdict.student: verdict.accusations for verdict in verdicts if verdict.accusations}
    assert len(accused) <= ACCUSED_AT_MOST, accused
