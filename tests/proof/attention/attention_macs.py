"""Right answers to 2.7 attention_macs, and what becomes of its mutants."""

import math

import numpy as np
import torch

from vitedu import attention


def by_products(num_tokens, embed_dim):
    T, D = num_tokens, embed_dim
    products = [(T, D, 3 * D), (T, D, T), (T, T, D), (T, D, D)]
    return sum(math.prod(sizes) for sizes in products)


def factored(num_tokens, embed_dim):
    return 2.0 * num_tokens * embed_dim * (2 * embed_dim + num_tokens)


def by_tokens(num_tokens, embed_dim):
    each = np.full(num_tokens, 4 * embed_dim**2 + 2 * num_tokens * embed_dim, dtype=np.int64)
    return each.sum()


def by_tensor(num_tokens, embed_dim):
    T, D = torch.tensor(num_tokens), torch.tensor(embed_dim)
    return torch.stack([T * D**2, T**2 * D]) @ torch.tensor([4, 2])


def measured(num_tokens, embed_dim):
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer = attention.MultiHeadAttention(embed_dim, 1)
        layer(torch.zeros(1, num_tokens, embed_dim))
    return counter.get_total_flops() // 2


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "num_tokens == 1",
    "embed_dim == 1",
    "num_tokens == embed_dim",
)
