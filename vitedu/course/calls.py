"""What a notebook calls beside ``check``: ``hint``, ``solution``, ``progress``, ``reset``.

None of them raises because of a mistyped id. Loads without torch.
"""

from collections.abc import Callable
from typing import Any

from vitedu import exercises
from vitedu.course import kept
from vitedu.course import results as store
from vitedu.course.display import PrintedText, print_text, show
from vitedu.course.hints import next_hint
from vitedu.course.references import solution_source, stub_text


def exercise_name(exercise: Any) -> str:
    """Return the id of an exercise that is given by its id, its function or its class."""
    return exercise if isinstance(exercise, str) else str(getattr(exercise, "__name__", exercise))


def _print_about(exercise: Any, write: Callable[[exercises.Exercise], str]) -> PrintedText:
    """Print a text about an exercise, or the nearest names if there is no such exercise."""
    try:
        text = write(exercises.find(exercise_name(exercise)))
    except ValueError as error:
        text = str(error)
    return print_text(text)


def hint(exercise: Any) -> PrintedText:
    """Show the next of the three hints of an exercise: a nudge, the idea, nearly the code."""
    return _print_about(exercise, next_hint)


def solution(exercise: Any) -> PrintedText:
    """Show the reference of an exercise."""
    return _print_about(exercise, solution_source)


def progress(notebook: str | None = None, *, end: bool = False) -> None:
    """Show every exercise with its state and points, or only those of the named notebook.

    A notebook also shows which parts of the model are the student's. ``end``: this is its last
    cell, so nothing of it is left to read.
    """
    try:
        name = exercises.notebook_named(notebook) if notebook else None
    except ValueError as error:
        print_text(str(error))
        return
    if name and end:
        kept.keep(store.ENDS, name, 1)
    show(store.table_text(name), store.progress_html(name))


def reset(exercise: Any) -> PrintedText:
    """Open an exercise again: no result, no hints taken; its stub is printed, ready to paste."""
    return _print_about(exercise, _reopen)


def _reopen(exercise: exercises.Exercise) -> str:
    with store.edit("exercises", exercise.id) as entry:
        entry.clear()
    stub = stub_text(exercise, f"# TODO {exercise.number}: {exercise.title}")
    return (
        f"{exercise.number} {exercise.id} is open again: not attempted, no hints taken.\n"
        f"Paste this into its cell in place of your answer, and run the cell:\n\n{stub}"
    )
