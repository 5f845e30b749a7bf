"""Right answers to 1.5 unpatchify, and what becomes of its mutants."""

import torch
import torch.nn.functional as F
from einops import rearrange


def by_fold(patches, patch_size, image_size):
    return F.fold(patches.transpose(1, 2), image_size, kernel_size=patch_size, stride=patch_size)


def by_loops(patches, patch_size, image_size):
    H, W = image_size
    P = patch_size
    C = patches.shape[-1] // P**2
    out = patches.new_zeros(len(patches), C, H, W)
    for i in range(patches.shape[1]):
        top, left = divmod(i, W // P)
        out[:, :, top * P : top * P + P, left * P : left * P + P] = patches[:, i].view(-1, C, P, P)
    return out


def by_einops(patches, patch_size, image_size):
    sizes = {"i": image_size[0] // patch_size, "p": patch_size, "q": patch_size}
    return rearrange(patches, "b (i j) (c p q) -> b c (i p) (j q)", **sizes)


def by_joining(patches, patch_size, image_size):
    across = image_size[1] // patch_size
    squares = patches.unflatten(-1, (-1, patch_size, patch_size)).unbind(1)
    rows = [torch.cat(squares[i : i + across], dim=-1) for i in range(0, len(squares), across)]
    return torch.cat(rows, dim=-2)


def by_transposed_convolution(patches, patch_size, image_size):
    length = patches.shape[-1]
    kernels = torch.eye(length, dtype=patches.dtype, device=patches.device)
    kernels = kernels.view(length, -1, patch_size, patch_size)
    grid = patches.mT.unflatten(-1, (image_size[0] // patch_size, -1))
    return F.conv_transpose2d(grid, kernels, stride=patch_size)


LEFT_OPEN = {
    "no error is asked for where the patches do not fill the image": (
        "H % P or gh",
        "if W % P or",
        "ValueError",
        "H % P and W",
        "P or length",
        "gh * gw < N",
        "gh * gw > N",
        "TypeError(...)",
        "length % (P / P)",
        "length % (P // P)",
        "length % P:",
        "gh * gw != N:",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(patches) == 1",
    "patches.shape[1] == 1",
    "patch_size == 1",
    "image_size[0] == image_size[1]",
    "image_size[0] == patch_size",
    "image_size[1] == patch_size",
    "patches.shape[2] == patch_size ** 2",
    "patches.shape[1] > 64",
    "len(patches) == 17",
    "patches.shape[1] == 16",
)
