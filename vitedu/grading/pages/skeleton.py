"""What the grader's pages share: safe text, words for numbers, the templates.

Role: ``render`` fills a template of ``templates/``. ``text`` removes unsafe characters,
``safe_svg`` checks an SVG, and ``grade_kind`` classifies a grade. Jinja2 escapes every value; only
``safe_svg`` returns markup. ``feedback`` and ``class_report`` provide the content.
"""

import functools
import re
from pathlib import Path
from xml.etree import ElementTree

import jinja2
from markupsafe import Markup

from vitedu.grading.grades import FAILED, WORDS, ExerciseGrade, clean, safe_name

# state -> (sign, word); the sign says the same as the colour
SIGNS = {state: tuple(pair) for state, pair in WORDS["signs"].items()}

_SHAPES = {"svg", "title", "desc", "g", "rect", "text", "tspan", "line", "polygon", "polyline"}
_SHAPES |= {"circle", "ellipse", "path"}


def text(words: str, limit: int = 4000) -> str:
    """Make text safe to show; very long text is cut, with a remark.

    Example:
        >>> text("a\\x1bb"), text("abc", limit=1)
        ('a�b', 'a … (2 more characters)')
    """
    note = f" … ({len(words) - limit:,} more characters)" if len(words) > limit else ""
    return clean(words[:limit]) + note


def number(points: float) -> str:
    """Write 4.0 as 4, 2.25 as 2.25, and a third as 0.33."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def count(amount: float, singular: str, plural: str = "") -> str:
    """Write an amount with its noun, such as "1 submission" or "2.5 points"."""
    return f"{number(amount)} {singular if amount == 1 else plural or singular + 's'}"


def grade_kind(grade: ExerciseGrade) -> str:
    """Return the key of ``SIGNS`` for a grade."""
    if grade.state != FAILED:
        return grade.state
    if not grade.attempted:
        return "untouched"
    return "partly" if grade.points else FAILED


def safe_svg(svg: str) -> Markup:
    """Return a drawing as markup if it contains only shapes and words; otherwise nothing.

    The grader makes the drawings itself. This is a second barrier, so that text of a student's
    cannot become a script or a link.

    Example:
        >>> safe_svg('<svg xmlns="http://www.w3.org/2000/svg"><rect width="2"/></svg>') != ""
        True
        >>> str(safe_svg('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>'))
        ''
    """
    if not svg or "<!" in svg or "<?" in svg:
        return Markup()
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        return Markup()
    for node in root.iter():
        if node.tag.removeprefix("{http://www.w3.org/2000/svg}") not in _SHAPES:
            return Markup()
        for name, value in node.attrib.items():
            if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9-]*", name) or name.lower().startswith("on"):
                return Markup()
            if name.lower() in ("href", "style") or "url(" in value.replace(" ", "").lower():
                return Markup()
    return Markup(f'<div class="picture">{svg}</div>')


def render(template: str, **values) -> str:
    """Fill a template of ``templates/``."""
    return (
        _environment().get_template(template).render(signs=SIGNS, stored=WORDS["stored"], **values)
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates"), encoding="utf-8"),
        autoescape=lambda name: not str(name).endswith(".txt"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = [clean, text, number, count, safe_svg]
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["file_name"] = safe_name
    return environment
