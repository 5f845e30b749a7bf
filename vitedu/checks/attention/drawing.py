"""Pictures of notebook 02: what each row of weights sums to."""

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.checks.writing.checker import Drawing
from vitedu.plots.svg import INK, RIGHT, WRONG, box, line, svg, words


def draw_sums(case: Case, seen: Observation) -> Drawing | None:
    """Show what each row sums to, beside a line at 1; None if that is 1 everywhere."""
    weights = seen.arrays["weights" if "weights" in case.outputs else "output"]
    sums = weights.double().sum(case.args.get("dim", -1)).flatten()
    wrong = (sums - 1).abs() > 1e-3
    if weights.ndim < 2 or not wrong.any():
        return None
    bars = sums[:12].tolist()
    low, high = min(0.0, *bars), max(1.2, *bars)
    scale, base, step = 90 / (high - low), 24.0, 34
    zero = base + scale * high
    one = zero - scale
    width = 70 + step * len(bars)
    parts = [words(4, 14, "what the weights of each row sum to; the line is 1", anchor="start")]
    for i, total in enumerate(bars):
        x, top, fill = 40 + i * step, zero - scale * max(total, 0), WRONG if wrong[i] else RIGHT
        parts.append(box(x, top, step - 10, max(1.0, scale * abs(total)), fill, "none"))
        parts.append(words(x + (step - 10) / 2, zero + 14, f"{total:.2f}"))
    parts.append(line(34, one, width - 10, one, INK, dash=True))
    parts.append(words(28, one + 4, "1", anchor="end"))
    span = f"{float(sums.min()):.2f} .. {float(sums.max()):.2f}"
    text = f"{int(wrong.sum())} of {len(sums)} rows do not sum to 1; they sum to {span}"
    return Drawing(svg(max(width, 330.0), zero + 24, parts, text), "sums", text)
