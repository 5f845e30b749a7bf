"""Right answers to 8.10 packing_mask, and what becomes of its mutants."""

import torch

from proof.reasons import DEFAULT, NEW_AXIS


def by_block_diag(lengths):
    return torch.block_diag(*(torch.ones(n, n) for n in lengths)) > 0


def by_slices(lengths):
    mask, start = torch.zeros(sum(lengths), sum(lengths), dtype=torch.bool), 0
    for n in lengths:
        mask[start : start + n, start : start + n] = True
        start += n
    return mask


def by_cumsum(lengths):
    ends = torch.tensor(lengths).cumsum(0)
    image = torch.searchsorted(ends, torch.arange(int(ends[-1])), right=True)
    return image.unsqueeze(0).eq(image.unsqueeze(1))


def by_lists(lengths):
    image = [number for number, n in enumerate(lengths) for _ in range(n)]
    return torch.tensor([[a == b for a in image] for b in image])


def by_membership(lengths):
    member = torch.cat([torch.eye(len(lengths))[i].repeat(n, 1) for i, n in enumerate(lengths)])
    return (member @ member.T).bool()


EQUIVALENT = {
    DEFAULT: ("image = torch.repeat_interleave(torch.as_tensor(lengths))",),
    NEW_AXIS: (
        "[:, None] == image[:,]",
        "[:, None] == image[None,]",
        "return image[:, None] == image",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(lengths) == 1",
    "len(set(lengths)) == 1",
)
