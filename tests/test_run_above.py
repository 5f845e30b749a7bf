"""A NameError after a restart is followed by one line that says "Run all above"."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from vitedu.course import run_above

CELLS = [
    new_code_cell("%env VITEDU_PROFILE=quick\nimport torch\nfrom vitedu import check"),
    new_markdown_cell("below = 1"),
    new_code_cell("def patchify(images):\n    local = images"),
    new_code_cell("for image, (one, two) in ():\n    x = 1"),
    new_code_cell("unfinished = ("),
    new_code_cell("here"),
    new_code_cell("below = 2"),
]
ABOVE = ["torch", "check", "patchify", "image", "two", "x"]
ELSEWHERE = ["images", "local", "unfinished", "here", "below", "imagse"]


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """Stand in for IPython in a notebook of ``CELLS``, whose cell "here" runs."""
    path = tmp_path / "01_patches.ipynb"
    path.write_text(json.dumps(new_notebook(cells=CELLS)), encoding="utf-8")
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    history = SimpleNamespace(input_hist_raw=["", "here"])
    shell = SimpleNamespace(kernel=True, user_ns={}, history_manager=history, path=path)
    monkeypatch.setattr(run_above, "find_shell", lambda: shell)
    return shell


def ran(source="", **errors):
    """Give what IPython says of a cell that ran."""
    info = SimpleNamespace(raw_cell=source)
    known = {"info": info, "error_in_exec": None, "error_before_exec": None}
    return SimpleNamespace(**known | errors)


@pytest.mark.parametrize("name", ABOVE + ELSEWHERE)
def test_a_name_is_looked_for_in_the_cells_above(shell, name):
    """Not in this cell, nor below, nor inside a function, nor in one that is no Python."""
    assert run_above.is_defined_above(name) is (name in ABOVE)


def test_all_cells_count_where_the_file_has_not_the_running_one(shell):
    """It was edited after the notebook was last saved."""
    shell.history_manager.input_hist_raw.append("edited")
    assert run_above.is_defined_above("below") and not run_above.is_defined_above("imagse")


def test_visual_studio_code_names_the_file_in_its_own_way(shell, monkeypatch):
    """A variable of the kernel goes before the environment, and the command has its name there."""
    monkeypatch.setenv("JPY_SESSION_NAME", "elsewhere.ipynb")
    shell.user_ns["__vsc_ipynb_file__"] = str(shell.path)
    assert run_above.is_defined_above("image") is True
    assert run_above.menu().startswith("Execute Above Cells")


@pytest.mark.parametrize("text", ["", "[]", '{"cells": [{}]}'], ids=repr)
def test_unknown_or_damaged_file_leaves_exercises(shell, text):
    """An exercise is known from the syllabus, and of other names nothing is."""
    shell.path.write_text(text)
    assert run_above.is_defined_above("patchify") is True
    assert run_above.is_defined_above("image") is None


def test_colab_gets_a_condition_and_its_own_menu(shell, monkeypatch, capsys):
    """It tells no file; what is no NameError of a missing name gets no line."""
    monkeypatch.delenv("JPY_SESSION_NAME")
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace())
    errors = [NameError("by hand"), UnboundLocalError(name="x"), KeyError("x"), None]
    for error in [NameError(name="image"), *errors]:
        run_above._print_advice(ran(error_in_exec=error))
    said = capsys.readouterr().out
    assert said == "If a cell above defines image, run all above (Runtime > Run before).\n"


def test_a_check_says_that_the_answer_is_no_python(capsys):
    """Until its cell is; the check itself sees what had the name before."""
    answer, check = "def patchify(images:\n    return 1", "report = check(patchify)"
    with pytest.raises(SyntaxError) as error:
        compile(answer, "cell", "exec")
    for source, before in ((check, None), (answer, error.value), (check, None), ("x", None)):
        run_above._print_advice(ran(source, error_before_exec=before))
    said = f"Your cell of patchify is not Python (SyntaxError in line 1: {error.value.msg}), "
    assert capsys.readouterr().out == f"{said}so it was not checked.\n"
    run_above._print_advice(ran("def patchify(images): pass"))
    run_above._print_advice(ran(check))
    assert capsys.readouterr().out == ""


def test_outside_of_a_notebook_nothing_is_watched(shell):
    """A terminal has no cells above; plain Python has no IPython at all."""
    del shell.kernel
    run_above.watch()
    assert run_above.is_defined_above("patchify") is False
    code = "import sys, vitedu; print('vitedu.course' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_a_kernel_prints_the_line_below_the_traceback_and_changes_nothing_of_it(shell, monkeypatch):
    """With and without the package the error is the same; a name of no cell above gets no line."""
    outputs = []
    for first in ("import vitedu", "pass"):
        ran = new_notebook(cells=[new_code_cell(text) for text in (first, "image", "imagse")])
        NotebookClient(ran, timeout=60, allow_errors=True, kernel_name="python3").execute()
        outputs.append([cell.outputs for cell in ran.cells[1:]])
    (with_line, without), plain = outputs
    assert [output.output_type for output in with_line] == ["error", "stream"]
    advice = "Run all above: a cell above defines image and has not run yet "
    assert with_line[1].text == f"{advice}(Run > Run All Above Selected Cell).\n"
    assert [with_line[:1], without] == plain
