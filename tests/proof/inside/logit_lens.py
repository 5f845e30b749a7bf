"""Right answers to 5.4 logit_lens, and what becomes of its mutants."""

import torch


def all_tokens_first(layers, norm, head):
    return torch.stack([head(norm(tokens))[:, 0] for tokens in layers], dim=0)


def all_at_once(layers, norm, head):
    return head(norm(torch.stack(list(layers))[:, :, 0, :]))


def by_images(layers, norm, head):
    rows = [torch.cat([head(norm(image[:1])) for image in tokens]) for tokens in layers]
    return torch.cat([row.unsqueeze(0) for row in rows])


def by_blocks_of_logits(layers, norm, head):
    firsts = torch.cat([tokens[:, :1] for tokens in layers], dim=1)  # (B, L, D)
    return head.forward(norm.forward(firsts)).transpose(0, 1)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(layers) == 1",
    "len(layers[0]) == 1",
)
