"""Threads that parse at the same time each get their tree."""

import ast
import gc
import threading
import time
from pathlib import Path

from vitedu.course.parsing import parse

SOURCE = (Path(__file__).parents[1] / "vitedu/checks/reporting.py").read_text("utf-8")


class Loop:
    """Garbage whose end lets another thread run, while the one that collects it is parsing."""

    def __init__(self):
        self.me = self

    def __del__(self):
        time.sleep(0)


def faults(function, threads: int = 4, times: int = 12) -> list[str]:
    """Parse in several threads, with garbage around, and list what went wrong."""
    found = []

    def work():
        for _ in range(times):
            for _ in range(50):
                Loop()
            try:
                function(SOURCE)
            except SystemError as error:
                found.append(str(error))

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
    return found


def test_threads_that_parse_together_all_get_their_tree():
    """Nobody meets "recursion depth mismatch", which ast.parse itself may end in."""
    assert faults(parse) == []
    assert ast.dump(parse("a + 1", "eval")) == ast.dump(ast.parse("a + 1", mode="eval"))
