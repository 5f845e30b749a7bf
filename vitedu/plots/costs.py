"""The figure of what each mistake costs (notebooks 01 to 03).

Role: measured rows in, a matplotlib figure out. Not here: the measurement
(``vitedu.bench.costs``).
"""

import itertools
import random
import textwrap
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from matplotlib.figure import Figure

from vitedu.exercises import find
from vitedu.plots import ink
from vitedu.plots.charts import show_bars
from vitedu.plots.style import styled

LABEL = 44  # letters in a line of a name


@styled
def show_mistake_costs(
    costs: Sequence[Any], *, ranked: bool = True, order: str | None = None
) -> Figure:
    """Draw what a trained model still names right with each mistake.

    Each mistake has a letter, in an order that gives nothing away.

    Args:
        costs: at most 26 rows of ``mistake_costs``, the cheapest first.
        ranked: whether to draw the bars; else the names alone stand there, to be ranked.
        order: a student's ranking, letters from the cheapest to the dearest, such as ``"BCA"``. Its
            places stand beside the bars, and above them how many pairs are in the right order.
    """
    rows = list(zip(letters(costs), costs, strict=True))
    rows = rows if ranked else sorted(rows, key=lambda row: row[0])
    places, judgement = judge_order(order, rows) if ranked and order else ({}, "")
    bars: dict[str, dict[str, float]] = {}
    for letter, cost in rows:
        name = textwrap.fill(f"{letter}  {find(cost.exercise).number} {cost.name}", LABEL)
        bars[name] = {"": cost.accuracy} if ranked and cost.accuracy is not None else {}
    images, right, guessing = costs[0].images, costs[0].right, costs[0].guessing
    label = f"accuracy (%) on {images:,} test images, with one mistake in the model"
    label += f"\n(without one: {100 * right:.1f})"
    fig = show_bars(bars, label, horizons={"guessing": guessing, "no mistake": right})
    fig.suptitle(judgement, fontsize=10)
    for y, (letter, cost) in enumerate(rows):
        if ranked and cost.accuracy is None:
            fig.axes[0].text(1, y, "stops with an error", va="center", color=ink.BAD)
        if letter in places:
            fig.axes[0].text(102, y, f"your place: {places[letter]}", va="center", fontsize=8)
    return fig


def judge_order(order: str, rows: Sequence[tuple[str, Any]]) -> tuple[dict[str, int], str]:
    """Give the place of each letter in a student's ranking, and say how good the ranking is.

    Two mistakes that cost the same are in the right order either way.
    """
    guess = [letter for letter in str(order).upper() if letter.isalpha()]
    wanted = sorted(letter for letter, _ in rows)
    if sorted(guess) != wanted:
        return {}, f"Your order {order!r} is not counted: write each of {''.join(wanted)} once."
    places = {letter: guess.index(letter) + 1 for letter in wanted}
    pairs = list(itertools.combinations(rows, 2))  # the cheaper one first
    right = sum(a.accuracy == b.accuracy or places[x] < places[y] for (x, a), (y, b) in pairs)
    by_chance = "by chance half would be"
    return places, f"Of {len(pairs)} pairs you put {right} in the right order; {by_chance}."


def letters(costs: Sequence[Any]) -> str:
    """Give the letter of each row of ``mistake_costs`` in the figure; their order there."""
    names = sorted((cost.exercise, cost.mistake) for cost in costs)
    random.Random(0).shuffle(names)
    found = dict(zip(names, ascii_uppercase, strict=False))
    return "".join(found[cost.exercise, cost.mistake] for cost in costs)
