"""Right answers to 6.1 receptive_field, and what becomes of its mutants."""

import torch
from torch import nn


def from_the_back(kernel_sizes, strides):
    """One cell of the output needs ``(size - 1) * stride + kernel`` cells of the input."""
    size = 1
    for kernel_size, stride in zip(reversed(kernel_sizes), reversed(strides), strict=True):
        size = (size - 1) * stride + kernel_size
    return size


def by_a_sum(kernel_sizes, strides):
    ones = torch.ones(1, dtype=torch.long)
    steps = torch.cat([ones, torch.tensor(strides).cumprod(0)[:-1]])
    return 1 + ((torch.tensor(kernel_sizes) - 1) * steps).sum()


def by_intervals(kernel_sizes, strides):
    low, high = 0, 0
    for kernel_size, stride in list(zip(kernel_sizes, strides, strict=True))[::-1]:
        low, high = low * stride, high * stride + kernel_size - 1
    return float(high - low + 1)


def by_gradient(kernel_sizes, strides):
    side = 1
    for kernel_size, stride in list(zip(kernel_sizes, strides, strict=True))[::-1]:
        side = (side - 1) * stride + kernel_size  # just enough pixels for one cell
    pixels = torch.ones(1, 1, side + 6, requires_grad=True)
    x = pixels
    for kernel_size, stride in zip(kernel_sizes, strides, strict=True):
        conv = nn.Conv1d(1, 1, kernel_size, stride, bias=False)
        nn.init.constant_(conv.weight, 1 / kernel_size)
        x = conv(x)
    x[0, 0, 0].backward()
    return int(pixels.grad.nonzero()[-1, -1]) + 1


def by_recursion(kernel_sizes, strides):
    if not len(kernel_sizes):
        return 1
    return kernel_sizes[0] + strides[0] * (by_recursion(kernel_sizes[1:], strides[1:]) - 1)


EQUIVALENT = {"two numbers bound in the other order": ("step, size = (1, 1)",)}


LEFT_OPEN = {
    "nothing is said about lists of two lengths": ("strict=False", "(kernel_sizes, strides)"),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(kernel_sizes) == 1",
    "max(strides) == 1",
    "1 in kernel_sizes",
)
