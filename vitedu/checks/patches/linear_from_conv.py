import torch
import torch.nn.functional as F
from torch import nn

from vitedu import patches as reference
from vitedu.checks.kit import Case, Checker, Conv, Mistake, draw, normal


def cases(g: torch.Generator) -> list[Case]:
    """Draw convolutions with and without bias."""

    def case(C, P, D, bias=True, dtype=torch.float32, note="", **rest):
        conv = Conv(
            normal(g, D, C, P, P, dtype=dtype),
            None if bias is False else bias * normal(g, D, dtype=dtype),
        )
        name = f"Conv2d({C}, {D}, kernel_size={P}, stride={P}, bias={bias is not False}){note}"
        rest.setdefault("driver", "layer_from_layer")
        return Case(name, {"conv": conv}, outputs=("weight",), rtol=1e-6, atol=1e-6, **rest)

    P, C, D = draw(g, 2, 3), draw(g, 4, 5), draw(g, 6, 9)  # C is never the 3 of a photograph
    return [
        case(C, P, D),
        case(C, P, D, bias=False, part="without bias"),
        case(C, P, D, bias=0.0, part="other sizes", note=", a bias of zeros"),
        case(1, P, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(C, 1, D, part="other sizes", note=", patches of one pixel"),
        case(C, P, 1, part="other sizes", note=", one output"),
        case(C, P, D, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


MISTAKES = (
    Mistake(
        "channel_last",
        "the kernel is flattened as row, column, channel",
        "the order of patchify: channel, row, column",
        "Weights and pixels must be flattened alike.",
        "conv.weight has the axes (D, C, P, P); look at its order when you flatten.",
        {".flatten(1)": ".permute(0, 2, 3, 1).flatten(1)"},
    ),
    Mistake(
        "pixels_by_column",
        "the kernel is transposed",
        "rows before columns",
        "Weights and pixels must be flattened alike.",
        "Flatten the kernel as it stands.",
        {".flatten(1)": ".mT.flatten(1)"},
    ),
    Mistake(
        "rotated_kernel",
        "the kernel is rotated by half a turn",
        "the kernel as it stands",
        "The convolution of deep learning is a correlation: the kernel is not flipped.",
        "Leave out the flip.",
        {".flatten(1)": ".flip(-1, -2).flatten(1)"},
    ),
    Mistake(
        "reshaped_transpose",
        "the matrix is transposed and reshaped back",
        "linear.weight of shape (D, C*P*P), row i for output i",
        "nn.Linear keeps its weight as (out_features, in_features), which is what flatten(1) gives.",
        "Leave out the transpose.",
        {".flatten(1)": ".flatten(1).T.reshape(len(conv.weight), -1)"},
        also=({".flatten(1)": ".reshape(-1, len(conv.weight)).T"},),
    ),
    Mistake(
        "bias_not_copied",
        "the bias is not copied",
        "linear.bias equal to conv.bias",
        "Every output is off by its bias.",
        "Copy both parameters.",
        {"linear.bias.copy_(conv.bias)": "linear.bias.zero_()"},
        also=({"linear.bias.copy_(conv.bias)": "pass"},),
    ),
    Mistake(
        "always_bias",
        "the linear layer has a bias where the convolution has none",
        "a bias if and only if conv has one",
        "It would add a parameter that the convolution does not have.",
        "Give nn.Linear bias=conv.bias is not None.",
        {
            "bias=conv.bias is not None": "bias=True",
            "with torch.no_grad():": "with torch.no_grad():\n    linear.bias.zero_()",
        },
    ),
    Mistake(
        "never_bias",
        "the linear layer has no bias",
        "a bias if and only if conv has one",
        "What the convolution adds to every output would be lost.",
        "Give nn.Linear bias=conv.bias is not None.",
        {
            "bias=conv.bias is not None": "bias=False",
            "if conv.bias is not None": "if linear.bias is not None",
        },
    ),
    Mistake(
        "values_not_copied",
        "the weights are not those of the convolution",
        "the values of conv",
        "A fresh nn.Linear starts with values of its own.",
        "Copy under torch.no_grad(): linear.weight.copy_(...).",
        {"linear.weight.copy_(weight)": "linear.weight.zero_()"},
        also=(
            {"linear.weight.copy_(weight)": "pass"},
            {"linear.weight.copy_(weight)": "pass", "linear.bias.copy_(conv.bias)": "pass"},
        ),
    ),
    Mistake(
        "default_dtype",
        "the layer has torch's default dtype",
        "the dtype of conv",
        "The next float64 input would fail.",
        "Give nn.Linear dtype=conv.weight.dtype.",
        {"dtype=weight.dtype": "dtype=torch.float32"},
    ),
    Mistake(
        "values_shared",
        "the layer shares its memory with the convolution",
        "a copy of its own",
        "Training one would change the other.",
        "Copy the values, or clone them.",
        {
            "linear.weight.copy_(weight)": "linear.weight = nn.Parameter(conv.weight.data.view(D, -1))"
        },
        part="a copy of its own",
    ),
    Mistake(
        "bias_shared",
        "the bias is the convolution's own",
        "a copy of its own",
        "Training one would change the other.",
        "Copy both parameters.",
        {"linear.bias.copy_(conv.bias)": "linear.bias = conv.bias"},
        part="a copy of its own",
    ),
    Mistake(
        "own_device",
        "the layer is made on the CPU, wherever the convolution is",
        "the device of conv",
        "On a GPU the next input and the layer could not meet.",
        "Give nn.Linear device=conv.weight.device.",
        part="any device",
        build=lambda: lambda conv: reference.linear_from_conv(conv).cpu(),
    ),
)


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


CHECKER = Checker(
    "linear_from_conv",
    proves={
        "values": "every weight and bias stands where it should, and conv is unchanged",
        "without bias": "no bias where conv has none",
        "other sizes": "also for grey images, patches of one pixel and float64",
    },
    equivalent={"it is copied under no_grad": ("weight = conv.weight.flatten(1)",)},
    special="conv.kernel_size == (1, 1); conv.in_channels == 1; conv.out_channels == 1; "
    "conv.bias is None",
)
