"""What the grader's pages share: safe text, words for numbers, the templates.

Role: ``render`` fills a template of ``templates/``. ``text`` removes unsafe characters,
and ``grade_kind`` classifies a grade. Jinja2 escapes every value. ``feedback`` and ``class_report``
provide the content.
"""

import functools
import re
from base64 import b64encode
from html import unescape
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from vitedu.grading.grades import FAILED, WORDS, ExerciseGrade, clean, safe_name

# state -> (sign, word); the sign says the same as the colour
SIGNS = {state: tuple(pair) for state, pair in WORDS["signs"].items()}


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


def picture(svg: str) -> Markup:
    """Write a drawing as an image, in which no script runs and no link leads on.

    Its title is the text for those who do not see it.
    """
    title = re.search("<title>([^<]*)", svg)
    image = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
    return Markup('<img alt="{}" src="{}">').format(unescape(title[1]) if title else "", image)


def render(template: str, **values: Any) -> str:
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
    filters = [clean, text, number, count, picture]
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["file_name"] = safe_name
    return environment
