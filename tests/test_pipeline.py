"""The picture above ``progress()`` shows every part once more, and whose it is."""

import base64
import html
import re
from xml.etree import ElementTree

import pytest

from vitedu.checks import api
from vitedu.course import pipeline, results
from vitedu.course.display import TextAndHtml
from vitedu.course.pipeline import pipeline_html, pipeline_svg
from vitedu.exercises import EXERCISES

PARTS = [exercise.id for exercise in EXERCISES if exercise.part]


def ids(parts):
    """Give the exercises of parts and of those inside them."""
    for name, _, *inside in parts:
        yield from [name, *ids(inside)] if name else ids(inside)


def shapes(own):
    """Give (rectangles, texts) of the picture, the white card first."""
    drawn = list(ElementTree.fromstring(pipeline_svg(own)))
    return [s for s in drawn if s.tag.endswith("rect")], [s for s in drawn if s.text]


def test_every_part_of_the_model_and_of_training_has_a_box():
    """A new part of the syllabus needs a place."""
    assert {name for row in pipeline.ROWS for name in ids(row)} == set(PARTS)


@pytest.mark.parametrize("own", [[], PARTS[:9], PARTS], ids=["none", "nine", "all"])
def test_everything_lies_on_the_card_and_boxes_hold_their_words(own):
    """Letters are taken as seven tenths of their height wide."""
    (card, *boxes), texts = shapes(own)
    width, height = float(card.get("width")), float(card.get("height"))
    edges = [[float(box.get(n)) for n in ("x", "y", "width", "height")] for box in boxes]
    assert all(x > 0 and y > 0 and x + w < width and y + h < height for x, y, w, h in edges)
    for text in texts:
        x, y, half = float(text.get("x")), float(text.get("y")), 3.5 * len(text.text)
        if text.get("text-anchor") == "middle":
            assert half < x < width - half
            inside = [w for bx, by, w, h in edges if bx < x < bx + w and by < y < by + h]
            assert not inside or 2 * half < min(inside)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_passed_is_marked_by_more_than_colour(name):
    """Its boxes lose their dashes and get a tick; the others keep theirs."""
    boxes, texts = shapes([name])
    number = next(exercise.number for exercise in EXERCISES if exercise.id == name)
    ticks = [text.text for text in texts if text.text.startswith("✓ ")]
    assert ticks and all(tick.split()[1] == number for tick in ticks)
    solid = [box for box in boxes[1:] if box.get("stroke-dasharray") is None]
    assert len(solid) == len(ticks) + 1  # and that of the legend
    assert any(text.text == f"yours: 1 of {len(PARTS)}" for text in texts)


def report(exercise, status="passed"):
    return {"exercise": exercise, "status": status, "points": 1, "max_points": 1}


def test_the_best_result_decides_and_words_say_the_same():
    """A later failure takes no part away; exercises that are no part do not count."""
    for name in ("patchify", "softmax", "unpatchify"):
        results.record(report(name))
    results.record(report("softmax", "failed"))
    results.record(report("gelu", "failed"))
    page = pipeline_html(results.load())
    words = html.unescape(re.search('alt="(.*?)"', page)[1])
    assert "Yours: 1.1 patchify, 2.1 softmax. The reference's: 1.2 PatchEmbed, " in words
    assert "3.2 gelu" in words.partition("reference")[2] and "unpatchify" not in words
    svg = base64.b64decode(re.search('base64,(.*?)"', page)[1]).decode()
    assert svg == pipeline_svg({"patchify", "softmax"})


def test_progress_shows_it_above_its_table_in_a_notebook_only(monkeypatch, capsys):
    """The printed form stays text."""
    shown = []
    monkeypatch.setattr(api, "show", shown.append)
    api.progress("01_patches")
    assert isinstance(shown[0], TextAndHtml)
    assert shown[0].html.startswith("<img ") and shown[0].html.index("<table") > 0
    assert shown[0].text == results.table_text("01_patches")
    assert pipeline_html({}) in shown[0].html
