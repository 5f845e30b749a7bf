"""Right answers to 1.1 patchify, and what becomes of its mutants."""

import torch
import torch.nn.functional as F
from einops import rearrange


def _refuse_odd_sizes(images, P):
    H, W = images.shape[-2:]
    if H % P or W % P:
        raise ValueError(f"{H} x {W} is not divisible by {P}")


def by_loops(images, P):
    _refuse_odd_sizes(images, P)
    H, W = images.shape[-2:]
    corners = [(top, left) for top in range(0, H, P) for left in range(0, W, P)]
    return torch.stack([images[:, :, i : i + P, j : j + P].flatten(1) for i, j in corners], dim=1)


def by_tensor_unfold(images, P):
    _refuse_odd_sizes(images, P)
    return images.unfold(2, P, P).unfold(3, P, P).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def by_im2col(images, P):
    _refuse_odd_sizes(images, P)
    return F.unfold(images, kernel_size=P, stride=P).transpose(1, 2)


def by_convolution(images, P):
    _refuse_odd_sizes(images, P)
    length = images.shape[1] * P**2
    kernels = torch.eye(length, dtype=images.dtype, device=images.device)
    return F.conv2d(images, kernels.reshape(length, -1, P, P), stride=P).flatten(2).mT


def by_einops(images, P):
    _refuse_odd_sizes(images, P)
    return rearrange(images, "b c (i p) (j q) -> b (i j) (c p q)", p=P, q=P)


def by_chunks(images, P):
    _refuse_odd_sizes(images, P)
    pieces = [piece for row in images.split(P, dim=2) for piece in row.split(P, dim=3)]
    return torch.cat([piece.reshape(len(images), 1, -1) for piece in pieces], 1)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(images) == 1",
    "images.shape[1] == 1",
    "patch_size == 1",
    "images.shape[2] == images.shape[3]",
    "images.shape[2] == patch_size",
    "images.shape[3] == patch_size",
    "images[0, 0].numel() > 64 * patch_size ** 2",
    "len(images) > 64",
)
