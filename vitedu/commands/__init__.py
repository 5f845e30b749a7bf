"""The commands of ``vitedu``, by who needs them: each module adds its own to the parser.

Role: the options, and the call of the module that does the work; what a command needs is imported
when it runs. Not here: the exit status of a mistake (``__main__``).
"""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Commands:
    """Where a module adds its commands: an argparse group of sub-commands."""

    def __init__(self, subparsers: Any, group: str = ""):
        self.subparsers = subparsers
        self.group = group  # under which ``vitedu`` alone lists them
        self.lines: list[str] = []  # of that list

    def add(self, name: str, run: Callable | None, text: str) -> ArgumentParser:
        """Add a command and return its parser.

        Args:
            name: what is typed.
            run: takes the parsed words, returns the exit status or None.
            text: one line of help.
        """
        help = {} if self.group else {"help": text}
        new = self.subparsers.add_parser(name, description=f"{text[0].upper()}{text[1:]}.", **help)
        new.set_defaults(run=run)
        self.lines.append(f"  {name:<11}{text}")
        return new


def add_exercise(parser: ArgumentParser) -> None:
    """Add the exercise that a command is about."""
    new: Any = parser.add_argument("exercise", help="its id or number, such as patchify or 1.1")
    new.completer = list_ids


def list_ids(**_: object) -> list[str]:
    """List what completes the name of an exercise."""
    from vitedu.exercises import BY_ID

    return list(BY_ID)


def exercise_named(word: str):
    """Look up one exercise by id or number.

    Raises:
        ValueError: there is no such exercise, or the word names several.
    """
    from vitedu.exercises import select

    exercise, *others = select([word])
    if others:
        raise ValueError(f"{word} names {1 + len(others)} exercises; name one, such as 1.1.")
    return exercise


def add_path(parser: ArgumentParser, name: str, default: str, text: str = "") -> None:
    """Add a path that has a default; one without dashes may be left out."""
    options: dict[str, Any] = {} if name.startswith("-") else {"nargs": "?"}
    help = f"{text}default: {default}"
    parser.add_argument(name, type=Path, default=Path(default), help=help, **options)


def add_notebooks(parser: ArgumentParser, name: str) -> None:
    """Add the notebooks that a command reads."""
    help = "a notebook or a folder of them (default: the course's own)"
    parser.add_argument(name, type=own_notebooks, nargs="?", default="", help=help)


def own_notebooks(word: str) -> Path:
    """Give the path that was named; without one the folder of the clone, or of the wheel."""
    from vitedu.course.workspace import find_sources

    return Path(word) if word else find_sources()[0].parent


def add_flag(parser: Any, name: str, text: str, **options: Any) -> None:
    """Add an option that is on or off."""
    parser.add_argument(name, action="store_true", help=text, **options)


def add_model(parser: ArgumentParser, text: str) -> None:
    """Add the option that names a student's file."""
    parser.add_argument("--model", metavar="FILE", type=Path, help=f"{text}; the file is executed")


def add_device(parser: ArgumentParser) -> None:
    """Add the option that says where to compute."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, mps (default: auto)")
