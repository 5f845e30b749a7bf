"""Contrast: say in which settings an answer is right and in which it is wrong."""

from typing import Any

import torch

from vitedu.checks.case import Case, Recipe
from vitedu.checks.compare import dtype_name, is_same, join_names
from vitedu.checks.drivers import in_train_mode
from vitedu.checks.observation import Observations


def describe_contrast(cases: list[Case], got: Observations, want: Observations) -> str:
    """Say on which usual cases an answer is right: "right for depth 1, wrong for depth 3"."""
    right = [case for case in cases if is_same(case, got[case.name], want[case.name])]
    wrong = [case for case in cases if case not in right]
    if not right or not wrong:
        return "the values are wrong on every input"
    phrases = []
    rows = {case.name: case_settings(case) for case in cases}
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        good, bad = ([rows[case.name].get(name) for case in some] for some in (right, wrong))
        if words := _describe_separation(name, good, bad):
            phrases.append(words)
    if 0 < len(phrases) < 3:  # where everything separates them, it is one case that differs in all
        return " and ".join(f"right {words}" for words in phrases)
    wrong_parts = list(dict.fromkeys(case.part for case in wrong))
    if "values" not in wrong_parts:
        return f"the common case is right, {' and '.join(wrong_parts)} not"
    right_parts = [p for p in dict.fromkeys(c.part for c in right) if p not in wrong_parts]
    which = right[0].name if len(right) == 1 else join_names(right_parts)
    return f"right on {len(right)} of {len(cases)} inputs" + (f": {which}" if which else "")


def case_settings(case: Case) -> dict[str, Any]:
    """List the settings of a case: plain arguments, fields of a configuration, dtype and mode."""
    settings: dict[str, Any] = {}
    for name, value in (case.init | case.args).items():
        plain = value.plain() if isinstance(value, Recipe) else {name: value}
        settings |= {n: v for n, v in plain.items() if isinstance(v, bool | int | float)}
        is_data = isinstance(value, torch.Tensor) and value.dtype != torch.int64
        if is_data and value.dtype != torch.bool:
            settings.setdefault("dtype", dtype_name(value.dtype))
    settings["layout"] = "turned round" if case.extra.get("turned") else "contiguous"
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
