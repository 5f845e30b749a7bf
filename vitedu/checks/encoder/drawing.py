"""Pictures of notebook 03: what a block computes, and in which order."""

from vitedu.checks.case import Case
from vitedu.checks.drawing import RIGHT, WRONG, Drawing, box, line, svg, words
from vitedu.checks.observation import Observation


def draw_block(missing: dict[str, tuple[str, ...]]):
    """Return a drawing function for encoder blocks.

    Args:
        missing: mistake id -> which residual paths it lacks, of "first" and "second".
    """

    def draw(case: Case, got: Observation, ids: list[str]) -> Drawing | None:
        absent = {path for id_ in ids for path in missing.get(id_, ())}
        if not absent:
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
            is_missing = path in absent
            colour = WRONG if is_missing else RIGHT
            plus = "missing" if is_missing else "+"
            parts += [
                line(start + 8, y, start + 8, y - 45, colour, dash=is_missing),
                line(start + 8, y - 45, x + 32, y - 45, colour, dash=is_missing),
                line(x + 32, y - 45, x + 32, y - 12, colour, dash=is_missing, arrow=True),
                words(
                    (start + x) / 2 + 20,
                    y - 51,
                    f"{plus} {'residual' if is_missing else 'residual, kept'}",
                    colour,
                ),
                f'<circle cx="{x + 32}" cy="{y}" r="11" fill="#ffffff" '
                f'stroke="{colour}" stroke-width="1.5"/>',
                words(x + 32, y + 4, "+" if not is_missing else "?", colour),
            ]
            x += 43
        parts.append(line(x, y, x + 22, y, arrow=True))
        names = {"first": "around norm1 and attn", "second": "around norm2 and mlp"}
        text = "no path leads " + " nor ".join(
            names[path] for path in ("first", "second") if path in absent
        )
        return Drawing(svg(x + 40, 120, parts, text), "paths", text)

    return draw
