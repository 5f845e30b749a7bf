"""8.8 prune_tokens: drop what nobody looks at."""

import torch

from vitedu.checks.kit import EXACT, USUAL, Checker, also, shaped

CHECKER = Checker(
    cases=shaped(
        "tokens: B N+1 D; cls_attention: B N; keep = k",
        also("one or all stay", "one patch stays", k=1),
        also("one or all stay", "all stay", k="N"),
        also(
            "one or all stay",
            "all stay, some without attention",
            k="N",
            values={"cls_attention": torch.relu},
        ),
        also(
            "other sizes",
            "attention alike to five digits",
            values={"cls_attention": lambda x: 0.1 + 1e-5 * x},
        ),
        also(
            "other sizes",
            "equal tokens, equal attention",
            values=dict.fromkeys(("tokens", "cls_attention"), torch.ones_like),
        ),
        also("other sizes", "as many images as patches", B="N", D="k"),
        also("other sizes", "many patches", N="64 + k"),
        *USUAL,
        ranges={"B": (3, 4), "k": (5, 6), "D": (2, 4), "N": (8, 11)},
        values={"cls_attention": lambda x: x.softmax(dim=-1)},
        **EXACT,
    ),
    idea={
        "values": "the class token and the most attended patches, in their order",
        "other sizes": "also where attention is alike, for many patches, and as many as images",
        "batch of one": "also for one image",
    },
    polish={"one or all stay": "also where one patch or all stay"},
)
