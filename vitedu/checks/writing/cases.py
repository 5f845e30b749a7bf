"""A short notation for cases: shapes with letters, and a list of variations.

Role: ``shaped`` writes the cases of an exercise whose inputs are random tensors and sizes::

    cases = shaped(
        "images: B C gh*P gw*P; patch_size = P",
        also("other sizes", "square", gw="gh"),
        *USUAL,
    )

The first case uses the shapes as written and also compares gradients. Every case draws new sizes,
so a hard-coded size rarely fits two cases. No two letters get the same size unless a variation says
so, so a swapped axis always shows. An exercise with other inputs writes ``cases(g)`` by hand.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

import torch

from vitedu.checks.observing.case import Case, is_float, lay_out
from vitedu.checks.writing.inputs import draw, normal, plural, random_state

SMALLEST = 2  # the smallest size that is drawn; a size of 1 is tested by a variation
_CASE_FIELDS = {f.name for f in fields(Case)} - {"name", "args"}
_OPTIONS = {"shapes", "dtype", "scale", "values", "name"}


@dataclass(frozen=True)
class Variation:
    """What one case changes: the sizes of letters, the dtype, or fields of ``Case``."""

    part: str
    note: str  # in words, with sizes in braces: "H={H} is not divisible by {P}"
    # letter -> its size, or an expression of other letters
    letters: dict[str, int | str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def also(part: str, note: str, **changes: Any) -> Variation:
    """Describe one more case.

    Args:
        part: the part that the case belongs to.
        note: what is special about it, in words; it becomes the end of the case's name.
        changes: a size for a letter, as a number or an expression of other letters (``B=1``,
            ``Tk="d"``); ``dtype``; ``scale``, one factor for all float tensors or a dict of factors
            by argument; ``shapes``, ``values`` and ``name`` in place of the common ones; fields of
            ``Case``.
    """
    options = {name: value for name, value in changes.items() if name in _CASE_FIELDS | _OPTIONS}
    letters = {name: value for name, value in changes.items() if name not in options}
    return Variation(part, note, letters, options)


def refused(note: str, mentions: str = "", **changes: Any) -> Variation:
    """Describe a case that must raise a ValueError whose message names the sizes ``mentions``."""
    options = {"raises": "ValueError", "mentions": mentions, "name": note, "gradients": ()}
    return also("errors", "", **{**options, **changes})


BATCH_OF_ONE = also("batch of one", "a batch of one", B=1)
FLOAT64 = also("dtype", "float64", dtype=torch.float64)
_HALF = also("dtype", "float16", dtype=torch.float16, rtol=1e-2, atol=2e-3)
TURNED = also("layout", "its axes turned round in memory", turned=True)
ON_ACCELERATOR = also("any device", "on an accelerator", on_accelerator=True)
# of an exercise whose tensors have a batch axis B
USUAL = (BATCH_OF_ONE, FLOAT64, TURNED, ON_ACCELERATOR)


def usual(case: Callable[..., Case], *sizes: Any, half: bool = False) -> list[Case]:
    """Make the cases of ``USUAL``, but for a batch of one, where ``case`` makes one by hand.

    With ``half`` also one in float16: for a text that promises the dtype of any float.
    """
    return [
        case(*sizes, part=each.part, note=f", {each.note}", **each.options)
        for each in (*USUAL[1:], _HALF)[: 3 + half]
    ]


EXACT: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-6}  # values are moved, not computed


def shaped(
    shapes: str,
    *variations: Variation,
    letters: Mapping[str, int | str] | None = None,
    ranges: Mapping[str, tuple[int, int]] | None = None,
    gradients: tuple[str, ...] | None = None,
    values: Mapping[str, Callable[[torch.Tensor], Any]] | None = None,
    layer: Callable | None = None,
    **common: Any,
) -> Callable[[torch.Generator], list[Case]]:
    """Return a function that makes the cases of an exercise from a generator.

    Args:
        shapes: the arguments in order, separated by ";". ``q: B nh Tq d`` is a tensor of normal
            values, ``labels: B < K`` a tensor of integers below K, ``patch_size = P`` any
            expression of letters.
        variations: the cases after the first.
        letters: sizes for all cases that do not set them: ``{"H": "gh*P"}``.
        ranges: letter -> smallest and largest size, if the usual range does not fit.
        gradients: arguments whose gradients are compared in the first case; default all float
            tensors.
        values: argument -> function that turns the drawn values into the wanted ones.
        layer: the class to build, if the answer is one; ``init="embed_dim = D"`` says from what.
        common: for all cases: ``name``, a template for their names ("{B:image} of {H} x {W} px"),
            ``scale``, fields of ``Case``.

    Raises:
        ValueError: when a case is made, if a letter is unknown, no size is left, or ``shapes``
            cannot be parsed.
    """
    first = Variation("values", "", {}, {} if gradients is None else {"gradients": gradients})

    def cases(g: torch.Generator) -> list[Case]:
        result = []
        for variation in (first, *variations):
            options = {**common, **variation.options}
            text, init = options.pop("shapes", shapes), options.pop("init", "")
            chosen = {**(letters or {}), **variation.letters}
            sizes = _draw_sizes(g, f"{text}; {init}", chosen, ranges or {})
            if layer:
                built = _make_arguments(g, init, sizes, {}, {})
                state = random_state(layer, built.values(), g, options.get("dtype", torch.float32))
                options |= {"driver": "module", "init": built, "state": state}
            args = _make_arguments(g, text, sizes, options, options.pop("values", values or {}))
            args = lay_out(args, options.get("turned", False), options.get("views", {}))
            if variation is first and gradients is None:
                floats = [n for n, x in args.items() if is_float(x)]
                options["gradients"] = tuple(floats)
            result.append(_make_case(variation, args, sizes, options))
        return result

    return cases


def _make_case(variation: Variation, args: dict, sizes: dict[str, int], options: dict) -> Case:
    if template := options.pop("name", None):
        name = _fill_template(template, sizes)
    else:
        shapes = {n: tuple(x.shape) if isinstance(x, torch.Tensor) else x for n, x in args.items()}
        name = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    if variation.note:
        name += f", {_fill_template(variation.note, sizes)}"
    mentions = tuple(_evaluate(word, sizes) for word in options.pop("mentions", "").split())
    return Case(name, args, part=variation.part, mentions=mentions, **options)


def _make_arguments(g, text: str, sizes: dict[str, int], options: dict, values: Mapping) -> dict:
    """Make the arguments in the order of ``text``."""
    dtype, scale = options.pop("dtype", torch.float32), options.pop("scale", 1.0)
    args: dict[str, Any] = {}
    for name, kind, what in _parse_arguments(text):
        if kind == "=":
            args[name] = _evaluate(what, sizes)
            continue
        dims, _, below = what.partition("<")
        shape = [_evaluate(size, sizes) for size in dims.split()]
        if below:
            x = torch.randint(_evaluate(below.strip(), sizes), shape, generator=g)
        else:
            x = normal(g, *shape, dtype=dtype)
            x = x * (scale.get(name, 1.0) if isinstance(scale, Mapping) else scale)
        args[name] = values[name](x) if name in values else x
    return args


def _draw_sizes(g, text: str, letters: Mapping[str, int | str], ranges: Mapping) -> dict[str, int]:
    """Choose a size for every letter of ``text``: the given ones, and a new one for each other."""
    names = {letter for _, _, what in _parse_arguments(text) for letter in _letters(what)}
    for value in letters.values():
        names |= _letters(value) if isinstance(value, str) else set()
    if unknown := set(letters) - names:
        raise ValueError(f"{', '.join(sorted(unknown))}: no letter of {text!r}, no field of Case.")
    sizes = {name: value for name, value in letters.items() if isinstance(value, int)}
    free = sorted(names - set(letters))
    most = SMALLEST + len(free)
    for letter in sorted(free, key=lambda x: ranges.get(x, (SMALLEST, most))[1]):
        low, high = ranges.get(letter, (SMALLEST, most))
        free_sizes = [size for size in range(low, high + 1) if size not in sizes.values()]
        if not free_sizes:
            raise ValueError(f"no size is left for {letter} in {low} .. {high}; widen its range.")
        sizes[letter] = free_sizes[draw(g, 0, len(free_sizes) - 1)]
    for _ in letters:  # an expression may need a letter that a later round computes
        for name, value in letters.items():
            if isinstance(value, str) and name not in sizes and _letters(value) <= set(sizes):
                sizes[name] = _evaluate(value, sizes)
    return sizes


@cache
def _parse_arguments(text: str) -> list[tuple[str, str, str]]:
    """Split "q: B T; n = T" into (name, ":" or "=", what)."""
    parts = [part.strip() for part in text.split(";") if part.strip()]
    arguments = []
    for part in parts:
        match = re.fullmatch(r"(\w+)\s*([:=])\s*(.*)", part, re.DOTALL)
        if match is None:
            words = "must list arguments as 'x: B T D' or 'n = T', with ';' between"
            raise ValueError(f"{text!r} {words}.")
        arguments.append((match[1], match[2], match[3]))
    return arguments


def _letters(expression: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", expression))


def _evaluate(expression: str, sizes: Mapping[str, int]) -> Any:
    """Evaluate an expression of letters."""
    return eval(expression, {}, dict(sizes))


def _fill_template(template: str, sizes: Mapping[str, int]) -> str:
    """Write sizes into a template: {H}, {2*P}, or {B:image} for a count with its noun."""

    def fill(match: re.Match) -> str:
        value = _evaluate(match[1], sizes)
        return plural(value, match[2]) if match[2] else str(value)

    return re.sub(r"\{([^:}]+)(?::([^}]+))?\}", fill, template)
