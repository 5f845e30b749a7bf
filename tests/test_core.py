"""The core of a notebook: what is counted, and what does not fit."""

import nbformat.v4 as v4
import pytest

from vitedu.course.core import core_table, find_problems, measure
from vitedu.course.stub_text import check_lines
from vitedu.exercises import find, in_file


def notebook(*cells, **metadata):
    """A notebook of cells: a text that begins with ``%`` is code, ``@`` an exercise's stub."""
    made = []
    for text in cells:
        if text.startswith("@"):
            made.append(v4.new_code_cell("x = None", metadata={"vitedu": {"exercise": text[1:]}}))
            made.append(v4.new_code_cell("\n".join(check_lines(find(text[1:])))))
        elif text.startswith("%"):
            made.append(v4.new_code_cell(text[1:]))
        else:
            made.append(v4.new_markdown_cell(text))
    return v4.new_notebook(cells=made, metadata={"vitedu": metadata})


CORE = ["85 to 115 minutes", *(f"@{exercise.id}" for exercise in in_file("01_patches"))]


def test_cells_are_counted():
    """Words without folded answers, open lines without checks, guesses, figures, minutes."""
    book = notebook(
        "one **Decide** three <details><summary>Answers</summary> five</details>",
        "%my_guess = None  # a number\n\nplots.show_pipeline(image)",
        "@patchify",
        run_minutes=2,
    )
    core = measure(book)
    assert (core.cells, core.words, core.lines) == (4, 3, 2)
    assert (core.predictions, core.figures, core.exercises) == (1, 1, ("patchify",))
    assert (core.folded, core.warm_ups) == (2, 1)
    parts = 3 / 120, 2 / 240, 2 / 12, find("patchify").minutes, 3 * 1, 1.5 * (1 + 1), 2
    assert core.minutes == pytest.approx(sum(parts))
    assert core_table({"01_patches": book}).splitlines()[1].split()[1:4] == ["4", "3", "2"]


def test_a_core_in_its_budget_has_no_problem():
    """Neither has a notebook of the second shelf, whatever it holds."""
    assert list(find_problems(notebook(*CORE), "01_patches")) == []
    assert list(find_problems(notebook("word " * 9000), "01_patches_more")) == []


def test_first_cell_states_the_minutes():
    """One number, in words that name a quick reader's time too."""
    (problem,) = find_problems(notebook("an hour", *CORE[1:]), "01_patches")
    assert "does not say '85 to 115 minutes'" in problem


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["word " * 2797], "2801 words, at most 2800"),
        (["%" + "x = 1\n" * 251], "251 lines, at most 250"),
        (["%my_x = None"] * 7, "7 predictions, at most 6"),
        (["text"] * 90, "cells, at most 85"),
        (["%plots.show_pipeline(image)"] * 60, "minutes, at most 110"),
    ],
)
def test_what_does_not_fit_is_named(cells, words):
    """One sentence with the number and the budget."""
    problems = list(find_problems(notebook(*CORE, *cells), "01_patches"))
    assert any(words in problem for problem in problems)
