"""Pictures of counterexamples: small SVG drawings in a report, each with a text.

Role: one function for each picture, ``(case, observation, ids of mistakes) -> Drawing or None``.
The text says the same as the picture, for readers who cannot see it.
"""

from dataclasses import dataclass
from html import escape

import torch

from vitedu.checks.case import Case
from vitedu.checks.observation import Observation

INK, WRONG, RIGHT, PALE = "#333333", "#d55e00", "#0072b2", "#e6e6e6"


@dataclass(frozen=True)
class Drawing:
    """A picture and the same in words."""

    svg: str
    label: str  # the label of its line in the report, such as "order"
    text: str


def svg(width: float, height: float, parts: list[str], title: str) -> str:
    """Combine shapes into one SVG element with a title for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'role="img" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12">'
        # a white background, so that dark themes show the picture as well
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#ffffff"/>'
        f"{''.join(parts)}</svg>"
    )


def words(
    x: float, y: float, text: str, colour: str = INK, anchor: str = "middle", weight: str = "normal"
) -> str:
    """Write text at a point."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    colour: str = INK,
    dash: bool = False,
    arrow: bool = False,
) -> str:
    """Draw a line, with an arrow head at its end if asked for."""
    style = ' stroke-dasharray="5 4"' if dash else ""
    stroke = (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="1.5"{style}/>'
    )
    if not arrow:
        return stroke
    dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
    x, y = x2 - 7 * dx, y2 - 7 * dy  # the middle of the head's base
    tip = f"{x2},{y2} {x - 4 * dy},{y - 4 * dx} {x + 4 * dy},{y + 4 * dx}"
    return stroke + f'<polygon points="{tip}" fill="{colour}"/>'


