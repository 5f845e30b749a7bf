"""9.2 LoRALinear: learn beside a frozen layer."""

from functools import partial

import torch
from torch import Generator

from vitedu.checks.transfer.lora_linear_driver import merging
from vitedu.checks.writing.kit import Case, Layer, distinct, normal, usual


def cases(g: Generator) -> list[Case]:
    """Draw a frozen layer, two thin matrices and tokens; no two sizes are the same."""
    B, T, n_in, n_out, rank = distinct(g, 5, 2, 9)

    def case(note="", part="other sizes", n_out=n_out, rank=rank, bias=True, shape=(B, T), **rest):
        draw_normal = partial(normal, g, dtype=rest.pop("dtype", torch.float32))
        weight, vector = draw_normal(n_out, n_in) / n_in**0.5, draw_normal(n_out) if bias else None
        linear, alpha = Layer(weight, vector), rest.pop("alpha", rank + 1.5)
        state = {"linear.weight": draw_normal(n_out, n_in) / n_in**0.5}
        state |= {"down.weight": draw_normal(rank, n_in), "up.weight": draw_normal(n_out, rank)}
        if rest.pop("is_new", False):
            state["up.weight"] *= 0
        if bias:
            state["linear.bias"] = draw_normal(n_out)
        rest = {"driver": "module", "args": {"x": draw_normal(*shape, n_in)}} | rest
        frozen = [name for name in state if name.startswith("linear")]
        rest |= {"frozen": frozen, "rtol": 1e-4, "atol": 1e-5}
        arguments = f"Linear({n_in}, {n_out}, bias={bias}), rank={rank}, alpha={alpha:g}"
        init = {"linear": linear, "rank": rank, "alpha": alpha}
        return Case(f"LoRALinear({arguments}){note}", part=part, init=init, state=state, **rest)

    def merge(note="", part="merged", **rest):
        return case(note, part, driver=merging.__name__, args={}, **rest)

    return [
        case(part="values", gradients=("x",)),
        merge(", merged"),
        case(", no bias", bias=False),
        case(", up still zero", "values", is_new=True, gradients=("x",)),
        case(", a square layer", n_out=n_in),
        case(", many tokens", shape=(B, 64 + T)),
        case(", rank 1", "rare sizes", rank=1),
        case(", alpha 0", "rare sizes", alpha=0.0),
        case(", one vector", "rare sizes", shape=()),
        case("", "batch of one", shape=(1, T)),
        merge(", merged, no bias", bias=False),
        merge(", merged, rank 1", "rare sizes", rank=1),
        merge(", merged, alpha 0", "rare sizes", alpha=0.0),
        merge(", merged, a square layer and thin matrices that are square", n_out=n_in, rank=n_in),
        merge(", merged, float64", "dtype", dtype=torch.float64),
        *usual(case),
    ]


weights = {"merged": 3}
given = ("__init__",)
