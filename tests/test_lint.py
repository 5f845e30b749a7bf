"""The lint finds each fault alone, says where it is, and finds none in the course's notebooks."""

import json
from pathlib import Path

import pytest
from nbformat.v4 import new_output
from sound_notebook import build

from vitedu.course import references
from vitedu.course.lint import lint
from vitedu.course.notebooks import shelf_path
from vitedu.exercises import STEMS

ROOT = Path(__file__).parents[1]


def problems_of(notebook, folder, name="01_patches", **options):
    path = folder / shelf_path(f"{name}.ipynb")
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(notebook, file)
    return lint(path, **options)


def cell(notebook, name):
    return next(cell for cell in notebook.cells if cell["id"] == name)


def edit(name, old, new):
    """Make a fault that replaces text in one cell."""

    def fault(notebook):
        target = cell(notebook, name)
        assert old in target.source, target.source
        target.source = target.source.replace(old, new)

    return fault


def in_stub(old, new):
    """Make a fault that replaces text in the stub of patchify."""
    return edit("patchify-stub", old, new)


def in_check(old, new):
    """Make a fault that replaces text in the check of patchify."""
    return edit("patchify-check", old, new)


def change(name, **fields):
    """Make a fault that sets fields of one cell."""
    return lambda notebook: cell(notebook, name).update(fields)


def drop(name):
    """Make a fault that removes a cell."""
    return lambda notebook: notebook.cells.remove(cell(notebook, name))


def store(name, output):
    """Make a fault that stores an output in one cell."""
    return lambda notebook: cell(notebook, name).outputs.append(output)


def swap(notebook):
    first, second = (
        notebook.cells.index(cell(notebook, name)) for name in ("patchify-stub", "PatchEmbed-stub")
    )
    for offset in (0, 1):
        a, b = first + offset, second + offset
        notebook.cells[a], notebook.cells[b] = notebook.cells[b], notebook.cells[a]


def share_an_id(notebook):
    cell(notebook, "compared")["id"] = "title"


def lose_an_id(notebook):
    del cell(notebook, "compared")["id"]


def rename_the_exercise(notebook):
    cell(notebook, "patchify-stub").metadata["vitedu"]["exercise"] = "pachify"


def invalid_field(notebook):
    cell(notebook, "title")["outputs"] = []


TEXT = new_output("stream", text="hello")

HANDED_ON = "patchify = report.implementation"

FAULTS = {
    "stub-missing": (drop("patchify-stub"), "has the stub of PatchEmbed where vitedu/"),
    "stub-unknown": (rename_the_exercise, "stub of pachify where vitedu/course/exercises.toml"),
    "stub-order": (swap, "stub of PatchEmbed where vitedu/course/exercises.toml has patchify"),
    "stub-solved": (
        in_stub('raise NotImplementedError("1.1 patchify")', "return images"),
        "the stub of patchify has 'return images'",
    ),
    "stub-signature": (
        in_stub("patch_size: int", "patch_size"),
        "the stub of patchify has 'def patchify(images: torch.Tensor, patch_size) -> ",
    ),
    "stub-docstring": (in_stub("Cut images", "Chop images"), "Chop images"),
    "stub-with-more": (
        in_stub("def patchify", "import math\ndef patchify"),
        "the stub of patchify has 'import math'",
    ),
    "stub-broken": (in_stub("def ", "de "), "the stub is not valid Python"),
    "stub-without-todo": (in_stub("TODO 1.1", "to do"), "no comment '# TODO 1.1: ...'"),
    "value-given": (
        edit("tokens_at_224-stub", "None", "197"),
        "has 'tokens_at_224 = 197', its reference gives 'tokens_at_224 = None'",
    ),
    "check-missing": (drop("patchify-check"), "the next cell must begin with the lines"),
    "check-of-another": (
        in_check("check(patchify)", "check(unpatchify)"),
        "the next cell must begin with the lines 'report = check(patchify)'",
    ),
    "check-unnamed-value": (
        edit("tokens_at_224-check", ', "tokens_at_224"', ""),
        'report = check(tokens_at_224, "tokens_at_224")',
    ),
    "check-without-implementation": (in_check(f"\n{HANDED_ON}", ""), f"'{HANDED_ON}'"),
    "output-uncompared": (store("imports", TEXT), "1 cells hold an output or a count"),
    "execution-count": (change("imports", execution_count=3), "1 cells hold an output or a count"),
    "shared-id": (share_an_id, "Non-unique cell id 'title' detected"),
    "no-id": (lose_an_id, "Cell is missing an id field"),
    "invalid": (invalid_field, "not valid nbformat"),
}


def test_lint_finds_nothing_in_a_sound_notebook(tmp_path):
    """The yardstick of the tests below is itself without a fault."""
    assert problems_of(build(), tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_lint_names_the_fault(tmp_path, fault):
    """One fault gives a sentence that names the file and the fault."""
    make, expected = FAULTS[fault]
    notebook = build()
    make(notebook)
    problems = problems_of(notebook, tmp_path)
    assert any(expected in problem for problem in problems), problems
    assert all(problem.startswith("01_patches.ipynb, ") for problem in problems)


def test_given_parts_of_a_class_are_held_too(tmp_path):
    """They are the reference's."""
    name, imports = "02_attention", "import torch\nfrom torch import nn\nfrom vitedu import check"
    notebook = build(name, imports)
    before = problems_of(notebook, tmp_path, name)
    edit("MultiHeadAttention-stub", "nn.Module", "nn.Identity")(notebook)
    new = set(problems_of(notebook, tmp_path, name)) - set(before)
    assert any("has 'class MultiHeadAttention(nn.Identity):'" in problem for problem in new), new


def test_lint_says_which_module_lacks_a_reference(tmp_path, monkeypatch):
    """An exercise without a reference names the module to write it in."""
    notebook = build()
    monkeypatch.setattr(references, "module_source", lambda name: "x = 1")
    references.reference_source.cache_clear()
    with pytest.raises(ValueError, match="vitedu.patches does not define patchify; write the ref"):
        problems_of(notebook, tmp_path)


def test_lint_refuses_what_is_no_notebook(tmp_path):
    """A file that cannot be read is wrong use, not a problem of style."""
    path = tmp_path / "01_patches.ipynb"
    known = '{"nbformat": 4, "cells": [{}]}', '{"nbformat": 3, "cells": []}'
    for content in ("", "{}", "[]", *known):
        path.write_text(content)
        with pytest.raises(ValueError, match="01_patches.ipynb"):
            lint(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", STEMS)
def test_notebooks_of_the_course_are_sound(name):
    """No problem in any committed notebook."""
    assert lint(ROOT / "notebooks" / shelf_path(f"{name}.ipynb")) == []
