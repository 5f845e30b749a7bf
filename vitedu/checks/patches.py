"""Checkers of notebook 01: patches, class token, positions."""

import math

import torch
from torch import nn

from vitedu import patches as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.drawing import draw_patch_order
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal
from vitedu.checks.probing import Case, Recipe
from vitedu.checks.values import ValueChecker, ValueMistake


# --- patchify -----------------------------------------------------------------------------------


def patchify_cases(g: torch.Generator) -> list[Case]:
    """Draw images whose batch, channels, patch and grid sizes all differ."""

    def case(B, C, gh, gw, P, **rest):
        dtype = rest.pop("dtype", torch.float32)
        images = normal(g, B, C, gh * P, gw * P, dtype=dtype)
        name = f"{B} image(s) of {C} channels, {gh * P} x {gw * P} px, patch_size {P}"
        return Case(
            name + rest.pop("note", ""), {"images": images, "patch_size": P}, rtol=0, atol=0, **rest
        )

    P, gh, gw = distinct(g, 3, 2, 5)
    B, C = distinct(g, 2, 2, 4)
    H = gh * P + draw(g, 1, P - 1)
    return [
        case(B, C, gh, gw, P, gradients=("images",)),
        case(B, C, gh, gh, P, part="other sizes", note=", square"),
        case(1, C, gw, gh, P, part="other sizes", note=", a batch of one"),
        case(B, 1, gh, gw, 1, part="other sizes", note=", patches of one pixel"),
        case(B, C, gh, gw, P, part="other sizes", dtype=torch.float64, note=", float64"),
        Case(
            f"H={H} is not divisible by patch_size {P}",
            {"images": normal(g, B, C, H, gw * P), "patch_size": P},
            part="errors", raises="ValueError", mentions=(H, P),
        ),
        Case(
            f"W={H} is not divisible by patch_size {P}",
            {"images": normal(g, B, C, gw * P, H), "patch_size": P},
            part="errors", raises="ValueError", mentions=(H, P),
        ),
        Case(
            "images on an accelerator", {"images": normal(g, B, C, gh * P, gw * P), "patch_size": P},
            part="any device", on_accelerator=True,
        ),
    ]  # fmt: skip


def faulty_patchify(mistakes: frozenset[str]):
    """Cut with the named mistakes made."""

    def patchify(images, patch_size):
        B, C, H, W = images.shape
        P = patch_size
        gh, gw = H // P, W // P
        if H % P or W % P:
            return reference.patchify(images, patch_size)
        if "square_only" in mistakes:
            gw = gh
        if "reshape_only" in mistakes:
            return images.reshape(B, gh * gw, C * P * P)
        if "channels_outside" in mistakes:  # cut without giving each patch its channels
            return images.reshape(B, C, gh, P, gw, P).transpose(3, 4).reshape(B, gh * gw, C * P * P)
        x = images.reshape(B, C, gh, P, gw, P).permute(0, 2, 4, 1, 3, 5)  # (B, gh, gw, C, P, P)
        if "patches_by_column" in mistakes:
            x = x.transpose(1, 2)
        if "channel_last" in mistakes:
            x = x.permute(0, 1, 2, 4, 5, 3)
        if "pixels_by_column" in mistakes:
            x = x.transpose(-1, -2) if "channel_last" not in mistakes else x.transpose(-2, -3)
        if "bottom_up" in mistakes:
            x = x.flip(1)
        return x.reshape(B, gh * gw, C * P * P)

    return patchify


