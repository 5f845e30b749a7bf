"""drop_path: its cases, how its draws are read, its known mistakes with their words, and other right answers."""

import math

import torch
import torch.nn.functional as F

from vitedu.checks import arguments, crops, drivers, families, judging
from vitedu.checks.kit import Case, Checker, Mistake, Observation, distinct, draw, normal

WHOLE = "every sample is 0 as a whole, or divided by 1 - drop_prob"
OFTEN = "a sample is dropped with probability drop_prob"
APART = "every sample has a draw of its own, anew in every call"


@judging.reader("dropped", given=(drivers.THROUGH,))
def _read_dropped(case: Case, seen: Observation) -> None:
    """Say what happened to the samples and, for a case with ``extra["draws"]``, how often and to which."""
    x, p, found = case.args["x"], case.args["drop_prob"], seen.draws.get("all outputs")
    if found is None or found.shape != x.shape:
        return
    factor = (found.double() / x.double()).reshape(len(x), -1)  # (B, numbers of a sample)
    gone = (factor == 0).all(dim=1)
    seen.facts[WHOLE] = _kinds(factor, 1 / (1 - p), gone, found)
    if not case.extra.get("draws"):
        return
    edge = math.sqrt(len(gone) * math.log(2 / crops.CHANCE) / 2)  # Hoeffding
    off = int(gone.sum()) - p * len(gone)
    often = "too often" if off > edge else "too seldom" if off < -edge else "so often"
    calls = torch.stack(gone.split(case.extra["size"]))  # (calls, samples)
    counts = calls.sum(dim=1)
    if not gone.any():
        often = apart = "no sample is dropped"
    elif (calls == calls[:, :1]).all():
        often, apart = "so often", "all samples of a call are dropped, or none"
    elif (calls == calls[:1]).all():
        is_first = bool((calls[0].int().diff() <= 0).all())
        apart = f"the {'first' if is_first else 'same'} samples in every call"
        often = "so often"
    else:
        apart = "the same number in every call" if (counts == counts[0]).all() else "so it is"
    seen.facts[OFTEN], seen.facts[APART] = often, apart


def _kinds(factor: torch.Tensor, wanted: float, gone: torch.Tensor, found: torch.Tensor) -> str:
    """Describe by what the samples were multiplied."""
    if not torch.isfinite(factor).all():
        return "values that are not finite"
    whole = factor[~gone]
    if not len(whole) or (whole - wanted).abs().max() < 1e-4 * wanted:
        return "so it is"
    kept = whole[whole != 0]
    if (kept - kept[0]).abs().max() > 1e-4 * kept[0].abs():
        return "other values"
    times = "" if abs(kept[0] - wanted) < 1e-4 * wanted else f"multiplied by {float(kept[0]):.4g}"
    if len(kept) == whole.numel():
        return f"those that stay are {times}"
    rows = (found != 0).flatten(2).any(dim=2) if found.ndim > 2 else None  # (B, T)
    in_rows = rows is not None and bool(((found != 0).flatten(2).all(dim=2) == rows).all())
    parts = "parts of a sample are dropped" if in_rows else "single values are dropped"
    return f"{parts}, the others {times}" if times else parts


