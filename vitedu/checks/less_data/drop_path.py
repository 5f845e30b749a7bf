"""7.7 drop_path: skip a branch for some images."""

import math

import torch
from torch import Generator

from vitedu.checks.judging import compare
from vitedu.checks.observing import arguments, observation
from vitedu.checks.training.random_draws_driver import GRADIENT_FLOW, dropping, repeated_draws
from vitedu.checks.training.random_draws_reader import CHANCE, are_shared
from vitedu.checks.writing.kit import Case, Checker, distinct, draw, normal

WHOLE_SAMPLES = "every sample is 0 as a whole, or divided by 1 - drop_prob"
FREQUENCY = "a sample is dropped with probability drop_prob"
INDEPENDENCE = "every sample has a draw of its own, anew in every call"


@compare.reader(dropping.__name__, facts=(GRADIENT_FLOW,))
def _read_dropping(case: Case, seen: observation.Observation) -> None:
    """Say what happened to the samples and, with ``extra["draws"]``, how often and to which."""
    x, p, outputs = case.args["x"], case.args["drop_prob"], seen.draws.get("all outputs")
    if outputs is None or outputs.shape != x.shape:
        return
    factor = (outputs.double() / x.double()).reshape(len(x), -1)  # (B, numbers of a sample)
    zero = (factor == 0).all(dim=1)
    seen.facts[WHOLE_SAMPLES] = _factors(factor, 1 / (1 - p), zero, outputs)
    if not case.extra.get("draws"):
        return
    edge = math.sqrt(len(zero) * math.log(2 / CHANCE) / 2)  # Hoeffding
    off = int(zero.sum()) - p * len(zero)
    rate = "too often" if off > edge else "too seldom" if off < -edge else "so often"
    calls = torch.stack(zero.split(case.extra["size"]))  # (calls, samples)
    counts = calls.sum(dim=1)
    if not zero.any():
        rate = pattern = "no sample is dropped"
    elif (calls == calls[:, :1]).all():
        rate, pattern = "so often", "all samples of a call are dropped, or none"
    elif (calls == calls[:1]).all():
        is_first = bool((calls[0].int().diff() <= 0).all())
        pattern = f"the {'first' if is_first else 'same'} samples in every call"
        rate = "so often"
    elif are_shared(calls.long()):
        rate, pattern = "so often", "samples share their draw with others"
    else:
        pattern = "the same number in every call" if (counts == counts[0]).all() else "so it is"
    seen.facts[FREQUENCY], seen.facts[INDEPENDENCE] = rate, pattern


def _factors(factor: torch.Tensor, wanted: float, zero: torch.Tensor, outputs: torch.Tensor) -> str:
    """Describe by what the samples were multiplied."""
    if not torch.isfinite(factor).all():
        return "values that are not finite"
    whole = factor[~zero]
    if not len(whole) or (whole - wanted).abs().max() < 1e-4 * wanted:
        return "so it is"
    rest = whole[whole != 0]
    if (rest - rest[0]).abs().max() > 1e-4 * rest[0].abs():
        return "other values"
    times = "" if abs(rest[0] - wanted) < 1e-4 * wanted else f"multiplied by {float(rest[0]):.4g}"
    if len(rest) == whole.numel():
        return f"those that stay are {times}"
    rows = (outputs != 0).flatten(2).any(dim=2) if outputs.ndim > 2 else None  # (B, T)
    in_rows = rows is not None and bool(((outputs != 0).flatten(2).all(dim=2) == rows).all())
    parts = "parts of a sample are dropped" if in_rows else "single values are dropped"
    return f"{parts}, the others {times}" if times else parts


def cases(g: Generator) -> list[Case]:
    """Draw what a branch adds, with probabilities in tenths.

    ``draws`` has so many samples that luck plays no part.
    """
    T, D = distinct(g, 2, 3, 6)
    B, p, few = draw(g, 6, 8), draw(g, 3, 4) / 10, draw(g, 1, 2) / 10
    again = {"driver": repeated_draws.__name__, "extra": {"seed": draw(g, 0, 10**6)}}

    def case(note, part="other sizes", shape=(B, T, D), p=p, training=True, generator=True, **rest):
        x = normal(g, *shape, dtype=rest.pop("dtype", torch.float32))
        x = torch.where(x < 0, -1, 1).to(x) * x.abs().clamp_min(0.1)  # nothing that reads as 0
        args = {"x": x, "drop_prob": p, "training": training}
        if generator:
            args["generator"] = arguments.CpuGenerator(draw(g, 0, 10**6))
        words = f"x {tuple(shape)}, drop_prob {p}, {'training' if training else 'eval'}{note}"
        rest = {"driver": dropping.__name__, "extra": {"size": len(x)}} | rest
        return Case(words, args, part, **rest)

    plain = {"driver": "call", "generator": False}
    error = {"driver": "call", "raises": "ValueError"}
    return [
        case("", "values", training=False, gradients=("x",), **plain),
        case("", "values"),
        case("", "values", p=few, shape=(4 * B, T, D)),
        case("", "draws", shape=(3000, 3, 2), p=0.4, extra={"size": 50, "draws": True}),
        case(
            ", without a generator",
            "draws",
            shape=(800, 2),
            p=round(1 - p, 1),
            generator=False,
            extra={"size": 2, "draws": True},  # so few that often all are dropped
        ),
        case("", "generator", shape=(60, D), **again),
        case(", by keyword", "generator", shape=(60, D), keywords=("generator",), **again),
        case("", p=0.0, gradients=("x",), **plain),
        case(", with a generator", p=0.0, training=False, driver="call"),
        case("", shape=(B, B, D)),
        case("", p=0.9),
        case("", "rare sizes", shape=(10 * B,)),
        case("", "rare sizes", shape=(B, 2, T, D)),
        case("", "batch of one", shape=(1, T, D)),
        case("", "dtype", dtype=torch.float64),
        case(", turned round in memory", "layout", turned=True),
        *(
            case("", "errors", p=bad, training=bool(i % 2), **error)
            for i, bad in enumerate((1.0, 1.0, -0.1, -0.1, 1.5, 1.5))
        ),
        case(", on an accelerator, with a generator on the CPU", "any device", on_accelerator=True),
        case(", on an accelerator", "any device", generator=False, on_accelerator=True),
    ]


CHECKER = Checker()
