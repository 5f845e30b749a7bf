"""1.5 add_class_token_and_positions: one more token, and where each stands."""

import torch

from vitedu.checks.kit import USUAL, Checker, also, shaped

CHECKER = Checker(
    "add_class_token_and_positions",
    cases=shaped(
        "patch_tokens: B N D; cls_token: 1 1 D; pos_embed: 1 N+1 D",
        also("other sizes", "as many patches as columns", N="D"),
        also("other sizes", "one patch", N=1),
        also("other sizes", "one column", D=1),
        also(
            "other sizes",
            "positions of zero",
            values={"pos_embed": torch.zeros_like},
            gradients=("pos_embed",),
        ),
        also("other sizes", "as many images as patches", B="N"),
        *USUAL,
        ranges={"B": (3, 9), "N": (3, 9), "D": (3, 9)},  # a 2 that somebody wrote is none of them
        name="{B:image} of {N:patch token}, embed_dim {D}",
    ),
    idea={
        "values": "the class token first, and every token at its position",
        "other sizes": "also for one image, one patch, as many patches as columns, and float64",
    },
)
