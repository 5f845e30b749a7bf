"""Right answers to 3.6 count_parameters, and what becomes of its mutants."""

import math

import torch


def by_shapes(config):
    D, h = config.embed_dim, int(config.embed_dim * config.mlp_ratio)
    n = (config.image_size // config.patch_size) ** 2
    block = [(D,), (D,), (3 * D, D), (D, D), (D,), (D,), (D,), (h, D), (h,), (D, h), (D,)]
    if config.qkv_bias:
        block.append((3 * D,))
    shapes = [(D, config.in_channels, config.patch_size, config.patch_size), (D,)]
    shapes += [(D,), (n + 1, D), (D,), (D,), (config.num_classes, D), (config.num_classes,)]
    return sum(math.prod(shape) for shape in shapes + block * config.depth)


def by_polynomial(config):
    D, L, K = config.embed_dim, config.depth, config.num_classes
    H, N = int(D * config.mlp_ratio), (config.image_size // config.patch_size) ** 2
    per_block = 4 * D * D + 2 * D * H + 6 * D + H + 3 * D * bool(config.qkv_bias)
    return D * (config.in_channels * config.patch_size**2 + N + 5) + L * per_block + (D + 1) * K


def by_layers(config):
    def linear(inputs, outputs, bias=True):
        return inputs * outputs + outputs * bias

    D, P = config.embed_dim, config.patch_size
    H = int(config.mlp_ratio * D)
    block = 4 * D + linear(D, 3 * D, config.qkv_bias) + linear(D, D) + linear(D, H) + linear(H, D)
    tokens = 1 + (config.image_size // P) * (config.image_size // P)
    outside = linear(P * P * config.in_channels, D) + linear(D, config.num_classes)
    return outside + D + tokens * D + block * config.depth + 2 * D


def by_loop(config):
    D = config.embed_dim
    total = torch.tensor(D * config.in_channels * config.patch_size**2 + D)
    total += D + D * ((config.image_size // config.patch_size) ** 2 + 1)
    for _ in range(config.depth):
        total += 4 * D + 3 * D * (D + int(config.qkv_bias)) + D * (D + 1)
        total += int(D * config.mlp_ratio) * (2 * D + 1) + D
    return total + 2 * D + (D + 1) * config.num_classes


EQUIVALENT = {
    "image_size is a multiple of patch_size, and a float is a number": ("image_size / config",),
    "a ViTConfig has the attribute": (
        "config, 'num_prefix_tokens', -",
        "(config, 'num_prefix_tokens')",
        "config, 'num_prefix_tokens', 0",
        "config, 'num_prefix_tokens', 2",
    ),
}


LEFT_OPEN = {
    "pool is a field of this package; the contract's model reads its class token": (
        "num_prefix_tokens_",
        "prefix_and_positions = D",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "config.depth == 0",
    "config.depth == 1",
    "config.in_channels == 1",
    "config.num_classes == 1",
    "config.image_size == config.patch_size",
    "config.num_heads == 1",
    "config.patch_size == 1",
    "not config.qkv_bias",
)
