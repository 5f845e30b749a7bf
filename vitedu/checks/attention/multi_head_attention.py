"""2.5 MultiHeadAttention: the whole layer."""

import torch

from vitedu.attention import MultiHeadAttention as Reference
from vitedu.checks.attention import FUSED_NAMES, drawing
from vitedu.checks.writing.kit import USUAL, also, shaped

INIT = "embed_dim = nh*hd; num_heads = nh"


def in_pairs(x: torch.Tensor) -> torch.Tensor:
    """Make tokens in pairs that are almost alike: no row with scores of 1000 has one key alone."""
    return 30 * x[:, ::2].repeat_interleave(2, dim=1) + 0.03 * x


LAYERS = frozenset(
    "MultiheadAttention multi_head_attention_forward _native_multi_head_attention "
    "aten._native_multi_head_attention aten._transformer_encoder_layer_fwd".split()
)

cases = shaped(
    "x: B T nh*hd",
    also("without bias", "no bias in qkv", init=f"{INIT}; qkv_bias = 0 > 1"),
    also("other sizes", "as many tokens as heads", T="nh"),
    also("gradients of the weights", "through both", gradients=("x",), through=None),
    also("other sizes", "one head", nh=1, B=2, T=66),
    also("rare sizes", "T equals D", T="nh*hd"),
    also("rare sizes", "one token, one column a head", T=1, hd=1),
    also("large scores", "large scores", T=8, values={"x": in_pairs}, rtol=5e-3, atol=1e-2),
    *USUAL,
    layer=Reference,
    init=INIT,
    ranges={"hd": (5, 8)},  # no square, so that no usual scale fits
    outputs=("output", "weights"),
    through=1,  # gradients of the output; those of the weights are polish
    name="MultiHeadAttention({nh*hd}, {nh}) on x ({B}, {T}, {nh*hd})",
)

forbidden = FUSED_NAMES | LAYERS
picture = drawing.draw_sums
