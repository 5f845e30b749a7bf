"""Pictures of notebook 01: which patch stands where."""

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.checks.writing.checker import Drawing
from vitedu.plots.svg import PALE, RIGHT, WRONG, box, svg, words


def draw_patch_order(case: Case, got: Observation) -> Drawing | None:
    """Show the order of the answer's patches beside the reading order; frame the first difference.

    If every patch is in its place, show the order of the pixels of patch 0, channel 0.
    """
    images, P = case.args["images"], case.args["patch_size"]
    output, (H, W) = got.arrays["output"], images.shape[2:]
    gh, gw = H // P, W // P
    place = {float(value): index for index, value in enumerate(images[0].flatten())}
    indices = [[place.get(float(value)) for value in token] for token in output[0]]
    if len(place) < images[0].numel() or any(None in token for token in indices):
        return None  # other numbers than those of the image, or a number stands in it twice
    cells = [{(i % (H * W)) // W // P * gw + i % W // P for i in token} for token in indices]
    numbers: list[str] = ["?"] * (gh * gw)
    for token, sources in enumerate(cells):
        if len(sources) == 1:
            numbers[sources.pop()] = str(token)
    if set(numbers) == {"?"}:
        return None  # every patch is cut up, so a grid would say nothing
    what = "patches" if "?" not in numbers else "patches; ? is cut up among several tokens"
    title = f"where your tokens 0 .. {gh * gw - 1} come from, as {what}"
    if order := _draw_two_grids(numbers, gw, title):
        return order
    inner = ["?"] * (P * P)
    for position, index in enumerate(indices[0]):
        if index // (H * W) == 0:  # channel 0
            inner[index % (H * W) // W * P + index % W] = str(position)
    return _draw_two_grids(inner, P, "positions of patch 0's pixels, channel 0, inside its token")


def draw_patch_places(case: Case, got: Observation) -> Drawing | None:
    """Show which patch lies in each square of the answer's image."""
    (patches, P, (_, W)), output = case.args.values(), got.arrays["output"]
    tokens = [set(values) for values in patches[0].tolist()]
    rows = [row.split(P, dim=2) for row in output[0].split(P, dim=1)]
    squares = [set(square.flatten().tolist()) for row in rows for square in row]
    if not set().union(*squares) <= set().union(*tokens):
        return None  # other numbers than those of the patches
    numbers = [str(tokens.index(square)) if square in tokens else "?" for square in squares]
    if set(numbers) == {"?"}:
        return None  # pieces everywhere, so a grid would say nothing
    title = "which patch lies where in your image; ? is in pieces"
    return _draw_two_grids(numbers, W // P, title)


def _draw_two_grids(yours: list[str], across: int, title: str) -> Drawing | None:
    """Draw two grids with ``across`` columns, yours and 0, 1, 2 ...; None if they are equal."""
    right = [str(i) for i in range(len(yours))]
    if yours == right:
        return None
    first = next(i for i, number in enumerate(yours) if number != right[i])
    down, size = len(yours) // across, 30
    x_offsets = [10.0, 10.0 + across * size + 50]
    width = max(x_offsets[1] + across * size + 10, 7.0 * len(title))
    parts = [words(4, 14, title, anchor="start")]
    grids = (yours, "yours", WRONG), (right, "expected", RIGHT)
    for x0, (numbers, name, colour) in zip(x_offsets, grids, strict=True):
        parts.append(words(x0, 34, name, anchor="start", weight="bold"))
        for i, number in enumerate(numbers):
            x, y = x0 + i % across * size, 42 + i // across * size
            parts.append(box(x, y, size, size, PALE if number != right[i] else "#ffffff"))
            parts.append(words(x + size / 2, y + size / 2 + 4, number))
        x, y = x0 + first % across * size, 42 + first // across * size
        parts.append(box(x + 3, y + 3, size - 6, size - 6, "none", colour))
    rows = [yours[start : start + across] for start in range(0, len(yours), across)]
    lines = [" ".join(f"{number:>2}" for number in row) for row in rows if len(yours) <= 8]
    difference = f"first difference: {yours[first]} where {right[first]} belongs"
    text = "\n".join([f"{title}:", *lines, difference])  # a report stays short
    return Drawing(svg(width, 52 + down * size, parts, title), "order", text)
