"""The picture above ``progress()`` shows every part once more, and whose it is."""

import re

import pytest

from vitedu.checks import api
from vitedu.course import calls, results
from vitedu.exercises import EXERCISES, find

PARTS = [exercise.id for exercise in EXERCISES if exercise.part]


def boxes(own):
    """Give (style, first words) of the boxes of the picture, the legend's two first."""
    for name in own:
        results.record(report(name))
    page = results.progress_html()
    found = re.findall(r'<div style="(border[^"]*)">([^<]*(?:<br>[^<]*)?)', page)
    return [(style, text.replace("<br>", " ")) for style, text in found]


def test_every_part_of_the_model_and_of_training_has_a_box():
    """A new part of the syllabus needs a place."""
    numbers = set(re.findall(r"\d\.\d+", " ".join(text for _, text in boxes([])[2:])))
    assert numbers == {find(name).number for name in PARTS}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_passed_is_marked_by_more_than_colour(name):
    """Its boxes lose their dashes and get a tick; the others keep theirs."""
    drawn = boxes([name])
    number = next(exercise.number for exercise in EXERCISES if exercise.id == name)
    own = [text for style, text in drawn if "dashed" not in style]
    assert own[0] == f"✓ yours: 1 of {len(PARTS)}" and drawn[1][1].endswith(str(len(PARTS) - 1))
    assert len(own) > 1 and all(f"✓ {number}" in text for text in own[1:])
    assert not any("✓" in text for style, text in drawn if "dashed" in style)
    assert not [style for style, _ in boxes(PARTS)[2:] if "dashed" in style]


def report(exercise, status="passed"):
    return {"exercise": exercise, "status": status, "points": 1, "max_points": 1}


def test_the_best_result_decides():
    """A later failure takes no part away; exercises that are no part do not count."""
    for name in ("patchify", "softmax", "unpatchify"):
        results.record(report(name))
    results.record(report("softmax", "failed"))
    results.record(report("gelu", "failed"))
    own = {text for style, text in boxes([])[2:] if "dashed" not in style}
    numbers = {word for text in own for word in re.findall(r"\d\.\d+", text)}
    assert numbers == {find(name).number for name in ("patchify", "softmax")}


def test_progress_shows_it_above_its_table_in_a_notebook_only(monkeypatch, capsys):
    """The printed form stays text."""
    shown = []
    monkeypatch.setattr(calls, "show", lambda *forms: shown.extend(forms))
    api.progress("01_patches")
    text, html = shown
    assert html.startswith("<div ") and html.index("<table") > 0
    assert text == results.table_text("01_patches")
    assert html == results.progress_html("01_patches")
