"""The figure of what each mistake costs (notebooks 01 to 03).

Role: measured rows in, a matplotlib figure out. Not here: the measurement
(``vitedu.checks.costs``).
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
from vitedu.plots.style import WIDTH, figure, styled

LABEL = 44  # letters in a line of a name


@styled
def show_mistake_costs(
    costs: Sequence[Any], *, ranked: bool = True, order: str | None = None
) -> Figure:
    """Draw what a trained model still names right with each mistake.

    Each mistake has a letter, in an order that gives nothing away.

    Args:
        costs: at most 26 rows of ``vitedu.checks.costs.mistake_costs``, the cheapest first.
        ranked: whether to draw the bars; else the names alone stand there, to be ranked.
        order: a student's ranking, letters from the cheapest to the dearest, such as ``"BCA"``. Its
            places stand beside the bars, and above them how many pairs are in the right order.

    Raises:
        ValueError: no row, or too many.
    """
    if not 1 <= len(costs) <= len(ascii_uppercase):
        raise ValueError(f"show_mistake_costs draws 1 to 26 rows (got {len(costs)}).")
    rows = list(zip(letters(costs), costs, strict=True))
    rows = rows if ranked else sorted(rows, key=lambda row: row[0])
    places, judgement = judge_order(order, rows) if ranked and order else ({}, "")
    fig, axes = figure(size=(WIDTH, 1.1 + 0.42 * len(rows)))
    ax, labels, first = axes[0, 0], [], costs[0]
    for x, words, line in (
        (first.guessing, f"guessing\n{first.guessing:.1%}", ":"),
        (first.right, f"no mistake\n{first.right:.1%}", "--"),
    ):
        ax.axvline(100 * x, color=ink.GREY, linestyle=line, zorder=0)
        ax.text(100 * x, -0.6, words, ha="center", va="bottom", color=ink.BLACK, fontsize=9)
    look: Any = {"va": "center", "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1}}
    for y, (letter, cost) in enumerate(rows):
        name = f"{letter}  {find(cost.exercise).number} {cost.name}"
        labels.append(textwrap.fill(name, LABEL))
        if ranked and cost.accuracy is None:
            ax.text(1, y, "stops with an error", color=ink.BAD, **look)
        elif ranked:
            ax.barh(y, 100 * cost.accuracy, color=ink.BLUE, height=0.6)
            ax.text(100 * cost.accuracy + 1.5, y, f"{cost.accuracy:.1%}", **look)
        if letter in places:
            ax.text(102, y, f"your place: {places[letter]}", fontsize=8, **look)
    fig.suptitle(judgement, fontsize=10)
    ax.set_yticks(range(len(rows)), labels, fontsize=9)
    ax.set(xlim=(0, 100), ylim=(len(rows) - 0.4, -0.6))
    ax.set_xlabel(f"accuracy (%) on {first.images:,} test images, with one mistake in the model")
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
    return places, (
        f"Of {len(pairs)} pairs you put {right} in the right order; by chance half would be."
    )


def letters(costs: Sequence[Any]) -> str:
    """Give the letter of each row of ``mistake_costs`` in the figure; their order there."""
    names = sorted((cost.exercise, cost.mistake) for cost in costs)
    random.Random(0).shuffle(names)
    found = dict(zip(names, ascii_uppercase, strict=False))
    return "".join(found[cost.exercise, cost.mistake] for cost in costs)
