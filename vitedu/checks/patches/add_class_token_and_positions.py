"""Checker of add_class_token_and_positions: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import patches as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, normal, plural
from vitedu.checks.probing import Case


def token_cases(g: torch.Generator) -> list[Case]:
    """Draw patch tokens, a class token and positions whose sizes all differ."""

    def case(B, N, D, dtype=torch.float32, note="", **rest):
        args = {
            "patch_tokens": normal(g, B, N, D, dtype=dtype),
            "cls_token": normal(g, 1, 1, D, dtype=dtype),
            "pos_embed": normal(g, 1, N + 1, D, dtype=dtype),
        }
        return Case(f"{plural(B, 'image')} of {N} patch tokens, embed_dim {D}{note}", args, **rest)

    B, N, D = distinct(g, 3, 3, 9)  # a 2 that somebody wrote is none of them
    return [
        case(B, N, D, gradients=("patch_tokens", "cls_token", "pos_embed")),
        case(1, N, D + 1, part="other sizes"),
        case(B, D, D, part="other sizes", note=", as many patches as columns"),
        case(B, 1, D, part="other sizes", note=", one patch"),
        case(B, N, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(B, N, D, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_tokens(mistakes: frozenset[str]):
    """Assemble with the named mistakes made."""

    def add_class_token_and_positions(patch_tokens, cls_token, pos_embed):
        B, N, D = patch_tokens.shape
        cls = cls_token.expand(B, -1, -1)
        if "first_image_only" in mistakes:
            cls = torch.cat([cls_token, torch.zeros_like(cls[1:])])
        if "class_token_random" in mistakes:
            cls = torch.zeros_like(cls)
        if "positions_on_patches_only" in mistakes:
            positions = torch.cat([torch.zeros_like(pos_embed[:, :1]), pos_embed[:, 1:]], dim=1)
        elif "positions_shifted" in mistakes:
            positions = pos_embed.roll(1, dims=1)
        elif "no_positions" in mistakes:
            positions = torch.zeros_like(pos_embed)
        elif "positions_multiplied" in mistakes:
            positions = None
        else:
            positions = pos_embed
        if "class_token_last" in mistakes:
            tokens = torch.cat([patch_tokens, cls], dim=1)
        else:
            tokens = torch.cat([cls, patch_tokens], dim=1)
        if "class_token_added" in mistakes:
            tokens = tokens + cls_token
        return tokens * pos_embed if positions is None else tokens + positions

    return add_class_token_and_positions


TOKEN_BANK = (
    Misconception(
        "class_token_last", "the class token stands last", "tokens[:, 0] is the class token plus its position",
        "The head, published weights and position 0 expect it first.", "Look at the order of the two tensors in torch.cat.",
    ),
    Misconception(
        "positions_on_patches_only", "the class token gets no position", "pos_embed has N+1 rows, one for the class token",
        "Its own row is learned like the others.", "Add pos_embed after the class token has joined, to all tokens.",
    ),
    Misconception(
        "positions_shifted", "every token gets the position of its neighbour", "row i of pos_embed belongs to token i",
        "Row 0 is the class token's.", "Look for a roll, or for positions that are joined in another order than the tokens.",
    ),
    Misconception(
        "no_positions", "no positions are added", "tokens + pos_embed", "Without them a shuffled image looks the same.",
        "Add pos_embed at the end.",
    ),
    Misconception(
        "positions_multiplied", "positions are multiplied, not added", "tokens + pos_embed",
        "A position near 0 would erase its token.", "Use + between tokens and positions.",
    ),
    Misconception(
        "first_image_only", "only the first image gets the class token", "every image of the batch starts with it",
        "The others would start with nothing.", "Expand the class token to the batch.",
    ),
    Misconception(
        "class_token_random", "another vector than the given class token stands first", "the given cls_token",
        "It is a parameter: it has to be the one that training changes.", "Use the argument, not new zeros.",
    ),
    Misconception(
        "class_token_added", "the class token is added to every token", "the class token is one more token",
        "Added to all, it would be one more bias.", "Join it along the token axis with torch.cat.",
    ),
)  # fmt: skip

CHECKER = Checker(
    "add_class_token_and_positions",
    reference.add_class_token_and_positions,
    token_cases,
    faulty_tokens,
    TOKEN_BANK,
    proves={
        "values": "the class token first, and every token at its position",
        "other sizes": "also for one image, one patch, as many patches as columns, and float64",
    },
)
