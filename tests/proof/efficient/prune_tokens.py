"""Right answers to 8.2 prune_tokens, and what becomes of its mutants."""

import torch

from proof.reasons import DEFAULT


def by_loops(tokens, cls_attention, keep):
    kept = []
    for image, row in zip(tokens, cls_attention.tolist(), strict=True):
        best = sorted(range(len(row)), key=lambda i: row[i])[-keep:]
        kept.append(torch.stack([image[0], *(image[i + 1] for i in sorted(best))]))
    return torch.stack(kept)


def by_mask(tokens, cls_attention, keep):
    rank = cls_attention.argsort(-1).argsort(-1)
    stays = rank >= cls_attention.shape[1] - keep
    stays = torch.cat([torch.ones_like(stays[:, :1]), stays], 1)
    return tokens[stays].unflatten(0, (len(tokens), keep + 1))


def by_one_topk(tokens, cls_attention, keep):
    infinite = torch.full_like(cls_attention[:, :1], float("inf"))
    places = torch.cat([infinite, cls_attention], 1).topk(keep + 1, sorted=False).indices.sort(1)[0]
    return torch.take_along_dim(tokens, places.unsqueeze(-1), 1)


def by_indexing(tokens, cls_attention, keep):
    chosen = torch.argsort(cls_attention, dim=1, descending=True)[:, :keep].sort(dim=1).values
    rows = torch.arange(len(tokens), device=tokens.device)[:, None]
    return torch.cat([tokens[:, :1], tokens[:, 1:][rows, chosen]], dim=1)


def by_one_hot(tokens, cls_attention, keep):
    chosen = torch.sort(torch.topk(cls_attention, keep, 1)[1], 1)[0]
    choice = torch.nn.functional.one_hot(chosen, cls_attention.shape[1]).to(tokens.dtype)
    return torch.cat((tokens[:, 0:1], choice @ tokens[:, 1:]), 1)


EQUIVALENT = {
    DEFAULT: ("().values + 1", "(keep).indices"),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(tokens) == 1",
    "keep == cls_attention.shape[1]",
    "keep == 1",
)
