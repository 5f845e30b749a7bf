"""Right answers to 7.2 random_masking, and what becomes of its mutants."""

import torch

from proof.reasons import DEFAULT


def by_topk(tokens, mask_ratio, noise):
    B, N, _ = tokens.shape
    M = round(N * (1 - mask_ratio))
    order = noise.topk(N, dim=1, largest=False, sorted=True).indices
    restore = torch.empty_like(order)
    restore.scatter_(1, order, torch.arange(N, device=order.device).expand(B, N).contiguous())
    mask = tokens.new_ones(B, N).scatter(1, order[:, :M], 0.0)
    rows = torch.arange(B, device=tokens.device)[:, None]
    return tokens[rows, order[:, :M]], mask, restore


def by_loops(tokens, mask_ratio, noise):
    N, kept, masks, places = tokens.shape[1], [], [], []
    M = round(N * (1 - mask_ratio))
    for image, row in zip(tokens, noise.tolist(), strict=True):
        order = sorted(range(N), key=row.__getitem__)
        kept.append(image[torch.tensor(order[:M], dtype=torch.int64, device=image.device)])
        places.append([order.index(i) for i in range(N)])
        masks.append([float(place >= M) for place in places[-1]])
    mask = torch.tensor(masks, dtype=tokens.dtype, device=tokens.device)
    return torch.stack(kept), mask, torch.tensor(places, device=tokens.device)


def as_published(tokens, mask_ratio, noise):
    B, N, D = tokens.shape
    M = round(N * (1 - mask_ratio))
    shuffle = torch.argsort(noise, dim=-1)
    restore = torch.argsort(shuffle, dim=-1)
    kept = torch.gather(tokens, dim=1, index=shuffle[:, :M].unsqueeze(-1).repeat(1, 1, D))
    mask = torch.ones([B, N], device=tokens.device, dtype=tokens.dtype)
    mask[:, :M] = 0
    return kept, torch.gather(mask, 1, restore), restore


def by_ranks(tokens, mask_ratio, noise):
    N = noise.shape[1]
    M = round(N - N * mask_ratio)
    restore = (noise[:, None, :] < noise[:, :, None]).sum(dim=2)  # how many are smaller
    choice = restore[:, None, :] == torch.arange(M, device=tokens.device)[None, :, None]
    mask = 1 - (restore < M).to(tokens.dtype)
    return torch.einsum("bmn,bnd->bmd", choice.to(tokens.dtype), tokens), mask, restore


EQUIVALENT = {
    DEFAULT: ("order = noise.argsort()", "restore = order.argsort()"),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "mask_ratio == 0",
    "len(tokens) == 1",
    "tokens.shape[0] == tokens.shape[1]",
)
