"""Contrast: say of a mistake that no bank holds where the answer is right and where it is wrong.

Role: ``describe_contrast`` compares cases (sizes, options, dtype, mode), ``describe_pattern`` the
numbers within them.
"""

from collections.abc import Iterator
from typing import Any

import torch

from vitedu.checks.judging.compare import (
    dtype_name,
    is_close,
    join_names,
    number_text,
    tolerance,
)
from vitedu.checks.judging.judge import is_same
from vitedu.checks.observing.case import Case, Recipe
from vitedu.checks.observing.drivers import in_train_mode
from vitedu.checks.observing.observation import Observations


def describe_contrast(cases: list[Case], got: Observations, want: Observations) -> str:
    """Say on which usual cases an answer is right: "right for depth 1, wrong for depth 3"."""
    right = [case for case in cases if is_same(case, got[case.name], want[case.name])]
    wrong = [case for case in cases if case not in right]
    if not right or not wrong:
        return "the values are wrong on every input"
    phrases = _list_separations(right, wrong)
    if 0 < len(phrases) < 3:  # where everything separates them, it is one case that differs in all
        return " and ".join(f"right {words}" for words in phrases)
    wrong_parts = list(dict.fromkeys(case.part for case in wrong))
    if "values" not in wrong_parts:
        return f"the common case is right, {' and '.join(wrong_parts)} not"
    right_parts = [p for p in dict.fromkeys(c.part for c in right) if p not in wrong_parts]
    which = right[0].name if len(right) == 1 else join_names(right_parts)
    return f"right on {len(right)} of {len(cases)} inputs" + (f": {which}" if which else "")


def _list_separations(right: list[Case], wrong: list[Case]) -> list[str]:
    """List in words the settings that separate the right cases from the wrong ones."""
    rows = [[case_settings(case) for case in some] for some in (right, wrong)]
    names = dict.fromkeys(name for some in rows for row in some for name in row)
    pairs = {name: [[row.get(name) for row in some] for some in rows] for name in names}
    return [w for name, values in pairs.items() if (w := _describe_separation(name, *values))]


def case_settings(case: Case) -> dict[str, Any]:
    """List the settings of a case: plain arguments, fields of a configuration, dtype and mode."""
    settings: dict[str, Any] = {}
    for name, value in (case.init | case.args).items():
        plain = value.plain() if isinstance(value, Recipe) else {name: value}
        settings |= {n: v for n, v in plain.items() if isinstance(v, bool | int | float)}
        is_data = isinstance(value, torch.Tensor) and value.dtype != torch.int64
        if is_data and value.dtype != torch.bool:
            settings.setdefault("dtype", dtype_name(value.dtype))
    settings["layout"] = "turned round" if case.turned else "contiguous"
    if case.driver == "module":
        settings["mode"] = "train" if in_train_mode(case) else "eval"
    return settings


_WORDS = {"mode": "in {} mode", "dtype": "in {}", "layout": "for tensors that are {} in memory"}


def _describe_separation(name: str, good: list, bad: list) -> str:
    """Say how a setting separates the right cases from the wrong ones, or "".

    Sizes that every case draws anew are left out, because they always differ.
    """
    if any(value in good for value in bad):
        return ""
    if name in _WORDS:
        words = _WORDS[name]
        return f"{words.format(good[0])}, wrong {words.format(bad[0])}"
    if None in (*good, *bad):
        if set(good) == {None}:
            return f"without {name}, wrong with it"
        return f"with {name}, wrong without it" if set(bad) == {None} else ""
    whole = [float(value).is_integer() for value in (*good, *bad)]
    if all(whole[: len(good)]) and not any(whole[len(good) :]):
        return f"where {name} is a whole number, wrong elsewhere"
    for some, words in (
        (good, "for {}, wrong for others"),
        (bad, "except for {}, and wrong there"),
    ):
        values = sorted(set(some))
        if len(values) < 3 and (len(set(good + bad)) < 4 or set(values) <= {0, 1}):
            return words.format(f"{name} {' and '.join(map(str, values))}")
    return ""


def describe_pattern(cases: list[Case], got: Observations, want: Observations) -> str:
    """Say what all wrong results have in common: a factor, an order, the places that are wrong."""
    pairs = [
        (case, name, got[case.name].arrays[name], wanted)
        for case in cases
        for name, wanted in want[case.name].arrays.items()
        if name in got[case.name].arrays
    ]
    wrong = [p for p in pairs if not is_close(p[0], p[2], p[3])]
    large = [p for p in wrong if p[3].numel() > 8 and min(p[3].shape) > 1]  # few show anything
    numbers = [(x, y) for _, _, x, y in wrong if x.numel() == y.numel() == 1]
    if len(numbers) == len(wrong) > 2:  # one number a case: all of them are one row
        rows = [torch.stack([p[i].double().flatten()[0] for p in numbers]) for i in (0, 1)]
        large = [(wrong[0][0], "", rows[0], rows[1])]
    texts = [list(_list_patterns(case, ours, wanted)) for case, _, ours, wanted in large]
    common = [text for text in texts[0] if all(text in each for each in texts)] if texts else []
    wrong_names = {name for _, name, *_ in wrong}
    right_names = {name for _, name, *_ in pairs} - wrong_names if wrong else set()
    words = [f"{join_names(sorted(right_names))} right"] if right_names else []
    return "; ".join(words + common[:1])


def _list_patterns(case: Case, ours: torch.Tensor, wanted: torch.Tensor) -> Iterator[str]:
    """Yield in words how a wrong array is related to the right one."""
    if ours.shape != wanted.shape or not ours.isfinite().all():
        return
    dtype, ours, wanted = wanted.dtype, ours.double(), wanted.double()

    def is_near(some: torch.Tensor, others: torch.Tensor) -> bool:
        return is_close(case, some.to(dtype), others.to(dtype))

    if len(ours.unique()) == 1:
        yield f"every value is {number_text(float(ours.flatten()[0]))}"
    if is_near(ours.flatten().sort().values, wanted.flatten().sort().values):
        yield "every number is right, but not in its place"
    energy = float((wanted * wanted).sum())
    factor = float((ours * wanted).sum()) / energy if energy else 0.0
    if abs(factor) > 1e-3 and is_near(ours, wanted * factor):
        yield f"the right values times {factor:.3g}"
    offset = float((ours - wanted).mean())
    if abs(offset) > 1e-3 and is_near(ours, wanted + offset):
        yield f"the right values plus {offset:.3g}"
    if case.number:
        return
    rtol, atol = tolerance(case, dtype)
    differs = (ours - wanted).abs() > atol + rtol * wanted.abs()
    for axis in range(ours.ndim):
        wrong = differs.transpose(0, axis).flatten(1).any(1) if ours.ndim > 1 else differs
        right = (~wrong).nonzero().flatten().tolist()
        for place, words in ((0, "first"), (len(wrong) - 1, "last")):
            if len(wrong) > 1 and right == [place]:
                yield f"only what is {words} along axis {axis} is right"
            if len(wrong) > 2 and wrong.nonzero().flatten().tolist() == [place]:
                yield f"only what is {words} along axis {axis} is wrong"
