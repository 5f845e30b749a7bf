"""Checker of linear_from_conv: its cases, its known mistakes, and what is said of them."""

import torch
from torch import nn

from vitedu import patches as reference
from vitedu.checks.arguments import Conv
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal
from vitedu.checks.probing import Case


def linear_cases(g: torch.Generator) -> list[Case]:
    """Draw convolutions with and without bias."""

    def case(C, P, D, bias=True, dtype=torch.float32, note="", **rest):
        conv = Conv(normal(g, D, C, P, P, dtype=dtype), normal(g, D, dtype=dtype) if bias else None)
        name = f"Conv2d({C}, {D}, kernel_size={P}, stride={P}, bias={bias}){note}"
        rest.setdefault("driver", "layer_from_layer")
        return Case(name, {"conv": conv}, outputs=("weight",), rtol=1e-6, atol=1e-6, **rest)

    P, C = distinct(g, 2, 2, 5)
    D = draw(g, 6, 9)
    return [
        case(C, P, D),
        case(C, P, D, bias=False, part="without bias"),
        case(1, P, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(C, 1, D, part="other sizes", note=", patches of one pixel"),
        case(C, P, D, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_linear(mistakes: frozenset[str]):
    """Convert with the named mistakes made."""

    def linear_from_conv(conv):
        D, C, P, _ = conv.weight.shape
        weight = conv.weight.detach()
        if "channel_last" in mistakes:
            weight = weight.permute(0, 2, 3, 1)
        if "pixels_by_column" in mistakes:
            weight = weight.transpose(-1, -2)
        if "rotated_kernel" in mistakes:
            weight = weight.flip(-1, -2)
        flat = weight.reshape(D, -1)
        if "reshaped_transpose" in mistakes:
            flat = weight.flatten(1).T.reshape(D, -1)
        dtype = torch.float32 if "default_dtype" in mistakes else conv.weight.dtype
        bias = (
            True
            if "always_bias" in mistakes
            else False
            if "never_bias" in mistakes
            else conv.bias is not None
        )
        linear = nn.Linear(C * P * P, D, bias=bias, dtype=dtype, device=weight.device)
        with torch.no_grad():
            if "values_not_copied" in mistakes:
                linear.weight.fill_(0.0)
            else:
                linear.weight.copy_(flat)
            if linear.bias is not None:
                linear.bias.zero_()
                if conv.bias is not None and "bias_not_copied" not in mistakes:
                    linear.bias.copy_(conv.bias)
            if "values_shared" in mistakes:
                linear.weight = nn.Parameter(conv.weight.data.view(D, -1))
            if "bias_shared" in mistakes and conv.bias is not None:
                linear.bias = conv.bias
        return linear

    return linear_from_conv


LINEAR_BANK = (
    Misconception(
        "channel_last", "the kernel is flattened as row, column, channel", "the order of patchify: channel, row, column",
        "Weights and pixels must be flattened alike.", "conv.weight has the axes (D, C, P, P); look at its order when you flatten.",
    ),
    Misconception(
        "pixels_by_column", "the kernel is transposed", "rows before columns", "Weights and pixels must be flattened alike.",
        "Flatten the kernel as it stands.",
    ),
    Misconception(
        "rotated_kernel", "the kernel is rotated by half a turn", "the kernel as it stands",
        "The convolution of deep learning is a correlation: the kernel is not flipped.", "Leave out the flip.",
    ),
    Misconception(
        "reshaped_transpose", "the matrix is transposed and reshaped back", "linear.weight of shape (D, C*P*P), row i for output i",
        "nn.Linear keeps its weight as (out_features, in_features), which is what flatten(1) gives.", "Leave out the transpose.",
    ),
    Misconception(
        "bias_not_copied", "the bias is not copied", "linear.bias equal to conv.bias", "Every output is off by its bias.",
        "Copy both parameters.",
    ),
    Misconception(
        "always_bias", "the linear layer has a bias where the convolution has none", "a bias if and only if conv has one",
        "It would add a parameter that the convolution does not have.", "Give nn.Linear bias=conv.bias is not None.",
    ),
    Misconception(
        "never_bias", "the linear layer has no bias", "a bias if and only if conv has one",
        "What the convolution adds to every output would be lost.", "Give nn.Linear bias=conv.bias is not None.",
    ),
    Misconception(
        "values_not_copied", "the weights are not those of the convolution", "the values of conv",
        "A fresh nn.Linear starts with values of its own.", "Copy under torch.no_grad(): linear.weight.copy_(...).",
    ),
    Misconception(
        "default_dtype", "the layer has torch's default dtype", "the dtype of conv", "The next float64 input would fail.",
        "Give nn.Linear dtype=conv.weight.dtype.",
    ),
    Misconception(
        "values_shared", "the layer shares its memory with the convolution", "a copy of its own",
        "Training one would change the other.", "Copy the values, or clone them.", part="a copy of its own",
    ),
    Misconception(
        "bias_shared", "the bias is the convolution's own", "a copy of its own",
        "Training one would change the other.", "Copy both parameters.", part="a copy of its own",
    ),
    Misconception(
        "own_device", "the layer is made on the CPU, wherever the convolution is", "the device of conv",
        "On a GPU the next input and the layer could not meet.", "Give nn.Linear device=conv.weight.device.",
        part="any device", build=lambda: lambda conv: reference.linear_from_conv(conv).cpu(),
    ),
)  # fmt: skip

CHECKER = Checker(
    "linear_from_conv",
    reference.linear_from_conv,
    linear_cases,
    faulty_linear,
    LINEAR_BANK,
    proves={
        "values": "every weight and bias stands where it should, and conv is unchanged",
        "without bias": "no bias where conv has none",
        "other sizes": "also for grey images, patches of one pixel and float64",
    },
)
