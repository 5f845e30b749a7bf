"""Every case calls an answer only as its exercise's text allows: ``[accepts]`` in its TOML.

A line of ``[accepts]`` says what an argument may be::

    [accepts]
    images = "float32 float64: B C H W"   # dtypes, and the axes; "..." stands for none to three
    labels = "int64 < K: B"               # integers from 0 to K - 1
    patch_size = "int: 1 .. 16"
    lam = "float int: 0 .. 1"
    generator = "CpuGenerator"            # a recipe
    layers = "list of float32: B nh T T"
    box = "tuple: 4"                      # of so many numbers

    [accepts.sizes]                       # letters that are not 1 .. 64
    B = "1 .. 300"
"""

import importlib
import re

import pytest
import torch

from vitedu.checks.observing.case import Case, Recipe
from vitedu.checks.writing.checker import Checker, find_checker
from vitedu.checks.writing.mistake_files import words_path
from vitedu.exercises import EXERCISES
from vitedu.ground.words import read

CODE = [e for e in EXERCISES if e.kind != "value"]
SEEDS = (0, 1, 2, 3, 4)
DEFAULT = "1 .. 64"


def accepts(exercise) -> dict:
    """Read the table of one exercise."""
    module = importlib.import_module(f"vitedu.checks.{exercise.chapter}.{exercise.file_stem}")
    return read(words_path(module)).get("accepts", {})


def in_range(value: float, text: str) -> bool:
    """Tell whether a number lies in "1 .. 64"; an open end is left out."""
    low, _, high = text.partition("..")
    return float(low or "-inf") <= value <= float(high or "inf")


def problem_of(spec: str, value, sizes: dict, ranges: dict, is_refused: bool) -> str:
    """Say why a value is not what a line of ``[accepts]`` allows, or ""."""
    if spec.startswith("list of "):
        values = list(value) if isinstance(value, list | tuple) else [None]
        found = (problem_of(spec[8:], x, sizes, ranges, is_refused) for x in values)
        return next((words for words in found if words), "")
    kinds, _, rest = (part.strip() for part in spec.partition(":"))
    kinds, _, below = (part.strip() for part in kinds.partition("<"))
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in kinds.split():
            return f"a tensor of {dtype}, allowed {kinds}"
        if below and value.numel():
            most = int(below) if below.isdigit() else sizes.get(below, int(value.max()) + 1)
            if not 0 <= value.min() <= value.max() < most:
                return f"values {int(value.min())} .. {int(value.max())}, allowed 0 .. {most - 1}"
        return "" if is_refused else shape_problem(rest, value.shape, sizes, ranges)
    name = type(value).__name__
    if name not in kinds.split():
        return f"a {name}, allowed {kinds}"
    if isinstance(value, Recipe) or not rest or is_refused:
        return ""
    if isinstance(value, tuple | list):
        return "" if len(value) == int(rest) else f"{len(value)} entries, allowed {rest}"
    return "" if in_range(value, rest) else f"{value}, allowed {rest}"


def shape_problem(axes: str, shape, sizes: dict, ranges: dict) -> str:
    """Compare a shape with axes such as "... T d"; equal letters have one size."""
    letters, shape = axes.split(), list(shape)
    if letters[:1] == ["..."]:
        letters = letters[1:]
        if not len(letters) <= len(shape) <= len(letters) + 3:
            return f"{len(shape)} axes, allowed {axes}"
        shape = shape[len(shape) - len(letters) :]
    if len(letters) != len(shape):
        return f"{len(shape)} axes, allowed {axes}"
    for letter, size in zip(letters, shape, strict=True):
        if letter.isdigit():
            if size != int(letter):
                return f"an axis of {size}, allowed {letter}"
        elif not re.fullmatch(r"\w+", letter):
            continue  # an expression such as N+1: written for the reader
        elif sizes.setdefault(letter, size) != size:
            return f"{letter} is {sizes[letter]} and {size}"
        elif not in_range(size, ranges.get(letter, DEFAULT)):
            return f"{letter} = {size}, allowed {ranges.get(letter, DEFAULT)}"
    return ""


def problems(table: dict, case: Case) -> list[str]:
    """List what a case hands to an answer although its exercise does not allow it."""
    ranges = table.get("sizes", {})
    if isinstance(ranges, str):  # an argument of that name
        ranges = {}
    sizes: dict[str, int] = {}
    found = []
    for name, value in (*case.init.items(), *case.args.items()):
        if name not in table:
            found.append(f"{name} is not in [accepts]")
        elif words := problem_of(table[name], value, sizes, ranges, bool(case.raises)):
            found.append(f"{name}: {words}")
    return found


@pytest.mark.parametrize("exercise", CODE, ids=lambda e: e.id)
def test_cases_call_only_as_allowed(exercise):
    """No case, however it is drawn, hands out what the exercise's text does not speak of."""
    checker, table = find_checker(exercise.id), accepts(exercise)
    assert isinstance(checker, Checker) and table, f"{exercise.id} has no [accepts]"
    for seed in SEEDS:
        for case in checker.draw(seed):
            assert problems(table, case) == [], (case.name, seed)


def test_a_case_outside_is_seen():
    """Another dtype, another number of axes, another size and an unknown argument are told."""
    table = {"x": "float32: B D", "p": "float: 0 .. 1", "sizes": {"B": "1 .. 4"}}
    cases = [
        {"x": torch.zeros(2, 3, dtype=torch.uint8)},
        {"x": torch.zeros(2, 3, 4)},
        {"x": torch.zeros(5, 3)},
        {"p": 1.5},
        {"p": 1},
        {"y": 1},
    ]
    assert all(problems(table, Case("", args)) for args in cases)
    assert not problems(table, Case("", {"x": torch.zeros(4, 3), "p": 1.0}))
