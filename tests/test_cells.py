"""Cells in a worker: every statement for itself, so that a missing one takes nothing with it."""

import pytest

from vitedu.grading.box.cells import run_cell, run_support


def test_statements_after_and_before_a_failure_run():
    """The first error is given; definitions around it stand."""
    names = {}
    error = run_cell("a = 1\nb = missing\nc = a + 1\nd = other\n", "<answer>", names)
    assert isinstance(error, NameError) and "missing" in str(error)
    assert names["a"] == 1 and names["c"] == 2 and "b" not in names


def test_imports_are_lost_one_by_one():
    """Of several names in a statement only the missing ones are lost, each with its reason."""
    names = {}
    source = (
        "from math import pi, no_such, tau\nimport json, no_module\nfrom nowhere import a as b\n"
    )
    source += "x, y = nothing\ndef f():\n    pass\n"
    lost = run_support(source, "<support>", names)
    assert {"pi", "tau", "json", "f"} <= set(names)
    assert [(names_bound, origin) for names_bound, _, origin in lost] == [
        (["no_such"], "math"),
        (["no_module"], "no_module"),
        (["b"], "nowhere"),
        (["x", "y"], ""),
    ]
    assert all(why.split(":")[0].endswith("Error") for _, why, _ in lost)


@pytest.mark.parametrize("source", ["def f(:\n", "x = '\0'", "(" * 300 + ")" * 300, "\udcff = 1"])
def test_what_is_no_python_is_an_error_and_not_a_crash(source):
    """Broken code is given back as its error; as support it is one loss, and nothing runs."""
    names = {}
    assert isinstance(run_cell(source, "<answer>", names), (SyntaxError, ValueError, MemoryError))
    ((names_bound, why, origin),) = run_support(source, "<support>", names)
    assert names_bound == [] and why and origin == ""


def test_an_exit_ends_a_cell_and_a_time_limit_passes():
    """SystemExit ends it as it would in a notebook; what is no ordinary error is raised."""
    names = {}
    assert isinstance(run_cell("a = 1\nraise SystemExit\nb = 2", "<answer>", names), SystemExit)
    assert names["a"] == 1 and "b" not in names
    with pytest.raises(KeyboardInterrupt):
        run_cell("raise KeyboardInterrupt", "<answer>", {})


def test_future_features_reach_later_statements():
    """An import from the future holds for the whole cell, though statements are compiled alone."""
    names = {}
    source = "from __future__ import annotations\ndef f(x: Unknown) -> Unknown:\n    return x\n"
    assert run_cell(source, "<answer>", names) is None
    assert names["f"].__annotations__ == {"x": "Unknown", "return": "Unknown"}


def test_errors_name_the_lines_of_the_cell():
    """A traceback shows the student's line, by the number in the cell."""
    import traceback

    names = {}
    run_cell("\n\ndef f(x):\n    return x + undefined  # here\n", "<answer>", names)
    with pytest.raises(NameError) as caught:
        names["f"](1)
    last = traceback.extract_tb(caught.tb)[-1]
    line = "return x + undefined  # here"
    assert (last.lineno, last.line, last.filename) == (4, line, "<answer>")
