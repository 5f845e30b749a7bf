"""The three hints of an exercise, as text and as buttons of a report.

Role: ``next_hint`` remembers how far it is, to know what comes next. ``hints_html`` needs no kernel
and stores nothing. No hint costs points or stands in ``progress()``, however it was opened.
"""

import html

from vitedu.course import results
from vitedu.exercises import BY_ID, Exercise

NUM_HINTS = 3
BUTTON = (
    "cursor:pointer;width:max-content;padding:.1em .7em;margin:.3em 0;"
    "border:1px solid currentColor;border-radius:.3em"
)


def next_hint(exercise: Exercise) -> str:
    """Return the next hint of an exercise; after the last comes the last again."""
    with results.edit("exercises", exercise.id) as entry:
        number = entry["hints_used"] = min(entry.get("hints_used", 0) + 1, NUM_HINTS)
    more = f'hint("{exercise.id}") shows the next'
    if number == NUM_HINTS:
        more = f'that was the last; solution("{exercise.id}") shows the reference'
    text = f"hint {number} of {NUM_HINTS}: {exercise.hints[number - 1]}"
    return f"{exercise.number} {exercise.id}, {text}\n({more})"


def hints_html(exercise: str) -> str:
    """Write the hints of an exercise as buttons: each opens one hint and shows the next button.

    It works on a page without a kernel and without scripts. The text form of the same help is
    ``hint("patchify")``.

    Returns:
        HTML, or "" if there is no such exercise.
    """
    if exercise not in BY_ID:
        return ""
    inside = f"<div>That was the last. <code>solution(&quot;{exercise}&quot;)</code> shows "
    inside += "the reference.</div>"
    for number, text in reversed([*enumerate(BY_ID[exercise].hints, start=1)]):
        inside = (
            f'<details><summary style="{BUTTON}">hint {number} of {NUM_HINTS}</summary>'
            f"<div>{html.escape(text)}</div>{inside}</details>"
        )
    return inside
