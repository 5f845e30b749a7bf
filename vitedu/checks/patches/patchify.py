"""Checker of patchify: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import patches as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.drawing import draw_patch_order
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal, plural
from vitedu.checks.probing import Case


def patchify_cases(g: torch.Generator) -> list[Case]:
    """Draw images whose batch, channels, patch and grid sizes all differ."""

    def case(B, C, gh, gw, P, **rest):
        dtype = rest.pop("dtype", torch.float32)
        images = normal(g, B, C, gh * P, gw * P, dtype=dtype)
        name = f"{plural(B, 'image')} of {plural(C, 'channel')}, {gh * P} x {gw * P} px, patch_size {P}"
        return Case(
            name + rest.pop("note", ""),
            {"images": images, "patch_size": P},
            rtol=1e-6,
            atol=1e-6,
            **rest,
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
            f"W={H} is not divisible by patch_size {P}, but H * W is by its square",
            {"images": normal(g, B, C, P * P, H), "patch_size": P},
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

CHECKER = Checker(
    "patchify",
    reference.patchify,
    patchify_cases,
    faulty_patchify,
    PATCHIFY_BANK,
    proves={
        "values": "every pixel stands where it should",
        "other sizes": "also for squares, a batch of one, patches of one pixel and float64",
    },
    picture=draw_patch_order,
)
