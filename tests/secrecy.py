"""What a report must not give away: numbers of the reference, and objects that hold them."""

import functools
import re

import numpy as np
import torch
from torch import nn

from vitedu.checks.observing.observe import observe
from vitedu.checks.writing.checker import find_checker

NUMBER = re.compile(r"(?<![\w.])\d+\.?\d*(?:e[+-]?\d+)?")


def exact_numbers(text: str) -> set[float]:
    """Find the numbers that are written with four significant digits or more."""
    matches = (
        match for match in NUMBER.findall(text) if len(re.sub(r"e.*|\.", "", match).lstrip("0")) > 3
    )
    return {float(match) for match in matches}


def numbers_of(seen) -> torch.Tensor:
    """Give the size of every finite number in an observation."""
    values = [array.double().abs().flatten() for array in seen.arrays.values()]
    values = torch.cat(values) if values else torch.zeros(0, dtype=torch.float64)
    return values[values.isfinite()]


def reachable(thing, depth=0):
    """Walk all that hangs on an object: attributes, items, members."""
    yield thing
    if depth > 6 or isinstance(thing, (str, bytes, int, float, type(None), torch.Tensor, type)):
        return
    if isinstance(thing, dict):
        inner = list(thing.values())
    elif isinstance(thing, (list, tuple, set, frozenset)):
        inner = list(thing)
    else:
        inner = list(getattr(thing, "__dict__", {}).values())
    for item in inner:
        yield from reachable(item, depth + 1)


@functools.cache
def _secrets(exercise: str, seed: int):
    """Give a check's cases, the reference's numbers, and those that the cases show anyway."""
    checker = find_checker(exercise)
    cases = checker.draw(seed)
    secret = torch.cat([numbers_of(observe(checker.reference, case)) for case in cases])
    visible = set().union(*(exact_numbers(f"{case.name} {case.args}") for case in cases))
    return cases, secret, visible


def assert_gives_nothing_away(exercise: str, wrong, report, seed: int, observe=observe) -> None:
    """No number of the reference, to four digits, stands in a report unless the answer has it too.

    ``observe`` may recall what the answer does on a case.
    """
    cases, secret, visible = _secrets(exercise, seed)
    text = f"{report}\n{report.to_dict()}\n{report._repr_html_()}"
    places = r'(?:points|[xy]\d?|width|height|viewBox|c[xy]|r)="[^"]*"'
    numbers = exact_numbers(re.sub(places, "", text)) - visible
    own = torch.cat([numbers_of(observe(wrong, case)) for case in cases]) if numbers else secret[:0]
    for number in numbers:
        if not ((own - number).abs() <= 1e-3 * number).any() and number != 1:
            assert not ((secret - number).abs() <= 1e-4 * number).any(), (number, text)
    attributes = {
        name: value
        for name, value in vars(report).items()
        if name not in ("implementation", "_answer")
    }
    for thing in reachable(attributes):
        assert not isinstance(thing, (torch.Tensor, np.ndarray, nn.Module)), type(thing)
        assert not callable(thing) or isinstance(thing, type), thing
