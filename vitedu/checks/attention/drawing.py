"""Pictures of notebook 02: what each row of weights sums to."""

import torch

from vitedu.checks.case import Case
from vitedu.checks.drawing import INK, RIGHT, WRONG, Drawing, box, line, svg, words
from vitedu.checks.observation import Observation


def draw_sums(case: Case, seen: Observation, ids: list[str]) -> Drawing | None:
    """Draw what each row sums to, where the weights have the shape of weights."""
    if "x" in case.args and not case.init:  # softmax
        weights, wanted = seen.arrays.get("output"), case.args["x"].shape
    elif "q" in case.args:
        weights, (q, k) = seen.arrays.get("weights"), (case.args["q"], case.args["k"])
        wanted = (*q.shape[:-1], k.shape[-2])
    else:
        weights, (B, T, _) = seen.arrays.get("weights"), case.args["x"].shape
        wanted = (B, case.init["num_heads"], T, T)
    if weights is None or weights.shape != wanted:
        return None
    return draw_row_sums(case, seen, ids)


def draw_row_sums(case: Case, got: Observation, ids: list[str]) -> Drawing | None:
    """Show what each query's weights sum to, beside a line at 1."""
    weights = got.arrays.get("weights", got.arrays.get("output"))
    if (
        weights is None
        or weights.ndim < 2
        or not weights.is_floating_point()
        or weights.numel() == 0
    ):
        return None
    dim = case.args.get("dim", -1) if "weights" not in got.arrays else -1
    if not isinstance(dim, int):
        return None
    sums = weights.double().movedim(dim, -1).sum(-1).flatten()
    if not torch.isfinite(sums).all() or (sums - 1).abs().max() < 1e-3:
        return None
    bars = sums[:12].tolist()
    low, high = min(0.0, *bars), max(1.2, *bars)
    scale, base, step = 90 / (high - low), 24.0, 34
    zero = base + scale * high
    one = zero - scale
    width = 70 + step * len(bars)
    parts = [words(4, 14, "what the weights of each row sum to; the line is 1", anchor="start")]
    for i, total in enumerate(bars):
        x, top = 40 + i * step, zero - scale * max(total, 0)
        wrong = abs(total - 1) > 1e-3
        parts.append(
            box(x, top, step - 10, max(1.0, scale * abs(total)), WRONG if wrong else RIGHT, "none")
        )
        parts.append(words(x + (step - 10) / 2, zero + 14, f"{total:.2f}"))
    parts.append(line(34, one, width - 10, one, INK, dash=True))
    parts.append(words(28, one + 4, "1", anchor="end"))
    count = int(((sums - 1).abs() > 1e-3).sum())
    span = f"{float(sums.min()):.2f} .. {float(sums.max()):.2f}"
    text = f"{count} of {len(sums)} rows do not sum to 1; they sum to {span}"
    return Drawing(svg(max(width, 330.0), zero + 24, parts, text), "sums", text)
