"""Submissions that are made to stop a grader while it reads: each of them is one student's folder.

Role: ``TEXTS``, ``FILES`` and ``hand_in``. Code that does harm when it runs is in ``attacks``.
"""

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

from attacks import IMPORTS, code, notebook

from vitedu.exercises import EXERCISES

FILE = "01_patches.ipynb"
ANSWER = "def patchify(images, patch_size):\n    return images * x\n"  # reads what the texts bind
DEEP = 40


def blocks(head: str, depth: int = DEEP, last: str = "x = 1", tail: str = "") -> str:
    """Nest a compound statement."""
    lines = [" " * level + head.replace("#", str(level)) for level in range(depth)]
    ends = [" " * level + tail for level in reversed(range(depth)) if tail]
    return "\n".join([*lines, " " * depth + last, *ends])


def nested(before: str, after: str, depth: int = DEEP, core: str = "1") -> str:
    """Nest an expression."""
    return "x = " + before * depth + core + after * depth


# name -> a cell that binds x
TEXTS = {
    "for": blocks("for x# in range(2):"),
    "while": blocks("while x:", last="x = x + 1"),
    "if": blocks("if x:", 95),
    "try": blocks("try:", last="x = 1", tail="except Exception: x = 2"),
    "match": blocks("match x#:", 1, "case [x]: x = 1") + "\n" + blocks("if [x := 1]:"),
    "comprehensions": nested("[x for x in ", "]", core="[1]"),
    "comprehension heads": "x = [1" + "".join(f" for x{i} in [1, 2]" for i in range(200)) + "]",
    "walruses": nested("(x := ", ")"),
    "lambdas": nested("(lambda x=", ": x)()"),
    "decorators": "@abs\n" * 5_000 + "def x(): pass",
    "f-strings": nested("f'''{f\"\"\"{f'{", "}'}\"\"\"}'''", 1, 'f"{1}"')
    + "\nx = "
    + "f'{1}' " * 9_000,
    "5000 brackets": nested("(", ")", 5_000),
    "150 brackets": nested("[", "]", 150) + "\n" + nested("{1: ", "}", 150),
    "minus signs": nested("-", "", 50_000),
    "attributes": "\n".join(["x = a" + ".b" * 900] * 15),
    "sums": "x = " + "1 + " * 20_000 + "1",
    "chained targets": "x = " * 20_000 + "1",
    "one statement after another": "x = 1;" * 16_000,
    "renewed": "x = 1\n" + "x = x + 1\n" * 4_000,
    "in a circle": "".join(f"x{i % 50} = x{(i * 7 + 3) % 50}\n" for i in range(4_000)) + "x = x1",
    "everything changes x": "x = [1]\n" + "x.append(x)\n" * 7_000,
    "names": "x = " + ", ".join(f"a{number}" for number in range(15_000)),
    "large number": "x = " + "9" * 90_000,
    "blanks": " " * 99_000 + "$\nx = 1",
    "magics": "!x\n" * 300 + "a = 1\n" * 8_000 + "x = 1",
    "backslashes": "x = 1 + \\\n" * 1 + "\\\n" * 20_000 + "1",
    "letters that Python composes": "x = " + " + ".join(["\ufb03" * 500] * 60),
}


def write(place: Path, *cells: str | dict) -> None:
    """Write a notebook of a first cell, some cells, and the answer."""
    cells = (IMPORTS, *cells, code(ANSWER, "patchify"))
    text = notebook([code(cell) if isinstance(cell, str) else cell for cell in cells])
    (place / FILE).write_text(text, "utf-8")


def of_bytes(*pieces: bytes | int) -> Callable[[Path], None]:
    """Write a file of pieces; a number leaves a hole of so many bytes."""

    def make(place: Path) -> None:
        with (place / FILE).open("wb") as file:
            for piece in pieces:
                if isinstance(piece, int):
                    file.truncate(file.tell() + piece)
                    file.seek(0, os.SEEK_END)
                else:
                    file.write(piece)

    return make


def zip_of_gigabytes(place: Path) -> None:
    """Write 64 archives of 64 MB of zeros in an archive, which also bears a notebook's name."""
    content, names = b"\0" * 2**26, [FILE]
    for _ in range(2):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for name in names:
                file.writestr(name, content)
        content, names = archive.getvalue(), [f"{number}.zip" for number in range(64)]
    (place / "work.zip").write_bytes(content)
    (place / FILE).write_bytes(content)


def many_files(place: Path) -> None:
    """Put 20,000 files beside each other, some of them notebooks."""
    for number in range(20_000):
        (place / f"{number}.{'ipynb' if number % 100 == 0 else 'txt'}").touch()


def all_answers(place: Path) -> None:
    """Answer every exercise with the longest text that is read."""
    lines = "".join(f"    a{number} = b{number % 7}({number})\n" for number in range(200))
    cells = [code(f"def {e.id}(x):\n{lines}    return x\n", e.id) for e in EXERCISES]
    write(place, *cells)


CELLS = b'{"nbformat": 4, "metadata": {}, "cells": ['
LAST = json.dumps(code(ANSWER, "patchify")).encode() + b"]"
FILES: dict[str, Callable[[Path], object]] = {
    "10 MB of one line": lambda place: write(place, "x = '" + "a" * 10 * 2**20 + "'"),
    "3 MB of one line": lambda place: write(place, "x = '" + "a" * 3 * 2**20 + "'"),
    "100,000 cells": lambda place: write(place, *["x = 1"] * 100_000),
    "100,000 small cells": of_bytes(CELLS + b'{"source":"x=1"},' * 100_000 + LAST + b"}"),
    "deep JSON": of_bytes(CELLS + b"[" * 200_000 + b"]" * 200_000 + b"]}"),
    "deep metadata": of_bytes(CELLS + LAST + b', "a": ' + b'{"a":' * 900 + b"1" + b"}" * 901),
    "output of 100 MB": of_bytes(CELLS + b'{"outputs": ["', b"x" * 10**8, b'"]},' + LAST + b"}"),
    "output of brackets": of_bytes(CELLS + b'{"outputs": ' + b"[" * 50 * 2**20),
    "output of strings": of_bytes(
        CELLS + b'{"outputs": [' + b'"\\u0000",' * 2**21 + b"1]}," + LAST + b"}"
    ),
    "many keys": of_bytes(
        CELLS + b"{" + b'"a":1,' * 500_000 + b'"source": "x = 1"},' + LAST + b"}"
    ),
    "zip": zip_of_gigabytes,
    "lone surrogates": lambda place: write(place, "x = '\ud800\udfff' # \udc80\nx = 1"),
    "surrogates in marks": lambda place: write(place, code("x = 1", "\ud800" * 100)),
    "folder": lambda place: (place / FILE).mkdir(),
    "FIFO": lambda place: os.mkfifo(place / FILE),
    "link": lambda place: (place / FILE).symlink_to("/dev/zero"),
    "link to itself": lambda place: (place / FILE).symlink_to(FILE),
    "hole of 1 TB": of_bytes(CELLS, 2**40),
    "hole of 200 MB": of_bytes(CELLS, 200 * 2**20),
    "20,000 files": many_files,
    "long answers": all_answers,
}


def hand_in(folder: Path, kind: str) -> Path:
    """Write the folder of one hostile student; return it."""
    place = folder / "mallory"
    place.mkdir(parents=True)
    FILES[kind](place) if kind in FILES else write(place, TEXTS[kind])
    return place
