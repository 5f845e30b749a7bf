"""1.4 add_class_token_and_positions: one more token, and where each stands."""

import torch

from vitedu.checks.writing.kit import USUAL, also, shaped

ZEROS = dict.fromkeys(("cls_token", "pos_embed"), torch.zeros_like)

cases = shaped(
    "patch_tokens: B N D; cls_token: 1 1 D; pos_embed: 1 N+1 D",
    also("other sizes", "as many patches as columns, more than 64", N="D", D=72, B=9),
    also("rare sizes", "one patch", N=1),
    also("rare sizes", "one column", D=1),
    also("zeros", "class token and positions of zero", values=ZEROS, gradients=tuple(ZEROS)),
    also("other sizes", "as many images as patches", B="N", N=17),
    also("other sizes", "as many images as tokens", B="N+1"),
    *USUAL,
    ranges={"B": (3, 9), "N": (3, 9), "D": (3, 9)},  # a 2 that somebody wrote is none of them
    name="{B:image} of {N:patch token}, embed_dim {D}",
)