PATCHIFY_BANK = (
    Misconception(
        "reshape_only", "the image is reshaped without moving any axis",
        "patch 0 holds the top left corner of every channel",
        "The memory of an image runs along its rows: a bare reshape cuts strips out of rows, not squares.",
        "Split H into (gh, P) and W into (gw, P) first, then permute, then join.",
    ),
    Misconception(
        "channels_outside", "the patches are cut, but each holds one channel's pixels of several places",
        "one patch holds all channels of its square",
        "A patch is a small image: all its channels belong together.",
        "In permute, the channel axis has to move behind both grid axes.",
    ),
    Misconception(
        "patches_by_column", "patches run down the columns instead of along the rows",
        "patch 1 stands to the right of patch 0",
        "Position i would belong to another place than the rest of the course, and every library, believes.",
        "Look at the order of the two grid axes after permute: gh before gw.",
    ),
    Misconception(
        "channel_last", "inside a patch the order is row, column, channel",
        "inside a patch: channel, then row, then column",
        "It is TensorFlow's order; the weights of a torch convolution would not fit these patches.",
        "Keep the channel axis before both pixel axes: (B, gh, gw, C, P, P).",
    ),
    Misconception(
        "pixels_by_column", "inside a patch the pixels run down the columns",
        "inside a patch the pixels run along the rows",
        "Each patch comes out mirrored along its diagonal.",
        "Look at the order of the last two axes after permute: rows before columns.",
    ),
    Misconception(
        "bottom_up", "patches start at the bottom left",
        "patch 0 is the top left corner",
        "Row 0 of an image tensor is its top row.",
        "Look for a flip, or for a loop that counts down.",
    ),
    Misconception(
        "square_only", "the grid is taken to be square",
        "gh = H / P and gw = W / P, each by itself",
        "It works on square images and breaks on the first photograph.",
        "Compute the number of patches across from W.",
    ),
)  # fmt: skip

# --- unpatchify ---------------------------------------------------------------------------------


