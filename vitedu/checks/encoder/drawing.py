"""Pictures of notebook 03: what a block computes, and in which order."""

from itertools import pairwise

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.checks.writing.drawing import RIGHT, WRONG, Drawing, box, line, svg, words

STEPS = {"first": ("norm1", "attn"), "second": ("norm2", "mlp")}  # each with a residual path


def draw_block(case: Case, got: Observation, ids: list[str]) -> Drawing | None:
    """Show the steps of a block, and around which of them a path is missing."""
    missing = [step for step in STEPS if {f"no_{step}_residual", "no_residuals"} & set(ids)]
    if not missing:
        return None
    x, y = 30, 90
    parts = [words(4, 14, "tokens flow from left to right", anchor="start")]
    parts.append(words(20, y + 4, "x", weight="bold"))
    for step, names in STEPS.items():
        start = x + 8
        for name in names:
            parts.append(line(x, y, x + 22, y, arrow=True))
            parts += [box(x + 22, y - 15, 58, 30), words(x + 51, y + 4, name)]
            x += 80
        plus, is_missing = x + 32, step in missing
        colour, sign = (WRONG, "?") if is_missing else (RIGHT, "+")
        path = (start, y), (start, y - 45), (plus, y - 45), (plus, y - 12)
        parts.append(line(x, y, x + 20, y, arrow=True))
        parts += [
            line(*corner, *end, colour, dash=is_missing, arrow=end == path[-1])
            for corner, end in pairwise(path)
        ]
        text = "missing residual" if is_missing else "+ residual, kept"
        parts += [
            words((start + plus) / 2, y - 51, text, colour),
            box(plus - 11, y - 11, 22, 22, stroke=colour),
            words(plus, y + 4, sign, colour),
        ]
        x += 43
    parts.append(line(x, y, x + 22, y, arrow=True))
    around = [f"around {' and '.join(STEPS[step])}" for step in missing]
    text = f"no path leads {' nor '.join(around)}"
    return Drawing(svg(x + 40, 120, parts, text), "paths", text)
