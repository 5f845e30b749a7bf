"""Right answers to 1.6 linear_from_conv, and what becomes of its mutants."""

import torch
import torch.nn.functional as F
from torch import nn


def by_state_dict(conv):
    has_bias = conv.bias is not None
    linear = nn.Linear(conv.weight[0].numel(), conv.out_channels, bias=has_bias).to(conv.weight)
    state = {"weight": conv.weight.flatten(1)}
    if conv.bias is not None:
        state["bias"] = conv.bias
    linear.load_state_dict(state)
    return linear


def by_new_parameters(conv):
    linear = nn.Linear(1, 1, bias=False)
    linear.in_features, linear.out_features = conv.weight[0].numel(), conv.weight.shape[0]
    linear.weight = nn.Parameter(conv.weight.detach().clone().reshape(conv.out_channels, -1))
    if conv.bias is not None:
        linear.bias = nn.Parameter(conv.bias.detach().clone())
    return linear


class _Tokens(nn.Linear):
    """A subclass of one's own is a linear layer, too."""


def by_subclass(conv):
    layer = _Tokens(conv.weight[0].numel(), conv.out_channels, conv.bias is not None).to(
        conv.weight
    )
    layer.load_state_dict(
        {name: x.flatten(1) if x.ndim > 1 else x for name, x in conv.state_dict().items()}
    )
    return layer


def by_impulses(conv):
    C, P = conv.in_channels, conv.kernel_size[0]
    with torch.no_grad():
        impulses = torch.eye(C * P * P).to(conv.weight).view(-1, C, P, P)
        dark = conv(torch.zeros_like(impulses[:1])).flatten()
        columns = F.conv2d(impulses, conv.weight, stride=P).flatten(1)
        linear = nn.Linear(C * P * P, len(dark), conv.bias is not None).to(dark)
        linear.weight.data = columns.T.contiguous()
        if linear.bias is not None:
            linear.bias.data = dark.clone()
    return linear


def by_loops(conv):
    D, C, P, Q = conv.weight.shape
    like = {"dtype": conv.weight.dtype, "device": conv.weight.device}
    linear = nn.Linear(C * P * Q, D, bias=conv.bias is not None, **like)
    for out in range(D):
        for c in range(C):
            for row in range(P):
                for column in range(Q):
                    value = conv.weight.data[out, c, row, column]
                    linear.weight.data[out, (c * P + row) * Q + column] = value
        if conv.bias is not None:
            linear.bias.data[out] = conv.bias.data[out]
    return linear


EQUIVALENT = {"it is copied under no_grad": ("weight = conv.weight.flatten(1)",)}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "conv.kernel_size == (1, 1)",
    "conv.in_channels == 1",
    "conv.out_channels == 1",
    "conv.bias is None",
)