def box(
    x: float, y: float, width: float, height: float, fill: str = "#ffffff", stroke: str = INK
) -> str:
    """Draw a rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )


# --- patch order --------------------------------------------------------------------------------


def draw_patch_order(case: Case, got: Observation, ids: list[str]) -> Drawing | None:
    """Show the order of the answer's patches beside the reading order; circle the first difference.

    If every patch is in its place, show the order of the pixels of patch 0, channel 0.
    """
    images, P = case.args["images"], case.args["patch_size"]
    output = got.arrays.get("output")
    B, C, H, W = images.shape
    gh, gw = H // P, W // P
    if output is None or output.shape != (B, gh * gw, C * P * P) or case.raises:
        return None
    place = {float(value): index for index, value in enumerate(images[0].flatten())}
    found = [[place.get(float(value)) for value in token] for token in output[0]]
    if any(index is None for token in found for index in token):
        return None  # other numbers than those of the image
    cells = [{(i % (H * W)) // W // P * gw + i % W // P for i in token} for token in found]
    numbers: list[str] = ["?"] * (gh * gw)
    for token, sources in enumerate(cells):
        if len(sources) == 1:
            numbers[sources.pop()] = str(token)
    right = [str(i) for i in range(gh * gw)]
    if set(numbers) == {"?"}:
        return None  # every patch is cut up, so a grid would say nothing
    if numbers != right:
        what = "patches" if "?" not in numbers else "patches; ? is cut up among several tokens"
        return _two_grids(
            numbers, right, gw, f"where your tokens 0 .. {gh * gw - 1} come from, as {what}"
        )
    inner = ["?"] * (P * P)
    for position, index in enumerate(found[0]):
        if index // (H * W) == 0:  # channel 0
            inner[index % (H * W) // W * P + index % W] = str(position)
    return _two_grids(
        inner,
        [str(i) for i in range(P * P)],
        P,
        "positions of patch 0's pixels, channel 0, inside its token",
    )


def draw_laid_patches(case: Case, got: Observation, ids: list[str]) -> Drawing | None:
    """Show which patch lies in each square of the answer's image."""
    (patches, P, (H, W)), output = case.args.values(), got.arrays.get("output")
    if output is None or output.shape != (len(patches), patches.shape[-1] // P**2, H, W):
        return None
    place = {value: token for token, values in enumerate(patches[0].tolist()) for value in values}
    rows = [row.split(P, dim=2) for row in output[0].split(P, dim=1)]
    found = [{place.get(x) for x in square.flatten().tolist()} for row in rows for square in row]
    if any(None in tokens for tokens in found):
        return None  # other numbers than those of the patches
    numbers = [str(*tokens) if len(tokens) == 1 else "?" for tokens in found]
    if set(numbers) == {"?"}:
        return None  # pieces everywhere, so a grid would say nothing
    title = "which patch lies where in your image; ? holds pieces of several"
    return _two_grids(numbers, [str(i) for i in range(len(found))], W // P, title)


def _two_grids(yours: list[str], right: list[str], across: int, title: str) -> Drawing | None:
    """Draw two grids with ``across`` columns side by side; None if they are equal."""
    first = next((i for i, (a, b) in enumerate(zip(yours, right, strict=True)) if a != b), None)
    if first is None:
        return None
    down, size = len(yours) // across, 30
    left = [10.0, 10.0 + across * size + 50]
    width = max(left[1] + across * size + 10, 7.0 * len(title))
    parts = [words(4, 14, title, anchor="start")]
    for x0, numbers, name in ((left[0], yours, "yours"), (left[1], right, "expected")):
        parts.append(words(x0, 34, name, anchor="start", weight="bold"))
        for i, number in enumerate(numbers):
            x, y = x0 + i % across * size, 42 + i // across * size
            parts.append(box(x, y, size, size, PALE if numbers[i] != right[i] else "#ffffff"))
            parts.append(words(x + size / 2, y + size / 2 + 4, number))
            if i == first:
                parts.append(
                    f'<circle cx="{x + size / 2}" cy="{y + size / 2}" r="{size / 2 - 3}" '
                    f'fill="none" stroke="{WRONG if numbers is yours else RIGHT}" '
                    'stroke-width="2.5"/>'
                )
    rows = [" ".join(f"{n:>2}" for n in yours[r * across : (r + 1) * across]) for r in range(down)]
    text = (
        f"{title}:\n"
        + "\n".join(rows)
        + f"\nfirst difference: {yours[first]} where {right[first]} belongs"
    )
    return Drawing(svg(width, 52 + down * size, parts, title), "order", text)


# --- attention ----------------------------------------------------------------------------------


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
    shown = sums[:12].tolist()
    low, high = min(0.0, *shown), max(1.2, *shown)
    scale, base, step = 90 / (high - low), 24.0, 34
    zero = base + scale * high
    one = zero - scale
    width = 70 + step * len(shown)
    parts = [words(4, 14, "what the weights of each row sum to; the line is 1", anchor="start")]
    for i, total in enumerate(shown):
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


# --- encoder block ------------------------------------------------------------------------------


def draw_block(missing: dict[str, tuple[str, ...]]):
    """Return a drawing function for encoder blocks.

    Args:
        missing: mistake id -> which residual paths it lacks, of "first" and "second".
    """

    def draw(case: Case, got: Observation, ids: list[str]) -> Drawing | None:
        gone = {path for id_ in ids for path in missing.get(id_, ())}
        if not gone:
            return None
        parts, y = [words(4, 14, "tokens flow from left to right", anchor="start")], 90
        parts.append(words(20, y + 4, "x", weight="bold"))
        x = 30
        for path, inner in (("first", ("norm1", "attn")), ("second", ("norm2", "mlp"))):
            start = x
            for name in inner:
                parts += [
                    line(x, y, x + 22, y, arrow=True),
                    box(x + 22, y - 15, 58, 30),
                    words(x + 51, y + 4, name),
                ]
                x += 80
            parts.append(line(x, y, x + 20, y, arrow=True))
            lost = path in gone
            colour = WRONG if lost else RIGHT
            plus = "missing" if lost else "+"
            parts += [
                line(start + 8, y, start + 8, y - 45, colour, dash=lost),
                line(start + 8, y - 45, x + 32, y - 45, colour, dash=lost),
                line(x + 32, y - 45, x + 32, y - 12, colour, dash=lost, arrow=True),
                words(
                    (start + x) / 2 + 20,
                    y - 51,
                    f"{plus} {'path around' if lost else 'path around, kept'}",
                    colour,
                ),
                f'<circle cx="{x + 32}" cy="{y}" r="11" fill="#ffffff" '
                f'stroke="{colour}" stroke-width="1.5"/>',
                words(x + 32, y + 4, "+" if not lost else "?", colour),
            ]
            x += 43
        parts.append(line(x, y, x + 22, y, arrow=True))
        names = {"first": "around norm1 and attn", "second": "around norm2 and mlp"}
        text = "no path leads " + " nor ".join(
            names[path] for path in ("first", "second") if path in gone
        )
        return Drawing(svg(x + 40, 120, parts, text), "paths", text)

    return draw


# --- curves -------------------------------------------------------------------------------------


def curves(
    yours: list[float], expected: list[float], title: str, label: str = "curve"
) -> Drawing | None:
    """Draw two curves over steps, the student's one dashed. The axes have no numbers."""
    if len(yours) != len(expected) or len(yours) < 2 or not all(abs(v) < 1e30 for v in yours):
        return None
    low, high = min(*yours, *expected, 0.0), max(*yours, *expected)
    span = (high - low) or 1.0
    x = [30 + 300 * i / (len(yours) - 1) for i in range(len(yours))]
    parts = [
        words(4, 14, title, anchor="start"),
        line(30, 24, 30, 134),
        line(30, 134, 334, 134),
        words(182, 150, "step"),
    ]
    for values, colour, dash, name, at in (
        (expected, RIGHT, "", "expected", 34),
        (yours, WRONG, "6 4", "yours", 50),
    ):
        points = " ".join(
            f"{a:.1f},{134 - 100 * (v - low) / span:.1f}" for a, v in zip(x, values, strict=True)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dash}"/>'
        )
        parts += [
            line(345, at - 4, 370, at - 4, colour, dash=bool(dash)),
            words(376, at, name, colour, anchor="start"),
        ]
    differ = [
        i for i, (a, b) in enumerate(zip(yours, expected, strict=True)) if abs(a - b) > 1e-6 * span
    ]
    if not differ:
        return None
    where = f"at step {differ[0]} and differs at {len(differ)} of {len(yours)} steps"
    text = f"your curve leaves the expected one {where}"
    return Drawing(svg(440, 158, parts, text), label, text)
