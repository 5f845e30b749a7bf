"""The first run of notebook 01: some kinds of photographs, names and a count, a sized run."""

import pytest

from vitedu.data import load_data
from vitedu.data.loading import load_cifar10
from vitedu.fitting import first_run as module
from vitedu.fitting.first_run import FirstRun


def test_some_kinds_are_those_photographs_with_numbers_of_their_own():
    """The same images as among all, numbered in the order that was asked for."""
    some = load_cifar10(0, (None, 20, 10), ("cat", "airplane"))
    few = load_data("cifar10", limit=50, held_out=1)
    assert some.class_names == ("cat", "airplane")
    assert some.train.labels.bincount().tolist() == [4_500, 4_500]
    for number, label in ((0, 3), (1, 0)):  # their places here, and among the ten
        own = some.train.images[some.train.labels == number]
        one = few.train.images[few.train.labels == label][0]
        assert (own == one).flatten(1).all(dim=1).sum() == 1


def test_run_shows_names_and_counts_and_no_loss(monkeypatch):
    """Before it and after it; the photograph of one's own stands apart."""
    monkeypatch.setattr(module, "TIMED", 3)
    first = FirstRun(("airplane", "automobile", "cat"), "chelsea", seconds=0.4)
    assert (
        first.steps >= 0.4 * module.LEAST
        and sum(p.numel() for p in first.model.parameters()) < 175_000
    )
    before = first.describe()
    assert before.startswith(f"Step 0 of {first.steps} (") and "of 16 right, yours: " in before
    first.wait()
    after = first.describe()
    assert f"{first.counts()[1]} of 16 right" in after and "others right" in after
    assert "loss" not in before + after and f", {first.counts()[0]} of 16 right" in before
    left, wall = first.figure().axes
    assert left.get_xlabel().endswith(first.answers[-1])
    assert sum(text.get_text().startswith("✓") for text in wall.texts) == first.counts()[1]


def test_run_is_sized_by_the_pace_of_its_steps(monkeypatch):
    """A fast computer makes more steps of the same seconds; a slow one makes the least."""
    for pace, steps in ((0.001, 1_000), (10.0, 12)):
        monkeypatch.setattr(module, "seconds_a_step", lambda *_, pace=pace: pace)
        first = FirstRun(("cat", "dog"), "chelsea", seconds=1)
        assert steps <= first.steps <= 1.1 * steps + 2 and first.expected >= 1


def test_slow_computer_shows_a_recorded_run_and_trains_on_demand(monkeypatch, capsys):
    """It is said to be recorded; its counts are shown until a run is asked for."""
    monkeypatch.setattr(module, "TIMED", 3)
    monkeypatch.setattr(module, "seconds_a_step", lambda *_: 20.0)
    first = FirstRun(("airplane", "automobile", "cat"), "chelsea", seconds=0.4)
    first.wait()
    said = capsys.readouterr().out
    assert "recorded on another computer" in said and said.count("of 16 right, yours: ") == 3
    assert first.state == "ready" and first.counts()[0] < 8 < 12 < first.counts()[1]
    first.wait(live=True)
    assert first.state == "done" and len(first.losses) == first.steps


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (("cat", "cats"), "no photographs of 'cats'"),
        (("cat", "cat"), r"got \('cat', 'cat'\)"),
        ("cat", r"two at least.* got \('cat',\)"),
    ],
)
def test_kinds_that_cannot_be_learned_are_refused_in_one_line(kinds, words):
    """A wrong name, one twice, one alone."""
    with pytest.raises(ValueError, match=words):
        FirstRun(kinds, "chelsea")
