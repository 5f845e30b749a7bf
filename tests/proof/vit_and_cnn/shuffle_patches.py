"""Right answers to 6.8 shuffle_patches, and what becomes of its mutants."""

import torch
import torch.nn.functional as F
from einops import rearrange


def by_loops(images, patch_size, permutation):
    P, across = patch_size, images.shape[3] // patch_size
    result = torch.empty_like(images)
    for i, j in enumerate(permutation.tolist()):
        (row, column), (top, left) = divmod(i, across), divmod(j, across)
        there = images[:, :, top * P : top * P + P, left * P : left * P + P]
        result[:, :, row * P : row * P + P, column * P : column * P + P] = there
    return result


def by_fold(images, patch_size, permutation):
    columns = F.unfold(images, patch_size, stride=patch_size)
    return F.fold(columns[:, :, permutation], images.shape[2:], patch_size, stride=patch_size)


def by_einops(images, patch_size, permutation):
    P, sizes = patch_size, dict(p=patch_size, h=images.shape[2] // patch_size)
    patches = rearrange(images, "b c (h p) (w q) -> (h w) b c p q", p=P, q=P)
    return rearrange(patches[permutation], "(h w) b c p q -> b c (h p) (w q)", **sizes)


def by_pixel_indices(images, patch_size, permutation):
    H, W = images.shape[2:]
    pixels = torch.arange(H * W, device=images.device).reshape(H, W)
    blocks = pixels.unfold(0, patch_size, patch_size).unfold(1, patch_size, patch_size)
    blocks = blocks.flatten(0, 1)
    source = torch.empty(H * W, dtype=torch.long, device=images.device)
    source[blocks.flatten()] = blocks[permutation].flatten()
    return images.flatten(2)[..., source].unflatten(-1, (H, W))


def by_rows(images, patch_size, permutation):
    patches = [p for row in images.split(patch_size, 2) for p in row.split(patch_size, 3)]
    across = images.shape[3] // patch_size
    patches = [patches[i] for i in permutation.tolist()]
    rows = [torch.cat(patches[k : k + across], 3) for k in range(0, len(patches), across)]
    return torch.cat(rows, dim=2)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(images) == 1",
    "images.shape[1] == 1",
    "patch_size == 1",
    "images.shape[2] == images.shape[3]",
    "images.shape[2] == patch_size",
    "images.shape[3] == patch_size",
)
