"""7.7 drop_path: skip a branch for some images."""

import torch
from torch import Generator

from vitedu.checks.judging import compare
from vitedu.checks.observing import observation
from vitedu.checks.training.random_draws_driver import (
    GRADIENT_FLOW,
    CpuGenerator,
    dropping,
    repeated_draws,
)
from vitedu.checks.training.random_draws_reader import describe_variety, is_uneven
from vitedu.checks.writing.kit import Case, distinct, draw, normal

WHOLE_SAMPLES = "every sample is 0 as a whole, or divided by 1 - drop_prob"
DRAWS = "every sample is dropped with probability drop_prob, by a draw of its own"


@compare.reader(dropping.__name__, facts=(GRADIENT_FLOW,))
def _read_dropping(case: Case, seen: observation.Observation) -> None:
    """Say what happened to the samples and, in the part "draws", how often and to which."""
    x, p, outputs = case.args["x"], case.args["drop_prob"], seen.draws.get("all outputs")
    if outputs is None or outputs.shape != x.shape:
        return
    factor = outputs.double() / x.double()
    factor = factor.reshape(*[*x.shape, 1][:2], -1)  # (B, tokens, numbers of each)
    seen.facts[WHOLE_SAMPLES] = _describe_factors(factor, 1 / (1 - p))
    if case.part != "draws":
        return
    dropped = (factor == 0).flatten(1).all(dim=1).long()
    calls = dropped.split(case.sizes)
    words = describe_variety(calls, "draw") if dropped.any() else "no sample is dropped"
    if words.endswith("draws in every batch") and (calls[0].diff() <= 0).all():
        words = "the first samples of every batch"
    if not words and is_uneven(dropped, (1 - p, p)):
        words = "too often" if dropped.double().mean() > p else "too seldom"
    seen.facts[DRAWS] = words or "so it is"


def _describe_factors(factor: torch.Tensor, wanted: float) -> str:
    """Describe what is dropped, and by what the rest was multiplied."""
    kept = factor != 0
    rest = factor[kept]
    in_samples, in_tokens = (
        bool((x.any(dim=-1) == x.all(dim=-1)).all()) for x in (kept.flatten(1), kept)
    )
    if in_samples and ((rest - wanted).abs() < 1e-4 * wanted).all():
        return "so it is"  # even if nothing stays
    what = "samples" if in_samples else "parts of a sample" if in_tokens else "single values"
    is_one = ((rest - rest[0]).abs() <= 1e-4 * rest[0].abs()).all()
    return f"{what} dropped, the others times {f'{float(rest[0]):.4g}' if is_one else 'any number'}"


def cases(g: Generator) -> list[Case]:
    """Draw what a branch adds, with probabilities in tenths.

    ``draws`` has so many samples that luck plays no part.
    """
    T, D = distinct(g, 2, 3, 6)
    B, p, few = draw(g, 6, 8), draw(g, 3, 4) / 10, draw(g, 1, 2) / 10
    again = {"driver": repeated_draws.__name__, "seed": draw(g, 0, 10**6)}

    def case(note, part="other sizes", shape=(B, T, D), p=p, training=True, generator=True, **rest):
        x = normal(g, *shape, dtype=rest.pop("dtype", torch.float32))
        x = torch.where(x < 0, -1, 1).to(x) * x.abs().clamp_min(0.1)  # nothing that reads as 0
        args = {"x": x, "drop_prob": p, "training": training}
        if generator:
            args["generator"] = CpuGenerator(draw(g, 0, 10**6))
        words = f"x {tuple(shape)}, drop_prob {p}, {'training' if training else 'eval'}{note}"
        rest = {"driver": dropping.__name__, "sizes": len(x)} | rest
        return Case(words, args, part, **rest)

    plain = {"driver": "call", "generator": False}
    # so few in a call that often all are dropped
    in_pairs = {"shape": (800, 2), "sizes": 2}
    error = {"driver": "call", "raises": "ValueError"}
    return [
        case("", "values", training=False, gradients=("x",), **plain),
        case("", "values"),
        case("", "values", p=few, shape=(4 * B, T, D)),
        case("", "draws", shape=(3000, 3, 2), p=0.4, sizes=50),
        case(", without a generator", "draws", p=round(1 - p, 1), generator=False, **in_pairs),
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
