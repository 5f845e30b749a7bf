"""8.2 prune_tokens: drop what nobody looks at."""

import torch

from vitedu.checks.writing.kit import EXACT, USUAL, also, shaped

SOME = {"cls_attention": torch.relu}
ALIKE = {"cls_attention": lambda x: 0.1 + 1e-5 * x}
EQUAL = dict.fromkeys(("tokens", "cls_attention"), torch.ones_like)

cases = shaped(
    "tokens: B N+1 D; cls_attention: B N; keep = k",
    also("one or all stay", "one patch stays", k=1),
    also("one or all stay", "all stay", k="N"),
    also("one or all stay", "all stay, some without attention", k="N", values=SOME),
    also("other sizes", "attention alike to five digits", values=ALIKE),
    also("other sizes", "equal tokens, equal attention", values=EQUAL),
    also("other sizes", "as many images as patches", B="N", D="k"),
    also("other sizes", "many patches", N="64 + k"),
    *USUAL,
    ranges={"B": (3, 4), "k": (5, 6), "D": (2, 4), "N": (8, 11)},
    values={"cls_attention": lambda x: x.softmax(dim=-1)},
    **EXACT,
)
