"""Pictures of notebook 04: two curves."""

from itertools import pairwise

from vitedu.checks.writing.drawing import RIGHT, WRONG, Drawing, line, svg, words


def draw_curves(yours: list[float], expected: list[float], title: str) -> Drawing | None:
    """Draw two curves over steps, the student's one dashed. The axes have no numbers."""
    if len(yours) != len(expected) or len(yours) < 2 or not all(abs(v) < 1e30 for v in yours):
        return None
    low, high = min(*yours, *expected, 0.0), max(*yours, *expected)
    span = (high - low) or 1.0
    pairs = enumerate(zip(yours, expected, strict=True))
    differ = [i for i, (one, other) in pairs if abs(one - other) > 1e-6 * span]
    if not differ:
        return None
    parts = [words(4, 14, title, anchor="start"), words(182, 150, "step")]
    parts += [line(30, 24, 30, 134), line(30, 134, 334, 134)]
    curves = (expected, RIGHT, False, "expected", 34), (yours, WRONG, True, "yours", 50)
    for values, colour, dash, name, at in curves:
        step = 300 / (len(values) - 1)
        points = [(30 + step * i, 134 - 100 * (v - low) / span) for i, v in enumerate(values)]
        parts += [line(*one, *other, colour, dash) for one, other in pairwise(points)]
        parts += [line(345, at - 4, 370, at - 4, colour, dash)]
        parts += [words(376, at, name, colour, anchor="start")]
    where = f"at step {differ[0]} and differs at {len(differ)} of {len(yours)} steps"
    text = f"your curve leaves the expected one {where}"
    return Drawing(svg(440, 158, parts, text), "curve", text)
