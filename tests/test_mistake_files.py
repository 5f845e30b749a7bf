"""Known mistakes as TOML: what the loader takes and refuses, and that no check stops for it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from proof import inspection
from proof.inspection import checker_problems

from vitedu.checks import api
from vitedu.checks.writing import checker, mistake_files
from vitedu.checks.writing.checker import find_checker
from vitedu.checks.writing.mistake_files import family, read_values, read_words, shared_bank
from vitedu.exercises import find
from vitedu.ground.words import WordsError

SOUND = """[[mistake]]
id = "shifted"
name = "the patches are shifted"
expected = "patch 0 at the top left"
why = "Each has its place."
try = "Look at the slice."
edits = [["x", "x + 1"]]
"""


def module(path, text, **names):
    """Stand in for the module of a checker with words beside it."""
    path.with_suffix(".toml").write_text(text)
    return SimpleNamespace(__file__=str(path), **names)


FAULTS = {
    "unknown key": ("why =", "wy =", 'mistake shifted: has the unknown key "wy"; write "why".'),
    "missing key": ('why = "Each has its place."\n', "", 'mistake shifted: has no "why"; add it'),
    "no text": ('"Look at the slice."', "3", '"try" must be a text (got 3)'),
    "no pair": ('["x", "x + 1"]', '["x"]', 'an edit is a pair ["old text", "new text"]'),
    "same text": ('["x", "x + 1"]', '["x", "y"], ["x", "z"]', "two edits change the same text"),
    "family": ('id = "shifted"', 'family = "shfted"', 'there is no family "shfted"'),
    "bank": (SOUND, '[[mistake]]\nbank = "modus"\n', 'there is no bank "modus"'),
    "two of one id": (SOUND, SOUND + SOUND, 'two mistakes have the id "shifted"; rename one.'),
    "no mistakes": ("[[mistake]]", "[[mistakes]]", "has no [[mistake]]; write one"),
    "more": ("[[mistake]]", "note = 1\n[[mistake]]", 'has the unknown key "note"'),
}


@pytest.mark.parametrize(("old", "new", "expected"), FAULTS.values(), ids=FAULTS)
def test_fault_names_file_mistake_and_remedy(old, new, expected, tmp_path):
    """One line, whatever it is."""
    with pytest.raises(WordsError) as caught:
        read_words(module(tmp_path / "toy.py", SOUND.replace(old, new, 1)))
    assert "toy.toml" in str(caught.value) and expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mistake_has_its_words_and_its_edits(tmp_path):
    """Edits in their order, the part it fails, other versions."""
    text = SOUND + 'part = "errors"\nalso = [[["x", "x + 2"]]]\n'
    (one,) = read_words(module(tmp_path / "toy.py", text))["bank"]
    assert (one.id, one.part, one.next_step) == ("shifted", "errors", "Look at the slice.")
    assert one.edits == {"x": "x + 1"} and one.also == ({"x": "x + 2"},)


def test_family_gives_words_and_what_stands_beside_it_wins(tmp_path):
    """And a bank stands for all of its mistakes, in its place."""
    text = '[[mistake]]\nfamily = "percent"\nwhy = "So."\n\n[[mistake]]\nbank = "modes"\n'
    first, *others = read_words(module(tmp_path / "toy.py", text))["bank"]
    assert (first.name, first.why) == (family("percent").name, "So.")
    assert [mistake.id for mistake in others] == [mistake.id for mistake in shared_bank("modes")]


VALUE = """[idea]
share = "a half"

[rtol]
share = 0.1

