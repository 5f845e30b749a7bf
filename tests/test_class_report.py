"""The instructor's page: counts that are right, names that are safe, nobody accused in passing."""

import re
from dataclasses import replace

import pytest
from made_class import exercise_grade, submission_grade
from test_feedback import HOSTILE, assert_harmless, everything

from vitedu.checks.writing.checker import find_checker
from vitedu.exercises import EXERCISES, find, in_notebook
from vitedu.grading.grades import WORDS, Flag, safe_name
from vitedu.grading.pages import class_report
from vitedu.grading.pages.class_report import (
    explain_mistake,
    name_idea,
    report_page,
    summarise,
)
from vitedu.grading.pages.feedback import STUDENT_FLAGS

TWO = [find("patchify"), find("unpatchify")]


@pytest.fixture(autouse=True)
def words(monkeypatch):
    """Words that show where they stand."""
    names = {"explain_mistake": lambda _, mistake: (f"name of {mistake}", "because.", "look.")}
    names["name_idea"] = lambda _, part: f"idea of {part}"
    for name, function in names.items():
        monkeypatch.setattr(class_report, name, function)


def a_class():
    failed, gone = exercise_grade("unpatchify", "failed"), {"points": 0.0, "attempted": False}
    second = exercise_grade("unpatchify", "failed", misconceptions=[], **gone)
    unclear = exercise_grade("unpatchify", "not_gradable")
    return [
        submission_grade("Anna", [exercise_grade(), failed], seconds=2.0),
        submission_grade("Bob", [exercise_grade(), unclear], seconds=3.0),
        submission_grade("Cleo", [exercise_grade(), failed], isolation="partial: no x"),
        submission_grade("Dan", [exercise_grade(), second]),
    ]


def report(grades, flags=None, exercises=TWO, problems=()):
    grades = (replace(g, flags=[*g.flags, *(flags or {}).get(g.student, ())]) for g in grades)
    summary = summarise(grades, exercises, problems)
    source = report_page(summary)
    return source, assert_harmless(source).said


def test_numbers_of_the_head_are_those_of_the_class():
    """Of all who handed in, with the points that are known: 7.5, 7.5, 6 and 6; Eve has nothing."""
    nothing = [exercise_grade(each.id, "not_gradable") for each in TWO]
    _, page = report([*a_class(), submission_grade("Eve", nothing)])
    of = "of 4 who handed in"
    numbers = f"5 submissions 6 mean core points (6) {of} 6.75 mean points (10) {of} 6.75 median"
    assert f"{numbers} {of} 2 with open points 2 need a person" in page
    assert "points that are known so far; 2 of 5 are not final" in page
    _, page = report(a_class()[2:])
    assert "6.75 mean points (10) 6.75 median 0 with open" in page


def test_distribution_counts_everybody():
    """The figures beside the bars add up to the class, whatever the number of points."""
    _, page = report(a_class())
    part = page[page.index("Points Median") :]
    assert "Median 6.75. Pale: not final." in part
    assert "6–7 2 students 2 7–8 2 students 2 8–9 0 students" in part
    for exercises in (TWO[:1], in_notebook("01_patches"), EXERCISES):
        names = [exercise.id for exercise in exercises]
        grades = [submission_grade(name, [exercise_grade(each) for each in names]) for name in "ab"]
        part = report(grades, exercises=exercises)[1].split("Points Median")[1]
        bars = re.findall(r"(\d+)–(\d+) (\d+) students?", part)
        assert len(bars) <= 16 and sum(int(bar[2]) for bar in bars) == 2
        assert int(bars[-1][1]) == sum(exercise.points for exercise in exercises)


def test_what_to_teach_again_comes_first_with_numbers():
    """The idea that most missed, of how many who tried, and the mistake that most of them made."""
    _, page = report(a_class())
    part = page[page.index("Teach again") : page.index("Everybody")]
    assert "1.5 put it back together: idea of values. Missed by 2 of 2 who tried (100 %)." in part
    assert "2 of them: name of row_major. because. look." in part and "1.1" not in part
    assert "Nobody missed an idea." in report([submission_grade()])[1]
    assert name_idea("patchify", "values") == "every pixel stands where it should"
    assert name_idea("tokens_at_224", "") == ""  # a value has no parts


def test_who_needs_most_comes_first():
    """Whoever misses most of the core, then of all."""
    weak = exercise_grade("patchify", "failed")
    grades = [*a_class(), submission_grade("Eve", [weak, exercise_grade("unpatchify")])]
    _, page = report(grades)
    part = page[page.index("to look at") : page.index("Answers")]
    assert re.findall(r"Anna|Bob|Cleo|Dan|Eve", part) == ["Eve", "Bob", "Dan", "Anna", "Cleo"]
    assert "Eve 1.5 5.5 Bob 6 6 +4? could not be graded : unpatchify: " in part


def test_mistakes_are_counted_without_names():
    """Two students made it; the explanation stands beside the count, no student does."""
    _, page = report(a_class())
    part = page[page.index("the hardest first") : page.index("Points Median")]
    assert "unpatchify put it back together 2 × name of row_major" in part
    assert not any(name in part for name in ("Anna", "Bob", "Cleo", "Dan"))


def test_who_needs_a_person_is_listed_with_the_reason():
    """Not gradable, similar, forbidden, late, each in the student's row."""
    grades = a_class()
    grades[0].exercises[0].flags.append(Flag("dangerous", "no answer needs f_back"))
    grades[2].flags.append(Flag("late", "Canvas calls it late"))
    _, page = report(grades, {"Dan": [Flag("similar", "patchify: as Cleo's")]})
    part = page[page.index("Everybody") : page.index("Answers")]
    unclear = "the answer did not come to an end and would not be interrupted"
    for sentence in (
        f"could not be graded : unpatchify: {unclear} (no reply within 10 s)",
        "reaches for what no answer needs : patchify: no answer needs f_back",
        "handed in late : Canvas calls it late",
        "the same answers as somebody else's : patchify: as Cleo's",
        "No remark here took a point from anybody",
    ):
        assert sentence in part


def test_one_concern_about_many_exercises_is_one_line():
    """Named together, or counted where it is all of them."""
    flag = Flag("like_reference", "the published reference")
    names = [exercise.id for exercise in in_notebook("01_patches")]
    anna = [exercise_grade(name, flags=[flag]) for name in names]
    bob = [exercise_grade(name, flags=[flag] * (i < 2)) for i, name in enumerate(names)]
    grades = [submission_grade("Anna", anna), submission_grade("Bob", bob)]
    _, page = report(grades, exercises=in_notebook("01_patches"))
    label = "the published reference, names and layout aside"
    assert f"{label} : all {len(names)} exercises" in page
    assert f"{label} : {names[0]}, {names[1]}" in page


def test_nobody_needs_a_person_for_how_an_answer_was_found():
    """Remarks that only say how are not listed, and a student may read them."""
    harmless = {kind for kind, table in WORDS["flags"].items() if table.get("look") is False}
    flags = [Flag(kind, kind) for kind in harmless]
    _, page = report([submission_grade(exercises=[exercise_grade(flags=flags)])])
    assert "0 need a person" in page
    assert not {"similar", "like_reference", "dangerous"} & (harmless | STUDENT_FLAGS)


def test_what_was_left_out_matters_where_the_answer_failed():
    """A passed answer did without."""
    flag = Flag("left_out", "needed, and left out: a file")
    passed = exercise_grade(flags=[flag])
    failed = exercise_grade("unpatchify", "failed", flags=[flag])
    assert "0 need a person" in report([submission_grade(exercises=[passed])])[1]
    assert "unpatchify: needed, and left out" in report([submission_grade(exercises=[failed])])[1]


def test_what_belongs_to_nobody_is_told():
    """Files in the folder that bear no name."""
    _, page = report(a_class(), problems=[Flag("other_file", "x.bin is not a notebook")])
    assert "of nobody known or out of date x.bin is not a notebook" in page


def test_everybody_has_a_row_with_a_link_to_the_page():
    """And a cell an exercise, by sign or by points."""
    source, page = report(a_class())
    for student in ("Anna", "Bob", "Cleo", "Dan"):
        assert f'href="feedback/{safe_name(student)}.html"' in source
    part = page[page.index("Answers") : page.index("Exercises, the")]
    assert "Anna 7.5 ✓ 1.5" in part and "Bob 6 ✓ ?" in part and "Dan 6 ✓ ○" in part


def test_hostile_names_are_harmless():
    """The same text that a feedback page withstands."""
    exercises = [find(each.exercise) for each in everything().exercises]
    flags = {HOSTILE: [Flag(HOSTILE, HOSTILE)]}
    source, page = report([everything()], flags, exercises, [Flag("x", HOSTILE)])
    assert "alert(1)" in page and "\u202e" not in source


def test_every_mistake_of_every_bank_has_words():
    """What a checker can name, the report can explain."""
    for exercise in EXERCISES:
        checker = find_checker(exercise.id)
        for mistake in checker.mistakes if hasattr(checker, "mistakes") else checker.bank:
            name, why, _ = explain_mistake(exercise.id, mistake.id)
            assert name == mistake.name and why == mistake.why
    assert explain_mistake("patchify", "constant_factor")[0]
