"""Files that are no good notebooks: what each is worth, and how it is made in a folder."""

import json
import os
from pathlib import Path

from attacks import IMPORTS, RIGHT, ZEROS, code, notebook

SOUND = notebook([code(IMPORTS), code(RIGHT, "softmax")])
MB = 10**6


def _handed_in(source: str, before: tuple[str, ...] = (IMPORTS,), **others) -> bytes:
    """Write a notebook of one answer."""
    return notebook([*map(code, before), code(source, "softmax", **others)]).encode()


def _large_output() -> bytes:
    """200 MB in the outputs of an answer that is worth zeros."""
    output = {"output_type": "stream", "name": "stdout", "text": ["@"]}
    return _handed_in(ZEROS, outputs=[output]).replace(b"@", b"x" * 200 * MB)


def _same_ids() -> bytes:
    cells = [code(IMPORTS), code(ZEROS, "softmax"), code("softmax = softmax")]
    return notebook([{"id": "same", **cell} for cell in cells]).encode()


def _marks_edited() -> bytes:
    """Marks of nbgrader turned round, cells of checks emptied and deleted."""
    marks = {"grade": True, "solution": True, "points": 10**6, "schema_version": 3}
    cells = [code(IMPORTS), code(ZEROS, "softmax"), code("pass")]
    for cell in cells:
        cell["metadata"]["nbgrader"] = marks | {"grade_id": "softmax"}
    return notebook(cells).encode()


def _wrong_types() -> bytes:
    """Cells, sources and metadata of kinds that no notebook has."""
    cells = [None, 7, {"source": 5}, {"source": ["import torch"], "metadata": 3}]
    cells.append({**code(ZEROS, "softmax"), "metadata": {"vitedu": "softmax"}})
    return json.dumps({"nbformat": 4, "metadata": [], "cells": cells}).encode()


# name -> (worth, bytes of the notebook)
CONTENT = {
    "broken_json": ("unreadable", SOUND[:-40].encode()),
    "empty_file": ("unreadable", b""),
    "html_page": ("unreadable", b"<html><body>Sign in to continue</body></html>"),
    "json_of_another_kind": ("unreadable no_cell", b'[{"cells": []}]'),
    "nested_too_deep": ("unreadable", b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "zip_bomb": ("unreadable", b"PK\3\4" + b"\0" * MB),
    "gzip": ("unreadable", b"\x1f\x8b\x08" + b"\0" * 1000),
    "huge_number": ("zeros", _handed_in(ZEROS, execution_count="@").replace(b'"@"', b"9" * MB)),
    "same_ids": ("zeros", _same_ids()),
    "outputs_of_200_mb": ("zeros", None),
    "marks_edited": ("zeros", _marks_edited()),
    "duplicate_answers": (
        "zeros",
        notebook([code(IMPORTS), code(RIGHT, "softmax"), code(ZEROS, "softmax")]).encode(),
    ),
    "syntax_error": ("syntax", _handed_in("def softmax(x, dim=-1:\n    return x")),
    "nul_in_the_source": (
        "syntax unreadable",
        _handed_in("def softmax(x, dim=-1):\n    return x\0"),
    ),
    "nested_expression": (
        "syntax",
        _handed_in("def softmax(x, dim=-1):\n    return " + "-" * 50_000 + "x"),
    ),
    "100_000_statements": (
        "syntax no_cell unreadable zeros timeout unstable",
        _handed_in(ZEROS, ("a;" * 25_000,) * 4),
    ),
    "slow_to_match": ("zeros", _handed_in(ZEROS, (*(" " * 90_000 + "(",) * 20, IMPORTS))),
    "encoding_line": ("full", _handed_in(f"# -*- coding: utf-7 -*-\n{RIGHT}")),
    "unknown_codec": ("full", _handed_in(f"# -*- coding: no-such-codec -*-\n{RIGHT}")),
    "lone_surrogates": ("full", SOUND.replace("import math", "import math  # \\ud800").encode()),
    "answer_in_markdown": ("zeros", _handed_in(ZEROS, cell_type="markdown")),
    "cells_of_wrong_types": ("zeros", _wrong_types()),
    "marked_as_another": (
        "zeros",
        notebook([code(IMPORTS), code(ZEROS, "../../etc/passwd")]).encode(),
    ),
    "other_language": ("no_cell syntax", _handed_in("%%bash\nrm -rf /\n")),
}


def make(folder: Path) -> None:
    """Write them, a folder a student."""
    for name, (_, content) in CONTENT.items():
        place = folder / f"file_{name}"
        place.mkdir()
        (place / "02_attention.ipynb").write_bytes(_large_output() if content is None else content)


# names of students that a page, a table or a path might choke on
STUDENTS = '=HYPERLINK("http:evil","x")|+1+cmd|-2|@SUM(A1)|<script>alert(4)<|\'; drop table|'
STUDENTS += "a\u202egnp.exe|Ünïcödé 注意|con| leading|two\nlines|tab\tbed|a&amp;b|%2e%2e%2f"
STUDENTS = (*STUDENTS.split("|"), "x" * 200)


def make_links(folder: Path, target: Path) -> None:
    """Write links to others' work and to the system, pipes and loops."""
    for name, to in {
        "link_to_neighbour": target,
        "link_to_etc": Path("/etc/passwd"),
        "link_to_itself": Path("02_attention.ipynb"),
    }.items():
        (folder / name).mkdir()
        (folder / name / "02_attention.ipynb").symlink_to(to)
    (folder / "loop").mkdir()
    (folder / "loop" / "again").symlink_to(folder, target_is_directory=True)
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "pipe" / "02_attention.ipynb")
