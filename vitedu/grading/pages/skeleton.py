"""What the pages of the grader share: safe text, one look, small bars, the skeleton of a file.

Role: ``text`` and ``inline`` (whatever a student typed becomes harmless), ``picture`` (an SVG of the parent, checked),
``bar``, ``page``. Pages are single files without scripts and without any address, read in light, in dark and on paper.
Standard library alone. Not here: what a page says.
"""

import html
import re
import unicodedata
from xml.etree import ElementTree

from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, ExerciseGrade

# state -> (sign, word); the sign carries what the colour carries
SIGNS = {
    PASSED: ("✓", "passed"),
    "partly": ("◐", "partly right"),
    FAILED: ("✗", "not right yet"),
    "untouched": ("○", "left as it was"),
    NOT_GRADABLE: ("?", "could not be graded"),
}

_SHAPES = {"svg", "title", "desc", "g", "rect", "text", "tspan", "line", "polygon", "polyline"}
_SHAPES |= {"circle", "ellipse", "path"}
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


def plain(words: str) -> str:
    """Take out what is no text: control characters, halves of characters, marks that turn lines around.

    Example:
        >>> plain("a\\x1b[31mb\\u202ec\\ttab")
        'a�[31mb�c\\ttab'
    """
    return "".join(
        "�"
        if (unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t") or ord(c) in _DIRECTIONS
        else c
        for c in words.replace("\r\n", "\n")
    )


def text(words: str, most: int = 4000) -> str:
    """Escape text for HTML; very long text is cut, and says so.

    Example:
        >>> text("<script>alert('x')</script>")
        '&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;'
    """
    cut = f" … ({len(words) - most:,} more characters)" if len(words) > most else ""
    return html.escape(plain(words[:most])) + cut


def number(points: float) -> str:
    """Write 4.0 as 4 and 2.25 as 2.25.

    Example:
        >>> number(4.0), number(2.25), number(1 / 3)
        ('4', '2.25', '0.33')
    """
    return f"{points:.2f}".rstrip("0").rstrip(".")


def count(amount: int, one: str, many: str = "") -> str:
    """Write an amount with its noun.

    Example:
        >>> count(1, "submission"), count(2, "submission")
        ('1 submission', '2 submissions')
    """
    return f"{amount} {one if amount == 1 else many or one + 's'}"


def look(grade: ExerciseGrade) -> str:
    """Name the key of ``SIGNS`` that shows a grade."""
    if grade.state != FAILED:
        return grade.state
    if not grade.attempted:
        return "untouched"
    return "partly" if grade.points else FAILED


def picture(svg: str) -> str:
    """Give a drawing back if it holds shapes and words alone, else nothing.

    Drawings are made by the grader. This is the second lock: what a student typed can not become a script or an address.

    Example:
        >>> picture('<svg xmlns="http://www.w3.org/2000/svg"><rect width="2"/></svg>') != ""
        True
        >>> picture('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>')
        ''
    """
    if not svg or "<!" in svg or "<?" in svg:
        return ""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        return ""
    for node in root.iter():
        if node.tag.removeprefix("{http://www.w3.org/2000/svg}") not in _SHAPES:
            return ""
        for name, value in node.attrib.items():
            if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9-]*", name) or name.lower().startswith("on"):
                return ""
            if name.lower() in ("href", "style") or "url(" in value.replace(" ", "").lower():
                return ""
    return f'<div class="picture">{svg}</div>'


def bar(points: float, max_points: float, open_points: float = 0.0, words: str = "") -> str:
    """Draw points as a bar: filled what is earned, hatched what is open."""
    whole = max_points or 1.0
    earned, waiting = 100 * points / whole, 100 * open_points / whole
    return (
        f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" '
        f'aria-label="{html.escape(words or f"{number(points)} of {number(max_points)}")}">'
        f'<rect class="empty" width="100" height="8"/><rect class="earned" width="{earned:.2f}" height="8"/>'
        f'<rect class="open" x="{earned:.2f}" width="{waiting:.2f}" height="8"/></svg>'
    )


def page(title: str, body: str, style: str = "") -> str:
    """Put a body into a file that stands alone and, by its own rule, loads and runs nothing."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}{style}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


# Colours of Okabe and Ito, as in the course's figures; each stands beside a sign or a word.
STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1d2126; --soft: #5b636d; --line: #d9dde2; --card: #f7f8fa;
  --passed: #0072b2; --partly: #8a6100; --failed: #b34a00; --untouched: #6b7280; --not_gradable: #7a4b86;
  --earned: #0072b2; --empty: #e3e6ea; --open: #cc79a7; }
@media screen and (prefers-color-scheme: dark) { :root { --page: #16191d; --ink: #e7eaee; --soft: #a2abb6; --line: #353b43;
  --card: #1e2227; --passed: #6cbdf0; --partly: #e6b450; --failed: #ff9a5c; --untouched: #9aa3ae;
  --not_gradable: #e0a5cf; --earned: #3f9bd6; --empty: #2f353c; --open: #b86a95; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 54rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0; }
p { margin: .4rem 0; } a { color: var(--passed); }
code, pre, .mono { font: .875em/1.5 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; margin: .2rem 0; }
.soft { color: var(--soft); } .small { font-size: .875rem; }
.passed { color: var(--passed); } .partly { color: var(--partly); } .failed { color: var(--failed); }
.untouched { color: var(--untouched); } .not_gradable { color: var(--not_gradable); }
.bar { display: block; width: 100%; height: .7rem; border-radius: .35rem; }
.bar .empty { fill: var(--empty); } .bar .earned { fill: var(--earned); } .bar .open { fill: var(--open); opacity: .7; }
.picture { margin: .6rem 0; overflow-x: auto; } .picture svg { max-width: 100%; height: auto; border-radius: .3rem; }
footer { margin-top: 2.5rem; padding-top: .8rem; border-top: 1px solid var(--line); font-size: .8125rem; color: var(--soft);
  overflow-wrap: anywhere; }
@media print { body { font-size: 10.5pt; background: #fff; } main { max-width: none; padding: 0; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