[[share]]
id = "doubled"
value = "2 * half"
name = "it is doubled"
why = "There is one."
try = "Count."
"""
VALUE_FAULTS = {
    "name": ("2 * half", "2 * hlaf", "2 * hlaf cannot be computed (NameError"),
    "syntax": ("2 * half", "2 *", "2 * cannot be computed (SyntaxError"),
    "matches": ("why", 'matches = "value >"\nwhy', "value > cannot be computed (SyntaxError"),
    "exercise": ("[[share]]", "[[shaer]]", 'unknown key "shaer"; write "share"'),
}


def test_wrong_value_is_an_expression_of_the_chapter(tmp_path):
    """It is computed from what is right, and another expression may recognise more."""
    text = VALUE + 'matches = "value > 2 * half"\n'
    values = module(tmp_path / "values.py", text)
    share = read_values(values, SimpleNamespace(half=0.5))["share"]
    (one,) = share["bank"]
    assert (share["proves"], share["rtol"]) == ("a half", 0.1)
    assert one.value == 1.0 and one.recognises(1.1) and not one.recognises(0.9)


@pytest.mark.parametrize(("old", "new", "expected"), VALUE_FAULTS.values(), ids=VALUE_FAULTS)
def test_fault_of_a_value_names_it(old, new, expected, tmp_path):
    """As for mistakes in code."""
    text = VALUE.replace(old, new, 1)
    values = module(tmp_path / "values.py", text)
    with pytest.raises(WordsError) as caught:
        read_values(values, SimpleNamespace(half=0.5))
    assert "values.toml" in str(caught.value) and expected in str(caught.value)


def test_check_without_its_words_is_no_verdict(monkeypatch, capsys):
    """The report names the file and the remedy, and the notebook goes on."""

    def read(path):
        raise WordsError(f"{path.name}: the file is missing; install vitedu again.")

    monkeypatch.setattr(mistake_files, "read", read)
    find_checker.cache_clear()
    report = api.check(lambda x: x, "gelu")
    find_checker.cache_clear()
    assert report.status == "error" and "gelu.toml: the file is missing" in str(report)


# --- vitedu lint ----------------------------------------------------------------------------------


@pytest.mark.bank
def test_checkers_and_words_of_the_course_are_sound():
    """Every edit fits its reference, and every checker is there."""
    assert checker_problems() == []


PLACE = "vitedu/checks/attention/softmax"


def test_a_value_of_another_name_is_no_field_of_a_checker(monkeypatch):
    """A misspelt name says so; it would be left out in silence."""
    from vitedu.checks.attention import softmax

    monkeypatch.setattr(softmax, "forbiden", frozenset(), raising=False)
    with pytest.raises(ValueError, match="'forbiden' is not one of .*'forbidden'"):
        find_checker.__wrapped__("softmax")


def test_lint_tells_of_a_checker_that_cannot_be_loaded(monkeypatch):
    """Whatever the reason is, with the file."""
    monkeypatch.setattr(inspection.checkers, "find_checker", lambda name: 1 / 0)
    (problem,) = checker_problems([find("softmax")])
    assert problem == f"{PLACE}.py: ZeroDivisionError: division by zero; correct it."


def with_bank(*mistakes):
    """Find checkers that have these mistakes alone."""
    return lambda exercise: replace(find_checker(exercise), bank=mistakes)


MISTAKES = {
    "sound": ({"x.amax(": "x.amix("}, "values", None),
    "no place": ({"x.amaximum(": "x.amax("}, "values", "must meet exactly one place of the refer"),
    "no program": ({"x.amax(": "x.amax(("}, "values", "SyntaxError"),
    "nothing": ({}, "values", "has no edits; write them."),
    "part": ({"x.amax(": "x.amix("}, "valeus", 'no case is of the part "valeus"; the parts are'),
}


@pytest.mark.parametrize(("edits", "part", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_lint_tells_of_a_mistake_that_does_not_fit(edits, part, expected, monkeypatch):
    """The reference, or a case, may have changed since it was written."""
    mistake = checker.Mistake("one", "", "", "", "", edits, part)
    monkeypatch.setattr(inspection.checkers, "find_checker", with_bank(mistake))
    problems = checker_problems([find("softmax")])
    assert problems == [] if expected is None else expected in problems[0]


def test_lint_tells_of_an_empty_bank(monkeypatch):
    """An exercise whose mistakes nobody has written yet."""
    monkeypatch.setattr(inspection.checkers, "find_checker", with_bank())
    (problem,) = checker_problems([find("softmax")])
    assert problem == f"{PLACE}.toml: has no mistake of softmax; write the typical ones."
