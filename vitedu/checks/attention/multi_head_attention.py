"""2.5 MultiHeadAttention: the whole layer."""

import torch

from vitedu.attention import MultiHeadAttention as Reference
from vitedu.checks import families
from vitedu.checks.attention import drawing
from vitedu.checks.kit import (
    Case,
    Checker,
    distinct,
    normal,
    random_state,
    usual,
)


def cases(g: torch.Generator) -> list[Case]:
    """Draw layers and tokens whose sizes all differ."""

    def case(B, T, nh, hd, bias=True, dtype=torch.float32, x=None, note="", **rest):
        D = nh * hd
        init = {"embed_dim": D, "num_heads": nh} | ({} if bias else {"qkv_bias": False})
        state = random_state(Reference, init.values(), g, dtype)
        state |= {name: value / 2 for name, value in state.items() if name.endswith("bias")}
        arguments = ", ".join(str(value) for value in init.values())
        name = f"MultiHeadAttention({arguments}) on x ({B}, {T}, {D}){note}"
        args = {"x": normal(g, B, T, D, dtype=dtype) if x is None else x}
        rest |= {"driver": "module", "outputs": ("output", "weights")}
        return Case(name, args, init=init, state=state, **rest)

    B, T, nh, hd = distinct(g, 4, 2, 6)
    # tokens in pairs that are almost alike: scores of size 1000, and no row gives all to one key
    pairs = 30.0 * normal(g, B, 4, nh * hd).repeat_interleave(2, dim=1)
    pairs = pairs + 0.03 * normal(g, B, 8, nh * hd)
    return [
        case(B, T, nh, hd, gradients=("x",)),
        case(B, hd, nh, T, bias=False, part="without bias", note=", no bias in qkv"),
        case(1, T, hd, nh, part="other sizes", note=", a batch of one"),
        case(B, nh, nh, hd, part="other sizes", note=", as many tokens as heads"),
        case(B, nh * hd, nh, hd, part="other sizes", note=", T equals D"),
        case(T, B, 1, nh * hd, part="other sizes", note=", one head"),
        case(nh, 1, B, T, part="other sizes", note=", one token"),
        case(B, T, hd, 1, part="other sizes", note=", one column a head"),
        case(
            B, 8, nh, hd, x=pairs, part="large scores", note=", large scores", rtol=5e-3, atol=1e-2
        ),
        *usual(case, B, T, nh, hd),
    ]


LAYERS = frozenset(
    "MultiheadAttention multi_head_attention_forward _native_multi_head_attention "
    "aten._native_multi_head_attention aten._transformer_encoder_layer_fwd".split()
)

CHECKER = Checker(
    "MultiHeadAttention",
    forbidden=families.FUSED_NAMES | LAYERS,
    idea={
        "allowed operations": "made from your own parts",
        "values": "output and weights, with given parameters",
        "gradients": "gradients of x and of every parameter, through output and weights",
        "without bias": "also with qkv_bias=False",
        "other sizes": "also for one head, one token, a batch of one, T equals D, and float64",
        "large scores": "finite and right for large scores",
    },
    picture=drawing.draw_sums,
    given=("__init__",),
)
