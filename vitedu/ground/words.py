"""Read the TOML files that hold the course's words: exercises, hints, known mistakes.

Role: ``read`` parses a file, ``check_table`` holds one of its tables against the keys that it may
have. Whatever is wrong becomes one line that names the file, the place and the remedy.
Loads without torch.
"""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


class WordsError(ValueError):
    """A file of words is missing or wrong. The message is one line, with the remedy."""


def place(path: Path) -> str:
    """Name a file as a maintainer knows it: from ``vitedu`` on, if it belongs to the package."""
    package = Path(__file__).parents[1]
    return path.relative_to(package.parent).as_posix() if package in path.parents else path.name


def read(path: Path) -> dict[str, Any]:
    """Parse a TOML file.

    A byte order mark and Windows line ends are read like any other file.

    Raises:
        WordsError: there is no such file, or it is no TOML in UTF-8.
    """
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
    except OSError as error:
        remedy = "install vitedu again, or restore the file from the repository"
        raise WordsError(f"{place(path)}: cannot be read ({error.strerror}); {remedy}.") from None
    except UnicodeDecodeError as error:
        remedy = "save it as UTF-8"
        raise WordsError(f"{place(path)}: is not UTF-8 (byte {error.start}); {remedy}.") from None
    except tomllib.TOMLDecodeError as error:
        remedy = "correct it there, or just above"
        raise WordsError(f"{place(path)}: is not valid TOML: {error}; {remedy}.") from None


def check_table(
    where: str, table: Any, required: Mapping[str, type], optional: Mapping[str, type]
) -> dict[str, Any]:
    """Return a table whose keys are those that it must and may have, each of the right type.

    Args:
        where: the file and the entry, for messages.
        table: as TOML gives it.
        required: key -> type.
        optional: key -> type; ``list`` means any list.

    Raises:
        WordsError: a key is missing, unknown, or of another type.

    Example:
        >>> check_table("a.toml, entry 1", {"id": "a"}, {"id": str, "points": int}, {})
        Traceback (most recent call last):
        vitedu.ground.words.WordsError: a.toml, entry 1: has no "points"; add it, a whole number.
    """
    types = {**required, **optional}
    if not isinstance(table, dict):
        raise WordsError(f"{where}: is no table; write it as [[...]] with keys below.")
    for key, value in table.items():
        if key not in types:
            near = difflib.get_close_matches(key, types, n=1)
            remedy = f'write "{near[0]}"' if near else f"the keys are {', '.join(types)}"
            raise WordsError(f'{where}: has the unknown key "{key}"; {remedy}.')
        is_right = isinstance(value, types[key]) and isinstance(value, bool) == (types[key] is bool)
        if not is_right:
            kind_name = KINDS.get(types[key], "a list")
            raise WordsError(f'{where}: "{key}" must be {kind_name} (got {value!r}); correct it.')
    for key, kind in required.items():
        if key not in table:
            remedy = f"add it, {KINDS.get(kind, 'a list')}"
            raise WordsError(f'{where}: has no "{key}"; {remedy}.')
    return dict(table)
