"""Read a notebook file of any size and quality into cells.

Role: turns bytes into a ``NotebookFile``, whose cells are text. Nothing is run or trusted, and the
content never causes an exception. ``extraction`` decides which cell answers what.

Memory: a file is never read as a whole. ``shrink`` reads it in blocks and drops what no grade needs
(outputs, attachments, widget state) before anything is parsed. A file with more than ``MAX_KEPT``
bytes after that is refused. A file of more than ``MAX_FILE`` bytes is refused unread. Parsing takes
at most some twenty bytes for each byte kept.
"""

import codecs
import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

MAX_FILE = 256 * 2**20  # bytes; a larger file is not read
MAX_KEPT = 4 * 2**20  # bytes without outputs; the course's notebooks have 60 kB
MAX_CELLS = 5_000
MAX_STEPS = 5_000_000  # brackets and strings that are skipped; takes some four seconds
BLOCK = 2**20

SKIPPED_KEYS = (b'"outputs"', b'"attachments"', b'"widgets"')
# The number of repetitions is bounded, because the matcher stores each of them.
_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,1000}', re.S)
_STRUCTURE = re.compile(rb'["\[\]{}]')
_COLON = re.compile(rb"\s*:\s*")


@dataclass(frozen=True)
class Cell:
    """One cell, as far as grading needs it."""

    kind: str  # "code", "markdown", "raw"
    source: str  # newlines are \n
    exercise: str = ""  # the exercise in its metadata, unchecked


@dataclass(frozen=True)
class NotebookFile:
    """The content of a file, as far as it could be read."""

    cells: list[Cell] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    problem: str = ""  # why nothing could be read, with numbers
    oddities: list[str] = field(default_factory=list)  # faults that did not prevent reading


class _Unreadable(ValueError):
    """The file cannot be read; the message says why."""


def read_notebook(path: Path) -> NotebookFile:
    """Read a notebook. Never raises because of what the file is or holds."""
    try:
        return _read_cells(_parse_json(_read_bytes(path)))
    except _Unreadable as error:
        return NotebookFile(problem=str(error))
    except RecursionError:
        return NotebookFile(problem="brackets are nested too deep to be a notebook")
    except MemoryError:
        return NotebookFile(problem="it needs more memory than there is")
    except OSError as error:
        return NotebookFile(problem=f"it cannot be opened: {error.strerror or error}")
    except ValueError as error:
        return NotebookFile(problem=f"it is no JSON: {str(error)[:200]}")


# --- bytes ---------------------------------------------------------------------------------------