def cases(g: torch.Generator) -> list[Case]:
    """Draw what a branch adds, with probabilities in tenths; ``draws`` has so many samples that luck plays no part."""
    T, D = distinct(g, 2, 3, 6)
    B, p, few = draw(g, 6, 8), draw(g, 3, 4) / 10, draw(g, 1, 2) / 10
    again = {"seed": draw(g, 0, 10**6)}

    def case(note, part="other sizes", shape=(B, T, D), p=p, training=True, generator=True, **rest):
        x = normal(g, *shape, dtype=rest.pop("dtype", torch.float32))
        x = torch.where(x < 0, -1, 1).to(x) * x.abs().clamp_min(0.1)  # nothing that reads as 0
        args = {"x": x, "drop_prob": p, "training": training}
        if generator:
            args["generator"] = arguments.CpuGenerator(draw(g, 0, 10**6))
        words = f"x {tuple(shape)}, drop_prob {p}, {'training' if training else 'eval'}{note}"
        return Case(words, args, part, **{"driver": "dropped", "extra": {"size": len(x)}} | rest)

    plain = {"driver": "call", "generator": False}
    error = {"driver": "call", "raises": "ValueError"}
    draws = {"extra": {"size": 50, "draws": True}}
    return [
        case("", "values", training=False, gradients=("x",), **plain),
        case("", "values"),
        case("", "values", p=few, shape=(4 * B, T, D)),
        case("", "draws", shape=(3000, 3, 2), p=0.4, **draws),
        case(
            ", without a generator",
            "draws",
            shape=(3000, 2),
            p=round(1 - p, 1),
            generator=False,
            **draws,
        ),
        case("", "generator", shape=(60, D), driver="repeated_draws", extra=again),
        case(
            ", by keyword",
            "generator",
            shape=(60, D),
            driver="repeated_draws",
            extra=again,
            keywords=("generator",),
        ),
        case("", p=0.0, gradients=("x",), **plain),
        case(", with a generator", p=0.0, training=False, driver="call"),
        case("", shape=(10 * B,)),
        case("", shape=(B, 2, T, D)),
        case("", shape=(1, T, D)),
        case("", shape=(B, B, D)),
        case("", p=0.9),
        case("", dtype=torch.float64),
        *(
            case("", "errors", p=bad, training=bool(i % 2), **error)
            for i, bad in enumerate((1.0, 1.0, -0.1, -0.1, 1.5, 1.5))
        ),
        case(", on an accelerator, with a generator on the CPU", "any device", on_accelerator=True),
        case(", on an accelerator", "any device", generator=False, on_accelerator=True),
    ]


