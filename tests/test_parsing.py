"""Threads that parse at the same time each get their tree."""

import ast
import gc
import threading
import time
from pathlib import Path

import pytest

from vitedu.course.parsing import parse

SOURCE = (Path(__file__).parents[1] / "vitedu/checks/explaining/report.py").read_text("utf-8")


class Loop:
    """Garbage whose end lets another thread run, while the one that collects it is parsing."""

    def __init__(self):
        self.me = self

    def __del__(self):
        time.sleep(0)


def faults(function, threads: int = 4, times: int = 12) -> list[str]:
    """Parse in several threads, with garbage around, and list what went wrong."""
    problems = []

    def work():
        for _ in range(times):
            for _ in range(50):
                Loop()
            try:
                function(SOURCE)
            except SystemError as error:
                problems.append(str(error))

    before = gc.get_threshold()
    gc.set_threshold(20)
    try:
        all_ = [threading.Thread(target=work) for _ in range(threads)]
        for thread in all_:
            thread.start()
        for thread in all_:
            thread.join()
    finally:
        gc.set_threshold(*before)
    return problems


def test_threads_that_parse_together_all_get_their_tree():
    """Nobody meets "recursion depth mismatch", which ast.parse itself may end in."""
    assert faults(parse) == []
    assert ast.dump(parse("a + 1", "eval")) == ast.dump(ast.parse("a + 1", mode="eval"))


def test_a_tree_that_another_thread_spoiled_is_built_again(monkeypatch):
    """What others parse meanwhile costs a second try; a lasting error is passed on."""
    errors = [SystemError("AST constructor recursion depth mismatch (before=48, after=29)")] * 2
    parse_once = ast.parse

    def spoiled(*args, **choices):
        if errors:
            raise errors.pop()
        return parse_once(*args, **choices)

    monkeypatch.setattr(ast, "parse", spoiled)
    assert parse("a = 1").body[0].lineno == 1
    errors.extend([SystemError("for good")] * 9)
    with pytest.raises(SystemError, match="for good"):
        parse("a = 1")


def test_nothing_in_the_package_parses_past_the_lock():
    """A parser of its own in any module would fail now and then in a class graded in threads."""
    package = Path(__file__).parents[1] / "vitedu"
    # what a box runs has an interpreter of its own; a doctest runs alone
    own = {"course/parsing.py", "grading/box/cells.py", "grading/box/statements.py"}
    calls = [
        f"{path.relative_to(package)}: {line.strip()}"
        for path in package.rglob("*.py")
        if path.relative_to(package).as_posix() not in own
        for line in path.read_text("utf-8").splitlines()
        if "ast.parse(" in line and ">>>" not in line
    ]
    assert calls == []
