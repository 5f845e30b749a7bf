"""Right answers to 1.4 add_class_token_and_positions, and what becomes of its mutants."""

import torch
import torch.nn.functional as F

from proof.reasons import UNUSED_SIZES


def by_repeat(patch_tokens, cls_token, pos_embed):
    return torch.cat((cls_token.repeat(len(patch_tokens), 1, 1), patch_tokens), 1) + pos_embed


def in_two_parts(patch_tokens, cls_token, pos_embed):
    first = (cls_token + pos_embed[:, :1]).expand(patch_tokens.shape[0], 1, patch_tokens.shape[2])
    return torch.hstack([first, patch_tokens + pos_embed[:, 1:]])


def by_padding(patch_tokens, cls_token, pos_embed):
    room = F.pad(patch_tokens, (0, 0, 1, 0))
    mask = torch.zeros(1, room.shape[1], 1, dtype=room.dtype, device=room.device)
    mask[:, 0] = 1
    return room + mask * cls_token + pos_embed


def by_filling(patch_tokens, cls_token, pos_embed):
    B, N, D = patch_tokens.shape
    out = patch_tokens.new_empty(B, N + 1, D)
    out[:, 0] = cls_token[0, 0]
    out[:, 1:] = patch_tokens
    return out.add(pos_embed)


EQUIVALENT = {
    UNUSED_SIZES: ("B, D, N = patch_tokens.shape",),
    "the class token has one row already": ("cls = cls_token.expand(B, 1, -1)",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(patch_tokens) == 1",
    "patch_tokens.shape[1] == 1",
    "patch_tokens.shape[2] == 1",
    "patch_tokens.shape[1] == patch_tokens.shape[2]",
    "len(patch_tokens) == patch_tokens.shape[1]",
    "patch_tokens.shape[1] > 64",
    "len(patch_tokens) == 17",
    "not pos_embed.any()",
)