SCALED = "stays.to(x.device, x.dtype) / (1 - drop_prob)"
RAND = "torch.rand(len(x), generator=generator, device=device)"
SPREAD = "x * scale.reshape(-1, *[1] * (x.ndim - 1))"
WHO = "every sample by its own draw"
MISTAKES = (
    Mistake(
        "not_scaled",
        "the samples that stay are not scaled up",
        "division by 1 - drop_prob",
        "In eval mode the branch would be larger than it was on average in training.",
        "Divide by the probability of staying.",
        {SCALED: "stays.to(x.device, x.dtype)"},
    ),
    Mistake(
        "scaled_down",
        "the samples that stay are multiplied by 1 - drop_prob",
        "division by 1 - drop_prob",
        "The mean over many draws would be too small twice over.",
        "Divide, do not multiply.",
        {SCALED: "stays.to(x.device, x.dtype) * (1 - drop_prob)"},
    ),
    Mistake(
        "divided_by_drop_prob",
        "the samples that stay are divided by drop_prob",
        "division by 1 - drop_prob",
        "drop_prob is the share of those that go.",
        "Divide by the probability of staying.",
        {SCALED: "stays.to(x.device, x.dtype) / drop_prob"},
    ),
    Mistake(
        "cut_out",
        "the dropped samples are cut out of the batch",
        "zeros in their places",
        "The branch is added to a stream that still has all samples.",
        "Multiply by 0 instead.",
        {SPREAD: "x[stays.to(x.device)] / (1 - drop_prob)"},
    ),
    Mistake(
        "stays_with_drop_prob",
        "a sample stays with probability drop_prob",
        "it is dropped with probability drop_prob",
        "At 0.1 nine of ten branches would be missing.",
        "Look at the comparison.",
        {">= drop_prob": "< drop_prob"},
        part="draws",
    ),
    Mistake(
        "single_values",
        "single values are dropped",
        "whole samples are dropped",
        "That is dropout.",
        "One draw for a sample: shape (B, 1, 1).",
        {
            SPREAD: "x * (torch.rand(x.shape, generator=generator, device=device) >= drop_prob).to(x.device, x.dtype) / (1 - drop_prob)"
        },
    ),
    Mistake(
        "whole_tokens",
        "single tokens are dropped",
        "whole samples are dropped",
        "The tokens of an image would take different paths.",
        "One draw for a sample: shape (B, 1, 1).",
        {
            SPREAD: "x * (torch.rand(x.shape[:2], generator=generator, device=device) >= drop_prob).to(x.device, x.dtype).reshape(*x.shape[:2], *[1] * (x.ndim - 2)) / (1 - drop_prob)"
        },
    ),
    Mistake(
        "three_axes_only",
        "the draws are shaped for x of three axes",
        "x of any number of axes",
        "With other shapes a draw meets other numbers than its sample.",
        "Give it x.ndim - 1 axes of 1.",
        {SPREAD: "x * scale.reshape(-1, 1, 1)"},
        part="draws",
    ),
    Mistake(
        "one_draw",
        "one draw decides for the whole batch",
        WHO,
        "So did the first paper; a batch then has no variety.",
        "Draw B numbers.",
        {"rand(len(x),": "rand(1,"},
        part="draws",
    ),
    Mistake(
        "fixed_number",
        "the same number of samples is dropped in every call",
        WHO,
        "Then the samples of a batch depend on each other.",
        "Compare random numbers with drop_prob.",
        {f"{RAND} >= drop_prob": f"{RAND}.argsort() >= round(drop_prob * len(x))"},
        part="draws",
    ),
    Mistake(
        "first_ones",
        "the first samples of a batch are dropped",
        WHO,
        "Always the same places would miss the branch.",
        "Draw from the generator.",
        {f"{RAND} >= drop_prob": "torch.arange(len(x)) >= round(drop_prob * len(x))"},
        part="draws",
    ),
    Mistake(
        "never_drops",
        "nothing is dropped, all is scaled",
        "samples are 0 with probability drop_prob",
        "Then it only makes the branch larger.",
        "Multiply by the mask, too.",
        {SCALED: "torch.ones(len(x), dtype=x.dtype, device=x.device) / (1 - drop_prob)"},
        part="draws",
    ),
    Mistake(
        "drops_in_eval",
        "samples are dropped in eval mode",
        "x as it is",
        "Every prediction would be a lottery.",
        "Return x first, where training is false.",
        {"not training or ": ""},
    ),
    Mistake(
        "training_turned_round",
        "samples are dropped in eval mode, and none in training",
        "dropped in training alone",
        "Look at what training=False gives.",
        "Look for a missing not.",
        {"not training": "training"},
    ),
    Mistake(
        "scaled_in_eval",
        "x is multiplied by 1 - drop_prob in eval mode",
        "x as it is",
        "What stays in training is scaled up already.",
        "Return x.",
        {
            "if not training or drop_prob == 0:": "if not training:\n    return x * (1 - drop_prob)\nif drop_prob == 0:"
        },
    ),
    Mistake(
        "zero_in_eval",
        "the branch is 0 in eval mode",
        "x as it is",
        "The trained branch would never be used.",
        "Return x.",
        {
            "if not training or drop_prob == 0:": "if not training:\n    return 0 * x\nif drop_prob == 0:"
        },
    ),
    families.GLOBAL_DRAWS.by(
        {"generator=generator, ": ""}, look="Give rand generator=generator.", part="generator"
    ),
    families.OWN_GENERATOR.by(
        {"device = x": "generator = torch.Generator().manual_seed(0)\ndevice = x"},
        why="Every call would drop the same samples.",
        part="generator",
    ),
    Mistake(
        "no_error",
        "an impossible probability is accepted",
        "a ValueError",
        "At 1 nothing stays, and nothing can be divided by 0.",
        "Test drop_prob first, before you look at training, and raise a ValueError.",
        {"if not 0 <= drop_prob < 1:": "if False:"},
        part="errors",
    ),
    families.GENERATOR_DEVICE.by(
        {"device = x.device if generator is None else generator.device": "device = x.device"},
        name="draws are made where x is",
    ),
)


