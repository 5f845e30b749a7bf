"""The shapes of small SVG drawings, such as the picture of a counterexample in a report."""

from html import escape

INK, WRONG, RIGHT, PALE = "#333333", "#d55e00", "#0072b2", "#e6e6e6"


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


def line(x1: float, y1: float, x2: float, y2: float, colour: str = INK, dash: bool = False) -> str:
    """Draw a line."""
    style = ' stroke-dasharray="5 4"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="1.5"{style}/>'
    )


def box(
    x: float, y: float, width: float, height: float, fill: str = "#ffffff", stroke: str = INK
) -> str:
    """Draw a rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )
