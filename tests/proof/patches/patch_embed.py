"""Right answers to 1.2 PatchEmbed, and what becomes of its mutants."""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from vitedu.patches import patchify


class ByProduct(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, patch_size)

    def forward(self, images):
        patches = patchify(images, self.proj.kernel_size[0])
        return patches @ self.proj.weight.flatten(1).T + self.proj.bias


class ByLinear(nn.Module):
    def __init__(self, size, channels, width):
        super().__init__()
        self.size, self.proj = size, nn.Conv2d(channels, width, (size, size), stride=(size, size))

    def forward(self, x):
        return F.linear(patchify(x, self.size), self.proj.weight.flatten(1), self.proj.bias)


class ByUnfold(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        nn.Module.__init__(self)
        self.P = patch_size
        self.proj = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images):
        if any(side % self.P for side in images.shape[2:]):
            raise ValueError(f"{tuple(images.shape[2:])} is no multiple of {self.P}")
        columns = F.unfold(images, self.P, stride=self.P)
        tokens = self.proj.weight.reshape(len(self.proj.weight), -1) @ columns
        return tokens.mT + self.proj.bias


class ByEinops(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        P = self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, embed_dim, kernel_size=P, stride=P)

    def forward(self, images):
        _, _, H, W = images.size()
        if H % self.patch_size != 0:
            raise ValueError(f"H={H}, but patch_size={self.patch_size}")
        if W % self.patch_size != 0:
            raise ValueError(f"W={W}, but patch_size={self.patch_size}")
        return rearrange(self.proj(images), "b d gh gw -> b (gh gw) d")


class PatchByPatch(ByEinops):
    def forward(self, images):
        P = self.patch_size
        patchify(images[:1], P)  # for its error
        kernel, tokens = self.proj.weight, []
        for top in range(0, images.shape[2], P):
            for left in range(0, images.shape[3], P):
                patch = images[:, None, :, top : top + P, left : left + P]
                tokens.append((patch * kernel).sum(dim=(2, 3, 4)) + self.proj.bias)
        return torch.stack(tokens, dim=1)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(images) == 1",
    "images.shape[1] == 1",
    "images.shape[2] == images.shape[3]",
    "self.patch_size == 1",
    "images.shape[2] == self.patch_size",
)

LEFT_OPEN = {"a message may name the two numbers in any order": ("W, H = images.shape[-2:]",)}
