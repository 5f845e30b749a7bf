"""Files that are no good notebooks: what each is worth, and how it is made in a folder."""

import json
import os
from pathlib import Path

from attacks import IMPORTS, RIGHT, ZEROS, code, notebook

SOUND = notebook([code(IMPORTS), code(RIGHT, "softmax")])
MB = 10**6


def _encoded(line: str) -> str:
    return notebook([code(IMPORTS), code(f"{line}\n{RIGHT}", "softmax")])


def _large_output() -> bytes:
    """200 MB in the outputs of an answer that is worth zeros."""
    output = {"output_type": "stream", "name": "stdout", "text": ["@"]}
    text = notebook([code(IMPORTS), code(ZEROS, "softmax", outputs=[output])])
    return text.replace("@", "x" * 200 * MB).encode()


def _same_ids() -> str:
    cells = [
        {"id": "same", **cell}
        for cell in (code(IMPORTS), code(ZEROS, "softmax"), code("softmax = softmax"))
    ]
    return notebook(cells)


def _test_edited() -> str:
    """Marks of nbgrader turned round, cells of checks emptied and deleted."""
    grader = {
        "nbgrader": {
            "grade": True,
            "solution": True,
            "points": 10**6,
            "schema_version": 3,
            "grade_id": "softmax",
        }
    }
    cells = [code(IMPORTS), code(ZEROS, "softmax"), code("pass")]
    for cell in cells:
        cell["metadata"] |= grader
    return notebook(cells)


# name -> (worth, bytes of the notebook)
CONTENT = {
    "broken_json": (("unreadable",), SOUND[:-40].encode()),
    "empty_file": (("unreadable",), b""),
    "html_page": (("unreadable",), b"<html><body>Sign in to continue</body></html>"),
    "json_of_another_kind": (("unreadable", "no_cell"), b'[{"cells": []}]'),
    "nested_too_deep": (("unreadable",), b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "zip_bomb": (("unreadable",), b"PK\3\4" + b"\0" * MB),
    "gzip": (("unreadable",), b"\x1f\x8b\x08" + b"\0" * 1000),
    "huge_number": (
        "zeros",
        notebook([code(IMPORTS), code(ZEROS, "softmax", execution_count="@")])
        .replace('"@"', "9" * MB)
        .encode(),
    ),
    "same_ids": ("zeros", _same_ids().encode()),
    "outputs_of_200_mb": ("zeros", None),
    "marks_edited": ("zeros", _test_edited().encode()),
    "duplicate_answers": (
        "zeros",
        notebook([code(IMPORTS), code(RIGHT, "softmax"), code(ZEROS, "softmax")]).encode(),
    ),
    "syntax_error": (
        ("syntax",),
        notebook([code(IMPORTS), code("def softmax(x, dim=-1:\n    return x", "softmax")]).encode(),
    ),
    "nul_in_the_source": (
        ("syntax", "unreadable"),
        notebook(
            [code(IMPORTS), code("def softmax(x, dim=-1):\n    return x\0", "softmax")]
        ).encode(),
    ),
    "nested_expression": (
        ("syntax",),
        notebook(
            [
                code(IMPORTS),
                code("def softmax(x, dim=-1):\n    return " + "-" * 50_000 + "x", "softmax"),
            ]
        ).encode(),
    ),
    "million_statements": (
        ("syntax", "no_cell", "unreadable", "zeros"),
        notebook([*[code("a;" * 40_000)] * 40, code(ZEROS, "softmax")]).encode(),
    ),
    "slow_to_match": (
        "zeros",
        notebook(
            [*[code(" " * 90_000 + "(")] * 20, code(IMPORTS), code(ZEROS, "softmax")]
        ).encode(),
    ),
    "encoding_line": ("full", _encoded("# -*- coding: utf-7 -*-").encode()),
    "unknown_codec": ("full", _encoded("# -*- coding: no-such-codec -*-").encode()),
    "lone_surrogates": ("full", SOUND.replace("import math", "import math  # \\ud800").encode()),
    "answer_in_markdown": (
        "zeros",
        notebook([code(IMPORTS), {**code(ZEROS, "softmax"), "cell_type": "markdown"}]).encode(),
    ),
    "cells_of_wrong_types": (
        "zeros",
        json.dumps(
            {
                "nbformat": 4,
                "metadata": [],
                "cells": [
                    None,
                    7,
                    {"source": 5},
                    {"source": ["import torch"], "metadata": 3},
                    {**code(ZEROS, "softmax"), "metadata": {"vitedu": "softmax"}},
                ],
            }
        ).encode(),
    ),
    "marked_as_another": (
        "zeros",
        notebook([code(IMPORTS), code(ZEROS, "../../etc/passwd")]).encode(),
    ),
    "other_language": (
        ("no_cell", "syntax"),
        notebook([code(IMPORTS), code("%%bash\nrm -rf /\n", "softmax")]).encode(),
    ),
}


def make(folder: Path) -> None:
    """Write them, a folder a student, and what only a file system can hold."""
    for name, (_, content) in CONTENT.items():
        place = folder / name
        place.mkdir()
        (place / "02_attention.ipynb").write_bytes(_large_output() if content is None else content)


# names of students that a page, a table or a path might choke on
STUDENTS = (
    '=HYPERLINK("http:evil","x")',
    "+1+cmd",
    "-2",
    "@SUM(A1)",
    "<script>alert(4)<",
    "..",
    "'; drop table",
    "a\u202egnp.exe",
    "Ünïcödé 注意",
    "con",
    "x" * 200,
    " leading",
    "two\nlines",
    "tab\tbed",
    "a&amp;b",
    "%2e%2e%2f",
)


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
