"""The hints of an exercise, as calls that are counted and as buttons that are not."""

import re
from html.parser import HTMLParser

import pytest

from vitedu.course import results
from vitedu.course.hints import hints_html, next_hint
from vitedu.exercises import EXERCISES, find


class Outline(HTMLParser):
    """Notes each text with the number of ``<details>`` around it."""

    def __init__(self):
        super().__init__()
        self.open, self.found = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        assert {name for name, _ in attrs} <= {"style"}  # no script, and closed at first

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.found.append((self.open.count("details"), self.open[-1], data))


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_each_hint_opens_below_the_button_of_the_one_before(exercise):
    """Button and text of hint n stand in n boxes, all in words alone; nothing is left open."""
    outline = Outline()
    outline.feed(hints_html(exercise.id))
    outline.close()
    assert outline.open == []
    expected = []
    for number, text in enumerate(exercise.hints, start=1):
        expected += [(number, "summary", f"hint {number} of 3"), (number, "div", text)]
    assert outline.found[:6] == expected
    last = "".join(text for depth, _, text in outline.found[6:] if depth == 3)
    assert last == f'That was the last. solution("{exercise.id}") shows the reference.'


def test_buttons_store_nothing_and_unknown_exercises_have_none(store):
    """So no row of ``progress()`` says how many hints were taken, by a call or by a button."""
    assert hints_html("patchify") and hints_html("check") == hints_html("<b>") == ""
    assert not store.exists()
    assert next_hint(find("patchify")).startswith("1.1 patchify, hint 1 of 3: ")
    assert results.load()["patchify"]["hints_used"] == 1 and "hint" not in results.table_text()
    assert re.search("hint 1 of 3.*hint 2 of 3.*hint 3 of 3", hints_html("patchify"), re.DOTALL)
