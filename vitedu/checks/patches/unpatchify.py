"""Checker of unpatchify: its cases, its known mistakes, and what is said of them."""

import math

import torch

from vitedu import patches as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal, plural
from vitedu.checks.probing import Case


def unpatchify_cases(g: torch.Generator) -> list[Case]:
    """Draw patch sequences whose sizes all differ."""

    def case(B, C, gh, gw, P, dtype=torch.float32, note="", **rest):
        patches = normal(g, B, gh * gw, C * P * P, dtype=dtype)
        name = f"{B} x {gh * gw} patches of {plural(C, 'channel')}, patch_size {P}, image {gh * P} x {gw * P}{note}"
        args = {"patches": patches, "patch_size": P, "image_size": (gh * P, gw * P)}
        return Case(name, args, rtol=1e-6, atol=1e-6, **rest)

    P, gh, gw, B = distinct(g, 4, 3, 6)
    C = 2 * draw(g, 1, 2)  # never the 3 that somebody took for granted
    return [
        case(B, C, gh, gw, P, gradients=("patches",)),
        # other channels and patches: C is 3 or P*P, and N a multiple of P*P, in one of the two at most
        case(B, C + 2, P + 2, P + 2, P + 1, part="other sizes", note=", square"),
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

CHECKER = Checker(
    "unpatchify",
    reference.unpatchify,
    unpatchify_cases,
    faulty_unpatchify,
    UNPATCHIFY_BANK,
    proves={
        "values": "every pixel is back in its place",
        "other sizes": "also for squares, a batch of one, patches of one pixel and float64",
    },
)