def _read_bytes(path: Path) -> bytes:
    """Open a regular file, but no link, and return its text without what is not needed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _Unreadable("it is no regular file")
        if status.st_size > MAX_FILE:
            mb, limit = status.st_size / 2**20, MAX_FILE / 2**20
            raise _Unreadable(
                f"{mb:.0f} MB, more than the {limit:.0f} MB that are read; clear its outputs"
            )
        if not status.st_size:
            raise _Unreadable("the file is empty")
        head = file.read(4)
        file.seek(0)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            if status.st_size > MAX_KEPT:
                raise _Unreadable("UTF-16, and too large to be converted; save it as UTF-8")
            return file.read(MAX_KEPT).decode("utf-16").encode("utf-8", "replace")
        return shrink(file)


def shrink(file: BinaryIO, max_kept: int = MAX_KEPT) -> bytes:
    """Copy JSON text and replace the values of ``SKIPPED_KEYS`` by null.

    Args:
        file: read once, in blocks.
        max_kept: the most bytes that may be left.

    Raises:
        ValueError: more is left, or the text ends inside a value.

    Example:
        >>> import io
        >>> shrink(io.BytesIO(b'{"outputs": [1, {"a": "]"}], "source": "x"}'))
        b'{"outputs": null, "source": "x"}'
    """
    return _Shrinker(file, max_kept).run()


class _Shrinker:
    """The state of ``shrink``: a buffer, a position in it, and the text kept so far."""

    def __init__(self, file: BinaryIO, max_kept: int):
        self.file, self.max_kept = file, max_kept
        self.buffer, self.place, self.result, self.steps = b"", 0, bytearray(), 0

    def run(self) -> bytes:
        while True:
            quote = self.buffer.find(b'"', self.place)
            if quote < 0:
                self.copy(len(self.buffer))
                if not self.read_block():
                    return bytes(self.result)
                continue
            self.copy(quote)
            end = self.find_string_end(keep=True)
            word = self.buffer[self.place : end]
            self.copy(end)
            if word in SKIPPED_KEYS and (colon := self.find_colon()):
                self.copy(colon)
                self.skip_value()

    def copy(self, end: int) -> None:
        """Keep the buffer up to ``end`` and move there."""
        self.result += memoryview(self.buffer)[self.place : end]
        self.place = end
        if len(self.result) > self.max_kept:
            limit = self.max_kept / 2**20
            raise _Unreadable(
                f"more than {limit:.0f} MB without its outputs: that is no notebook of this course"
            )

    def read_block(self) -> bool:
        """Read a block and drop the buffer before the position; False at the end of the file."""
        block = self.file.read(BLOCK)
        self.buffer, self.place = self.buffer[self.place :] + (block or b""), 0
        return bool(block)

    def find_string_end(self, keep: bool) -> int:
        """Return the position after the string that begins here."""
        place = self.place + 1
        while True:
            match = _STRING.match(self.buffer, place)
            place = match.end() if match else place  # always found, perhaps empty
            if place < len(self.buffer) - 1 or self.buffer[place : place + 1] == b'"':
                if self.buffer[place : place + 1] == b'"':
                    return place + 1
                self.count_step()  # a backslash: the pattern reached its 1000 repetitions
                continue
            if keep:
                if len(self.buffer) - self.place > self.max_kept:
                    raise _Unreadable(
                        "one string of several MB: that is no notebook of this course"
                    )
                place -= self.place
            else:
                self.place, place = place, 0  # a backslash at the end needs the next block
            if not self.read_block():
                raise _Unreadable("the file ends inside a string; it was not stored whole")

    def find_colon(self) -> int:
        """Return the position after the colon that follows here; 0 if there is none."""
        while len(self.buffer) - self.place < 64 and self.read_block():
            pass
        match = _COLON.match(self.buffer, self.place)
        return match.end() if match else 0

    def skip_value(self) -> None:
        """Move after the value that begins here and keep null in its place."""
        if self.place >= len(self.buffer):
            self.read_block()
        first = self.buffer[self.place : self.place + 1]
        if first == b'"':
            self.place = self.find_string_end(keep=False)
        elif first in (b"[", b"{"):
            depth, self.place = 1, self.place + 1
            while depth:
                match = _STRUCTURE.search(self.buffer, self.place)
                if not match:
                    self.place = len(self.buffer)
                    if not self.read_block():
                        raise _Unreadable("the file ends inside an output; it was not stored whole")
                    continue
                self.place = match.start()
                self.count_step()
                if match[0] == b'"':
                    self.place = self.find_string_end(keep=False)
                else:
                    depth += 1 if match[0] in b"[{" else -1
                    self.place += 1
        else:
            return  # a number, true, false or null is kept
        self.result += b"null"

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise _Unreadable(f"outputs of more than {MAX_STEPS:,} parts; clear them")


# --- cells ---------------------------------------------------------------------------------------


def _parse_json(text: bytes) -> Any:
    return json.loads(
        text.decode("utf-8-sig", "replace"),
        parse_int=lambda digits: int(digits) if len(digits) < 20 else 0,  # a huge one takes minutes
    )


def _read_cells(content: Any) -> NotebookFile:
    """Find the cells of nbformat 3 and 4. Malformed ones are left out and listed as oddities."""
    if not isinstance(content, dict):
        raise _Unreadable(f"it is JSON, but a {type(content).__name__} and no notebook")
    sheets = content.get("worksheets")
    sheets = [s for s in sheets if isinstance(s, dict)] if isinstance(sheets, list) else []
    raw_cells = content.get("cells", sheets[0].get("cells") if sheets else None)
    if "cells" not in content and len(sheets) > 1:
        rest = [sheet.get("cells") for sheet in sheets]
        raw_cells = [cell for cells in rest if isinstance(cells, list) for cell in cells]
    if not isinstance(raw_cells, list):
        raise _Unreadable("it is JSON, but has no list of cells")
    oddities, cells = [], []
    if content.get("nbformat") not in (3, 4):
        oddities.append(f"format {str(content.get('nbformat'))[:20]}, read as 4")
    if len(raw_cells) > MAX_CELLS:
        oddities.append(f"{len(raw_cells)} cells, only the last {MAX_CELLS} are read")
        raw_cells = raw_cells[-MAX_CELLS:]
    num_broken = 0
    for raw in raw_cells:
        source = _join(raw.get("source", raw.get("input", ""))) if isinstance(raw, dict) else None
        if source is None:
            num_broken += 1
            continue
        metadata = raw.get("metadata")
        marked = metadata.get("vitedu") if isinstance(metadata, dict) else None
        exercise = marked.get("exercise") if isinstance(marked, dict) else None
        kind = raw.get("cell_type")
        cells.append(
            Cell(
                kind if isinstance(kind, str) else "",
                source,
                exercise if isinstance(exercise, str) else "",
            )
        )
    if num_broken:
        oddities.append(f"{num_broken} cells are malformed and left out")
    metadata = content.get("metadata")
    return NotebookFile(cells, metadata if isinstance(metadata, dict) else {}, "", oddities)


def _join(source: Any) -> str | None:
    """Return the source of a cell as one text; None if it is no text."""
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    source = source.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    return source.encode("utf-8", "replace").decode("utf-8")  # replaces lone surrogates