def unpatchify_cases(g: torch.Generator) -> list[Case]:
    """Draw patch sequences whose sizes all differ."""

    def case(B, C, gh, gw, P, dtype=torch.float32, note="", **rest):
        patches = normal(g, B, gh * gw, C * P * P, dtype=dtype)
        name = f"{B} x {gh * gw} patches of {C} channels, patch_size {P}, image {gh * P} x {gw * P}{note}"
        args = {"patches": patches, "patch_size": P, "image_size": (gh * P, gw * P)}
        return Case(name, args, rtol=0, atol=0, **rest)

    P, gh, gw = distinct(g, 3, 2, 5)
    B, C = distinct(g, 2, 2, 4)
    return [
        case(B, C, gh, gw, P, gradients=("patches",)),
        case(B, C, gh, gh, P, part="other sizes", note=", square"),
        case(1, C, gw, gh, P, part="other sizes", note=", a batch of one"),
        case(B, 1, gh, gw, 1, part="other sizes", note=", patches of one pixel"),
        case(B, C, gh, gw, P, part="other sizes", dtype=torch.float64, note=", float64"),
        case(B, C, gh, gw, P, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_unpatchify(mistakes: frozenset[str]):
    """Join with the named mistakes made."""

    def unpatchify(patches, patch_size, image_size):
        B, N, length = patches.shape
        P = patch_size
        H, W = image_size
        if "size_is_width_height" in mistakes:
            H, W = W, H
        gh, gw = H // P, W // P
        if "square_only" in mistakes:
            gh = gw = math.isqrt(N)
            H, W = gh * P, gw * P
        C = length // (P * P)
        if "reshape_only" in mistakes:
            return patches.reshape(B, C, H, W)
        if "three_channels" in mistakes:
            C = 3
        if "patches_by_column" in mistakes:
            x = patches.reshape(B, gw, gh, -1).transpose(1, 2)
        else:
            x = patches.reshape(B, gh, gw, -1)
        if "channel_last" in mistakes:
            x = x.reshape(B, gh, gw, P, P, C).permute(0, 1, 2, 5, 3, 4)
        else:
            x = x.reshape(B, gh, gw, C, P, P)
        if "pixels_by_column" in mistakes:
            x = x.transpose(-1, -2)
        if "axes_unmixed" in mistakes:  # (B, C, gh, gw, P, P): grid beside pixels, then a reshape
            return x.permute(0, 3, 1, 2, 4, 5).reshape(B, C, H, W)
        return x.permute(0, 3, 1, 4, 2, 5).reshape(B, C, H, W)

    return unpatchify


UNPATCHIFY_BANK = (
    Misconception(
        "reshape_only", "the patches are reshaped without moving any axis", "unpatchify(patchify(x)) == x",
        "A patch is contiguous in the sequence, but not in the image.",
        "Undo patchify step by step: split, permute back, join.",
    ),
    Misconception(
        "axes_unmixed", "the grid axes and the pixel axes are joined in the wrong pairs", "(gh, P) become H, (gw, P) become W",
        "A row of the image passes through gw patches before the next pixel row begins.",
        "Before the last reshape the axes must read (B, C, gh, P, gw, P).",
    ),
    Misconception(
        "channel_last", "the pixels are read as row, column, channel", "inside a patch: channel, row, column",
        "It must be the order that patchify wrote.", "Split the last axis into (C, P, P), channels first.",
    ),
    Misconception(
        "patches_by_column", "the patches are laid down the columns", "patch 1 stands to the right of patch 0",
        "It must be the order that patchify wrote.", "Split N into (gh, gw), in this order.",
    ),
    Misconception(
        "pixels_by_column", "the pixels of each patch are laid down its columns", "pixels run along rows",
        "Each patch comes out mirrored along its diagonal.", "Look at the order of the last two axes.",
    ),
    Misconception(
        "size_is_width_height", "image_size is read as (width, height)", "image_size = (H, W)",
        "In torch the height comes first.", "Unpack it as H, W = image_size.",
    ),
    Misconception(
        "square_only", "the grid is taken to be square", "gh = H / P and gw = W / P",
        "The square root of N says nothing about the shape of the grid.", "Use image_size, which says it.",
    ),
    Misconception(
        "three_channels", "three channels are taken for granted", "C from the length of a patch",
        "Grey, depth and satellite images have another number.", "C = length // patch_size**2.",
    ),
)  # fmt: skip

# --- linear_from_conv ---------------------------------------------------------------------------


class Conv(Recipe):
    """A patch-embedding convolution with given values."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.weight, self.bias = weight, bias

    def build(self) -> nn.Conv2d:
        """Make the layer."""
        D, C, P, _ = self.weight.shape
        conv = nn.Conv2d(C, D, P, stride=P, bias=self.bias is not None, dtype=self.weight.dtype)
        with torch.no_grad():
            conv.weight.copy_(self.weight)
            if self.bias is not None:
                conv.bias.copy_(self.bias)
        return conv

    def changed(self, built: nn.Conv2d) -> bool:
        """Tell whether its values or their shapes changed."""
        if built.weight.shape != self.weight.shape or not torch.equal(built.weight, self.weight):
            return True
        return self.bias is not None and not torch.equal(built.bias, self.bias)


def linear_cases(g: torch.Generator) -> list[Case]:
    """Draw convolutions with and without bias."""

    def case(C, P, D, bias=True, dtype=torch.float32, note="", **rest):
        conv = Conv(normal(g, D, C, P, P, dtype=dtype), normal(g, D, dtype=dtype) if bias else None)
        name = f"Conv2d({C}, {D}, kernel_size={P}, stride={P}, bias={bias}){note}"
        rest.setdefault("driver", "layer_from_layer")
        return Case(name, {"conv": conv}, outputs=("weight",), rtol=0, atol=0, **rest)

    P, C = distinct(g, 2, 2, 5)
    D = draw(g, 6, 9)
    return [
        case(C, P, D),
        case(C, P, D, bias=False, part="without bias"),
        case(1, P, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(C, 1, D, part="other sizes", note=", patches of one pixel"),
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
        linear = nn.Linear(C * P * P, D, bias=bias, dtype=dtype)
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
)  # fmt: skip

CHECKERS = {
    "patchify": Checker(
        "patchify", reference.patchify, patchify_cases, faulty_patchify, PATCHIFY_BANK,
        proves={
            "values": "every pixel stands where it should, compared to the bit",
            "other sizes": "also for squares, a batch of one, patches of one pixel and float64",
        },
        picture=draw_patch_order,
    ),
    "unpatchify": Checker(
        "unpatchify", reference.unpatchify, unpatchify_cases, faulty_unpatchify, UNPATCHIFY_BANK,
        proves={
            "values": "every pixel is back in its place, compared to the bit",
            "other sizes": "also for squares, a batch of one, patches of one pixel and float64",
        },
    ),
    "linear_from_conv": Checker(
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
    ),
    "tokens_at_224": ValueChecker(
        "tokens_at_224", reference.tokens_at_224,
        (
            ValueMistake("no_class_token", 196, "the class token is not counted", "The patches are only part of the sequence.",
                         "The model puts one more token in front."),
            ValueMistake("one_side", 14, "one side of the grid is counted", "The grid has two sides.", "Multiply down by across."),
            ValueMistake("one_side_and_token", 15, "one side of the grid is counted", "The grid has two sides.", "Multiply down by across."),
            ValueMistake("pixels", 224 * 224, "pixels are counted", "A token is a patch, not a pixel.", "Divide each side by the patch size."),
            ValueMistake("values", 768, "the width of a token is given", "That is how long one token is.", "How many tokens are there?"),
        ),
        proves="patches down times patches across, and the class token",
    ),
}  # fmt: skip
