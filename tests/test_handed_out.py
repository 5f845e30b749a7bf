"""vitedu.exporting.handed_out: a check cell that runs twice does not pass the reference."""

import copy
import functools
import re

import pytest
import torch

from vitedu import check
from vitedu.checks import api
from vitedu.checks.writing.mistakes import bare_source, run_source
from vitedu.course import results
from vitedu.exercises import EXERCISES, find

NAMES = {exercise.kind: exercise.id for exercise in EXERCISES}.values()


def stub(*args, **kwargs):
    """An answer that was never begun."""
    raise NotImplementedError


def miss(name):
    """Check something that is wrong and give what the next cells work with."""
    answer = stub if find(name).kind != "value" else -12345.678
    report = check(answer, name, seed=1)
    assert not report.passed
    return report.implementation


@pytest.mark.parametrize("name", NAMES)
def test_second_run_of_a_check_cell_passes_nothing(name, capsys):
    """The verdict stays, the report says which cell to run, and nothing is stored."""
    handed = miss(name)
    before = results.load()
    report = check(handed, name, seed=1)
    assert report.status == "not_attempted" and report.points == 0
    assert "this is the reference" in str(report)
    assert results.load() == before
    assert check(report.implementation, name).is_reference  # and a third run


@pytest.mark.parametrize(
    "name", ["patchify", "MultiHeadAttention", "tokens_at_224", "order_blindness"]
)
def test_copies_are_known(name, capsys):
    """A copy is no answer of the student's either."""
    assert check(copy.copy(miss(name)), name).is_reference


def wrapped(function):
    """Decorate with functools.wraps."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


@pytest.mark.parametrize("decorate", [wrapped, functools.cache], ids=["wraps", "cache"])
def test_decorated_reference_is_known(decorate, capsys):
    """A decorator makes it no answer of the student's."""
    assert check(decorate(miss("gelu")), "gelu").is_reference


@pytest.mark.parametrize(
    "decorate",
    [torch.no_grad(), torch.inference_mode(), functools.cache, wrapped],
    ids=["no_grad", "inference_mode", "cache", "wraps"],
)
@pytest.mark.parametrize("name", ["evaluate", "shift_consistency"])
def test_decorators_make_no_reference(name, decorate, capsys):
    """After a miss, an answer of the student's own under a decorator is judged, right or wrong."""
    miss(name)

    def own(*args, **kwargs):
        return None

    report = check(decorate(own), name, seed=1)
    assert not report.is_reference and report.status in ("failed", "error")


def test_right_answer_under_no_grad_passes_after_a_miss(capsys):
    """The reference of evaluate is under no_grad as well, and shares the code of that decorator."""
    miss("evaluate")
    source = re.sub(r"^@.*\n", "", bare_source("evaluate"))
    own = torch.no_grad()(run_source(source, "evaluate", "vitedu.training"))
    assert check(own, seed=1).passed


def test_subclass_counts_once_it_overrides_the_forward_pass(capsys):
    """A student may begin with the class that he was given."""
    given = miss("MultiHeadAttention")
    same = type("MultiHeadAttention", (given,), {})
    assert check(same).is_reference
    own = type("MultiHeadAttention", (given,), {"forward": lambda self, x: x})
    assert not check(own).is_reference


def test_reference_counts_where_it_was_not_handed_out(monkeypatch, tmp_path, capsys):
    """It was given to one student; whoever has another store sees it pass."""
    gelu = miss("gelu")
    assert check(gelu).is_reference
    monkeypatch.setenv("VITEDU_HOME", str(tmp_path / "another"))
    assert check(gelu).passed


def test_values_that_were_handed_out_still_work_as_values(capsys):
    """Later cells compute with them, and a student's own equal value passes."""
    handed = miss("tokens_at_224")
    assert handed + 0 == 197 and isinstance(handed, int)
    assert check(197, "tokens_at_224").passed


def test_report_as_last_line_of_a_cell_is_shown_once(monkeypatch):
    """``check(x)`` displays its report; the echo of its cell adds nothing, a later one does."""
    IPython = pytest.importorskip("IPython")
    shell = type("Shell", (), {"execution_count": 1})()
    shown = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.display.display", lambda data, raw=False: shown.append(data))
    report = api.judge(stub, "gelu")
    report.display()
    report._ipython_display_()
    assert len(shown) == 1
    shell.execution_count = 2
    report._ipython_display_()
    assert len(shown) == 2