def _refused(p):
    if p < 0 or p >= 1:
        raise ValueError(f"{p} is no probability of dropping")


def by_bernoulli(x, drop_prob, training, generator=None):
    _refused(drop_prob)
    if training and drop_prob > 0:
        where = x.device if generator is None else generator.device
        chance = torch.full((x.shape[0],) + (1,) * (x.ndim - 1), 1 - drop_prob, device=where)
        x = x.div(1 - drop_prob) * torch.bernoulli(chance, generator=generator).to(x)
    return x


def by_where(x, drop_prob, training, generator=None):
    if not 0.0 <= drop_prob < 1.0:
        raise ValueError(f"got {drop_prob}")
    if not training:
        return x
    draws = torch.empty(len(x), device=generator.device if generator else x.device)
    gone = draws.uniform_(generator=generator).to(x.device) < drop_prob
    gone = gone[(slice(None), *(None,) * (x.ndim - 1))]
    return torch.where(gone, torch.zeros_like(x), x / (1 - drop_prob))


def by_floor(x, drop_prob, training, generator=None):
    _refused(drop_prob)
    if drop_prob == 0.0 or not training:
        return x
    keep = 1 - drop_prob
    device = generator.device if generator is not None else x.device
    one_each = (len(x), *[1] * (x.dim() - 1))
    mask = (keep + torch.rand(one_each, generator=generator, device=device)).floor()
    return x / keep * mask.to(device=x.device, dtype=x.dtype)


def by_loop(x, drop_prob, training, generator=None):
    _refused(drop_prob)
    if not training or not drop_prob:
        return x.clone()
    device = x.device if generator is None else generator.device
    rows = []
    for row in x:
        stays = torch.rand(1, generator=generator, device=device) >= drop_prob
        rows.append(row / (1 - drop_prob) if stays else torch.zeros_like(row))
    return torch.stack(rows)


def by_index(x, drop_prob, training, generator=None):
    _refused(drop_prob)
    if not training:
        return x
    device = x.device if generator is None else generator.device
    draws = torch.rand(x.size(0), device=device, generator=generator)
    scale = F.threshold(draws, drop_prob, 0.0).sign() / (1 - drop_prob)
    return torch.einsum("b...,b->b...", x, scale.to(x.device, x.dtype)) if drop_prob else x


CHECKER = Checker(
    "drop_path",
    proves={
        "values": "in eval mode nothing changes; in training whole samples are 0 and the others divided by 1 - drop_prob",
        "draws": "each sample is dropped with probability drop_prob, by its own draw",
        "generator": "the generator decides, and nothing else",
        "other sizes": "also at 0 and 0.9, for one sample, one axis and four, and float64",
        "errors": "a probability below 0, of 1 or more is refused in both modes",
        "any device": "the generator may live on the CPU while x does not",
    },
    advice={
        "values": (
            "A sample goes as a whole, and the others grow so that the mean stays.",
            "Call it on torch.ones(8, 3), in training, and look at the rows that come back.",
        ),
    },
    special="drop_prob == 0; not training; len(x) == 1; x.ndim == 2; generator is None",
    equivalent={
        "drop_prob is never below 0": ("or drop_prob <= 0",),
        "no draw is likely to be drop_prob itself": ("device=device) > drop_prob",),
    },
    left_open={
        "at 0 every sample stays and is divided by 1; whether it draws is open": (
            "if not training:",
            "or drop_prob < 0",
            "or generator == 0",
            "or training == 0",
            "or drop_prob == -2",
            "or drop_prob == -1",
            "or drop_prob == 1",
            "or drop_prob == 2",
        ),
        "exercises.md asks for generators on the CPU only": ("generator=generator) >= drop_prob",),
        "a factor may be float32": ("stays.to(x.device) / (1 - drop_prob)",),
    },
)
