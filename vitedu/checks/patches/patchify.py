import torch
import torch.nn.functional as F

from vitedu.checks import drawing, families
from vitedu.checks.kit import EXACT, USUAL, Checker, Mistake, also, rearrange, refused, shaped

MISTAKES = (
    Mistake(
        "reshape_only",
        "the image is reshaped without moving any axis",
        "patch 0 holds the top left corner of every channel",
        "The memory of an image runs along its rows: a bare reshape cuts strips out of rows, not squares.",
        "Split H into (gh, P) and W into (gw, P) first, then permute, then join.",
        {"x.permute(0, 2, 4, 1, 3, 5)": "x"},
    ),
    Mistake(
        "axes_split_backwards",
        "H and W are split as (P, gh) and (P, gw), the wrong way round",
        "H = (gh, P) and W = (gw, P): the grid first, then the pixels",
        "A patch then takes every gh-th row and every gw-th column of the whole image, not neighbours.",
        "reshape counts its last axis fastest: the pixels inside a patch belong there.",
        {"C, gh, P, gw, P)": "C, P, gh, P, gw)", "0, 2, 4, 1, 3, 5": "0, 3, 5, 1, 2, 4"},
        also=({"C, gh, P, gw, P)": "C, P, gh, P, gw)"},),
    ),
    Mistake(
        "channels_outside",
        "the patches are cut, but each holds one channel's pixels of several places",
        "one patch holds all channels of its square",
        "A patch is a small image: all its channels belong together.",
        "The channel axis has to move behind both grid axes.",
        {"0, 2, 4, 1, 3, 5": "0, 1, 2, 4, 3, 5"},
    ),
    Mistake(
        "patches_by_column",
        "patches run down the columns instead of along the rows",
        "patch 1 stands to the right of patch 0",
        "Position i would belong to another place than the rest of the course, and every library, believes.",
        "Look at the order of the two grid axes: gh before gw.",
        {"0, 2, 4": "0, 4, 2"},
    ),
    Mistake(
        "channel_last",
        "inside a patch the order is row, column, channel",
        "inside a patch: channel, then row, then column",
        "It is TensorFlow's order; the weights of a torch convolution would not fit these patches.",
        "Keep the channel axis before both pixel axes: (B, gh, gw, C, P, P).",
        {"1, 3, 5": "3, 5, 1"},
    ),
    Mistake(
        "pixels_by_column",
        "inside a patch the pixels run down the columns",
        "inside a patch the pixels run along the rows",
        "Each patch comes out mirrored along its diagonal.",
        "Look at the order of the last two axes: rows before columns.",
        {"3, 5)": "5, 3)"},
    ),
    Mistake(
        "bottom_up",
        "patches start at the bottom left",
        "patch 0 is the top left corner",
        "Row 0 of an image tensor is its top row.",
        "Look for a flip, or for a loop that counts down.",
        {"return x": "x = x.flip(1)\nreturn x"},
    ),
    families.SQUARE_ONLY.by({"W // P": "H // P"}),
    families.GRID_EXCHANGED.by({"gh, gw = H // P": "gw, gh = H // P"}),
    Mistake(
        "count_for_size",
        "patch_size is taken for the number of patches along a side",
        "squares of patch_size x patch_size pixels",
        "On an image of patch_size**2 pixels a side it would not show.",
        "There are H // P patches down and W // P across.",
        {"C, gh, P, gw, P)": "C, P, gh, P, gw)", "gh * gw, C * P * P)": "P * P, C * gh * gw)"},
    ),
    Mistake(
        "a_token_a_channel",
        "every channel makes tokens of its own",
        "one patch holds all channels of its square",
        "The sequence would be C times as long.",
        "The channel axis has to move behind both grid axes.",
        {"0, 2, 4, 1, 3, 5": "0, 1, 2, 4, 3, 5", "gh * gw, C * P * P)": "C * gh * gw, P * P)"},
    ),
    Mistake(
        "transposed_only",
        "the image is reshaped and transposed once, and no square is cut out",
        "patch 0 holds the top left corner of every channel",
        "A reshape counts along the rows of the image, across all squares.",
        "Split H into (gh, P) and W into (gw, P) first, then permute, then join.",
        {
            "return x.reshape(B, gh * gw, C * P * P)": "return images.reshape(B, C * P * P, gh * gw).mT"
        },
    ),
)


def _refuse_odd_sizes(images, P):
    H, W = images.shape[-2:]
    if H % P or W % P:
        raise ValueError(f"{H} x {W} is not divisible by {P}")


def by_loops(images, P):
    _refuse_odd_sizes(images, P)
    H, W = images.shape[-2:]
    corners = [(top, left) for top in range(0, H, P) for left in range(0, W, P)]
    return torch.stack([images[:, :, i : i + P, j : j + P].flatten(1) for i, j in corners], dim=1)


def by_tensor_unfold(images, P):
    _refuse_odd_sizes(images, P)
    return images.unfold(2, P, P).unfold(3, P, P).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def by_im2col(images, P):
    _refuse_odd_sizes(images, P)
    return F.unfold(images, kernel_size=P, stride=P).transpose(1, 2)


def by_convolution(images, P):
    _refuse_odd_sizes(images, P)
    length = images.shape[1] * P**2
    kernels = torch.eye(length, dtype=images.dtype, device=images.device)
    return F.conv2d(images, kernels.reshape(length, -1, P, P), stride=P).flatten(2).mT


def by_einops(images, P):
    _refuse_odd_sizes(images, P)
    return rearrange(images, "b c (i p) (j q) -> b (i j) (c p q)", p=P, q=P)


def by_chunks(images, P):
    _refuse_odd_sizes(images, P)
    pieces = [piece for row in images.split(P, dim=2) for piece in row.split(P, dim=3)]
    return torch.cat([piece.reshape(len(images), 1, -1) for piece in pieces], 1)


CHECKER = Checker(
    "patchify",
    cases=shaped(
        "images: B C H W; patch_size = P",
        also("other sizes", "square", gw="gh"),
        also("other sizes", "patches of one pixel", P=1, C=1),
        refused("H={H} is not divisible by patch_size {P}", "H P", H="gh*P + 1"),
        refused(
            "W={W} is not divisible by patch_size {P}, but H * W is by its square",
            "W P",
            H="P*P",
            W="gw*P + 1",
        ),
        *USUAL,
        also("other sizes", "one row of patches", gh=1),
        also("other sizes", "one column of patches", gw=1),
        letters={"H": "gh*P", "W": "gw*P"},
        name="{B:image} of {C:channel}, {H} x {W} px, patch_size {P}",
        **EXACT,
    ),
    proves={
        "values": "every pixel stands where it should",
        "other sizes": "also for squares, a batch of one, patches of one pixel and float64",
    },
    picture=drawing.draw_patch_order,
    special="len(images) == 1; images.shape[1] == 1; patch_size == 1; "
    "images.shape[2] == images.shape[3]; images.shape[2] == patch_size; "
    "images.shape[3] == patch_size",
)
