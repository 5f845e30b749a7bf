"""3.4 EncoderBlock: two residual steps."""

import torch

from vitedu.checks.writing import inputs
from vitedu.checks.writing.kit import Case, distinct, draw, normal, plural, usual
from vitedu.encoder import EncoderBlock


def cases(g: torch.Generator) -> list[Case]:
    """Draw blocks of different widths, heads and MLP ratios."""

    def case(B, T, D, heads, ratio=2.0, note="", dtype=torch.float32, spread=1.5, gain=1.0, **rest):
        init = {"embed_dim": D, "num_heads": heads}
        if ratio is not None:
            init["mlp_ratio"] = ratio
        state = inputs.random_state(EncoderBlock, init.values(), g, dtype)
        for name in ("attn.proj.weight", "attn.proj.bias"):
            state[name] = gain * state[name]  # how much attention adds to the tokens
        ratio_text = "" if ratio is None else f", mlp_ratio {ratio}"
        size = f"embed_dim {D}, {plural(heads, 'head')}"
        name = f"{plural(B, 'sequence')} of {plural(T, 'token')}, {size}{ratio_text}{note}"
        tolerances = {"rtol": 1e-4, "atol": 1e-4}  # in float64 as well: eps has a part of its own
        x = normal(g, B, T, D, dtype=dtype)
        x = spread * x / x.std(dim=-1, keepdim=True)  # no token so even that eps is felt by chance
        return Case(name, {"x": x}, driver="module", init=init, state=state, **tolerances, **rest)

    B, T = distinct(g, 2, 2, 6)
    heads = draw(g, 2, 3)
    D = heads * (draw(g, 2, 3) if heads == 3 else draw(g, 3, 5))
    ratio = (3 * D - 1 + 0.7) / D  # hidden width 3D - 0.3: cut off to 3D - 1, rounded to 3D
    tiny = {"part": "eps", "spread": 1e-3}
    return [
        case(B, T, D, heads, None, gradients=("x",)),
        case(B, T, D, heads, ratio, part="hidden width"),
        case(1, T + 9, D, heads, part="batch of one"),
        case(2, 66, D, 1, part="other sizes"),
        case(B, 1, D, heads, part="rare sizes"),
        case(B, D, D, heads, 1.0, note=", as many tokens as columns", part="rare sizes"),
        # attention adds little, so that the second norm too sees a variance near eps
        case(B, T, D, heads, note=", tokens with variance near 1e-6", gain=1e-3, **tiny),
        *usual(case, B, T, D, heads),
    ]
