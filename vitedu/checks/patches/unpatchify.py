import torch
import torch.nn.functional as F

from vitedu.checks import drawing, families
from vitedu.checks.kit import EXACT, USUAL, Checker, Mistake, also, rearrange, shaped

MISTAKES = (
    Mistake(
        "reshape_only",
        "the patches are reshaped without moving any axis",
        "unpatchify(patchify(x)) == x",
        "A patch is contiguous in the sequence, but not in the image.",
        "Undo patchify step by step: split, permute back, join.",
        {"return x.reshape": "return patches.reshape"},
    ),
    Mistake(
        "patchify_again",
        "patchify's permutation is made once more, not undone",
        "unpatchify(patchify(x)) == x",
        "The same permutation twice is not the way back: its axes stand in another order now.",
        "Write the axes down: (B, gh, gw, C, P, P) has to become (B, C, gh, P, gw, P).",
        {"0, 3, 1, 4, 2, 5": "0, 2, 4, 1, 3, 5"},
        also=(
            {
                "return x.reshape": "return patches.reshape(B, C, gh, P, gw, P).permute(0, 2, 4, 1, 3, 5).reshape"
            },
        ),
    ),
    Mistake(
        "axes_unmixed",
        "the grid axes and the pixel axes are joined in the wrong pairs",
        "(gh, P) become H, (gw, P) become W",
        "A row of the image passes through gw patches before the next pixel row begins.",
        "Before the last reshape the axes must read (B, C, gh, P, gw, P).",
        {"0, 3, 1, 4, 2, 5": "0, 3, 1, 2, 4, 5"},
    ),
    Mistake(
        "channel_last",
        "the pixels are read as row, column, channel",
        "inside a patch: channel, row, column",
        "It must be the order that patchify wrote.",
        "Split the last axis into (C, P, P), channels first.",
        {"C, P, P)": "P, P, C).permute(0, 1, 2, 5, 3, 4)"},
    ),
    Mistake(
        "patches_by_column",
        "the patches are laid down the columns",
        "patch 1 stands to the right of patch 0",
        "It must be the order that patchify wrote.",
        "Split N into (gh, gw), in this order.",
        {"B, gh, gw": "B, gw, gh", "x = x.permute": "x = x.transpose(1, 2)\nx = x.permute"},
    ),
    Mistake(
        "pixels_by_column",
        "the pixels of each patch are laid down its columns",
        "pixels run along rows",
        "Each patch comes out mirrored along its diagonal.",
        "Look at the order of the last two axes.",
        {"x = x.permute": "x = x.transpose(-1, -2)\nx = x.permute"},
    ),
    Mistake(
        "size_is_width_height",
        "image_size is read as (width, height)",
        "image_size = (H, W)",
        "In torch the height comes first.",
        "Unpack it as H, W = image_size.",
        {"H, W = image_size": "W, H = image_size"},
    ),
    families.SQUARE_ONLY.by(
        {
            "gh, gw = H // P, W // P": "gh = gw = math.isqrt(N)\nH, W = gh * P, gw * P",
            "if H % P or W % P or gh * gw != N or length % (P * P):": "if False:",
        },
        look="Use image_size, which says it.",
        also=(
            {
                "gh, gw = H // P, W // P": "gh = math.isqrt(N)\ngw = N // gh",
                "if H % P or W % P or gh * gw != N or length % (P * P):": "if False:",
            },
        ),
    ),
    families.GRID_EXCHANGED.by({"gh, gw = H // P": "gw, gh = H // P"}),
    Mistake(
        "transposed_only",
        "the sequence is transposed and reshaped, and no patch is split into its rows",
        "unpatchify(patchify(x)) == x",
        "The image is then filled value by value, not patch by patch.",
        "Undo patchify step by step: split, permute back, join.",
        {"return x.reshape": "return patches.mT.reshape"},
    ),
    Mistake(
        "three_channels",
        "three channels are taken for granted",
        "C from the length of a patch",
        "Grey, depth and satellite images have another number.",
        "C = length // patch_size**2.",
        {"C = length // (P * P)": "C = 3"},
    ),
)


def by_fold(patches, patch_size, image_size):
    return F.fold(patches.transpose(1, 2), image_size, kernel_size=patch_size, stride=patch_size)


def by_loops(patches, patch_size, image_size):
    H, W = image_size
    P = patch_size
    C = patches.shape[-1] // P**2
    out = patches.new_zeros(len(patches), C, H, W)
    for i in range(patches.shape[1]):
        top, left = divmod(i, W // P)
        out[:, :, top * P : top * P + P, left * P : left * P + P] = patches[:, i].view(-1, C, P, P)
    return out


def by_einops(patches, patch_size, image_size):
    sizes = {"i": image_size[0] // patch_size, "p": patch_size, "q": patch_size}
    return rearrange(patches, "b (i j) (c p q) -> b c (i p) (j q)", **sizes)


def by_joining(patches, patch_size, image_size):
    across = image_size[1] // patch_size
    squares = patches.unflatten(-1, (-1, patch_size, patch_size)).unbind(1)
    rows = [torch.cat(squares[i : i + across], dim=-1) for i in range(0, len(squares), across)]
    return torch.cat(rows, dim=-2)


def by_transposed_convolution(patches, patch_size, image_size):
    length = patches.shape[-1]
    kernels = torch.eye(length, dtype=patches.dtype, device=patches.device)
    kernels = kernels.view(length, -1, patch_size, patch_size)
    grid = patches.mT.unflatten(-1, (image_size[0] // patch_size, -1))
    return F.conv_transpose2d(grid, kernels, stride=patch_size)


CHECKER = Checker(
    "unpatchify",
    cases=shaped(
        "patches: B gh*gw C*P*P; patch_size = P; image_size = (gh*P, gw*P)",
        also("other sizes", "square", gw="gh"),
        also("other sizes", "patches of one pixel", P=1, C=1),
        also(
            "other sizes", "four patches in a row", gh=1, gw=4
        ),  # the root of N is no side of the grid
        also("other sizes", "one column of patches", gw=1),
        also("other sizes", "one patch", gh=1, gw=1),
        *USUAL,
        # C is neither the 3 that somebody took for granted nor P*P, and P*P divides no N
        ranges={"P": (3, 5), "C": (4, 6)},
        name="{B} x {gh*gw} patches of {C:channel}, patch_size {P}, image {gh*P} x {gw*P}",
        **EXACT,
    ),
    picture=drawing.draw_laid_patches,
    proves={
        "values": "every pixel is back in its place",
        "other sizes": "also for squares, a batch of one, patches of one pixel and float64",
    },
    left_open={
        "no error is asked for where the patches do not fill the image": (
            "H % P or gh",
            "if W % P or",
            "ValueError",
            "H % P and W",
            "P or length",
            "gh * gw < N",
            "gh * gw > N",
            "TypeError(...)",
            "length % (P / P)",
            "length % (P // P)",
            "length % P:",
            "gh * gw != N:",
        ),
    },
    special="len(patches) == 1; patches.shape[1] == 1; patch_size == 1; "
    "image_size[0] == image_size[1]; image_size[0] == patch_size; image_size[1] == patch_size; "
    "patches.shape[2] == patch_size ** 2",
)
