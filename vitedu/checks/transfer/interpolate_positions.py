import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import FLOAT64, ON_ACCELERATOR, Checker, Mistake, also, shaped

GRID = "patches.reshape(1, side, side, D).permute(0, 3, 1, 2)"
MODE = 'mode="bicubic", antialias=antialias'
BACK = "grid.flatten(2).transpose(1, 2)"
JOINED = "torch.cat([prefix, patches], dim=1)"
SPLIT = "pos_embed[:, :num_prefix_tokens], pos_embed[:, num_prefix_tokens:]"
ONE_ROW = {SPLIT: "pos_embed[:, :1], pos_embed[:, 1:]"}
NO_SQUARE = "if side * side != N:"  # of what raises where the rows make no square

MISTAKES = (
    Mistake(
        "prefix_stretched",
        "the rows of the prefix are stretched with the patches",
        "prefix rows untouched",
        "The class token stands for no place; every patch would move by one.",
        "Split off the first num_prefix_tokens rows.",
        {
            SPLIT: "pos_embed[:, :num_prefix_tokens], pos_embed[:, : pos_embed.shape[1] - num_prefix_tokens]"
        },
    ),
    Mistake(
        "one_prefix_row",
        "one row is taken for the prefix, whatever num_prefix_tokens says",
        "num_prefix_tokens rows untouched",
        "Models with registers have more, models that average have none.",
        "Use the argument.",
        ONE_ROW,
        part="prefix rows",
        also=(
            ONE_ROW | {NO_SQUARE: "if False:"},
            ONE_ROW
            | {NO_SQUARE: "if False:", GRID: "patches.transpose(1, 2).unflatten(2, (side, side))"},
            {
                SPLIT: "pos_embed[:, :1], pos_embed[:, 1 : 1 + math.isqrt(pos_embed.shape[1] - 1) ** 2]"
            },
        ),
    ),
    Mistake(
        "prefix_left_out",
        "the rows of the prefix are missing",
        "prefix first, then the patches",
        "The class token would lose its position.",
        "Join both parts at the end.",
        {JOINED: "patches"},
        also=({JOINED: "patches", "return pos_embed": "return patches"},),
    ),
    Mistake(
        "prefix_last",
        "the rows of the prefix stand behind the patches",
        "prefix first, then the patches",
        "The class token would get the position of a patch.",
        "Look at the order in cat.",
        {JOINED: "torch.cat([patches, prefix], dim=1)"},
    ),
    Mistake(
        "prefix_zero",
        "the rows of the prefix are set to 0",
        "prefix rows untouched",
        "They were learned, too.",
        "Keep them.",
        {JOINED: "torch.cat([torch.zeros_like(prefix), patches], dim=1)"},
    ),
    Mistake(
        "bilinear",
        "the values between are bilinear",
        "bicubic, as in DeiT and timm",
        "Published results use bicubic.",
        "Look at mode.",
        {MODE: 'mode="bilinear"'},
    ),
    Mistake(
        "nearest",
        "the nearest place is copied",
        "bicubic, as in DeiT and timm",
        "Neighbours would share one position.",
        "Look at mode.",
        {MODE: 'mode="nearest"'},
        also=({MODE: 'mode="nearest-exact"'},),
    ),
    Mistake(
        "area",
        "places are averaged over areas",
        "bicubic, as in DeiT and timm",
        "Published results use bicubic.",
        "Look at mode.",
        {MODE: 'mode="area"'},
    ),
    Mistake(
        "corners_aligned",
        "the corners of both grids are laid on each other",
        "align_corners=False",
        "A patch has a size: the middle of the first patch is not the corner of the image.",
        "Leave out align_corners.",
        {MODE: 'mode="bicubic", align_corners=True'},
    ),
    Mistake(
        "antialiased",
        "the kernel is widened against aliasing",
        "no antialias",
        "It is another kernel, when enlarging too.",
        "Leave out antialias.",
        {MODE: 'mode="bicubic", antialias=True'},
    ),
    Mistake(
        "grid_turned",
        "rows and columns have changed places",
        "(gh, gw): patches down, then across",
        "A square new grid would hide it.",
        "Look at the order in size.",
        {"size = tuple(new_grid_size)": "size = tuple(new_grid_size)[::-1]"},
    ),
    Mistake(
        "transposed",
        "the new places are numbered down the columns",
        "row by row, as patchify numbers patches",
        "Each position would stand at another patch.",
        "Look at the axes before you flatten.",
        {BACK: "grid.mT.flatten(2).transpose(1, 2)"},
    ),
    Mistake(
        "reshaped",
        "features and places are mixed by a reshape",
        "(1, N, D) -> (1, D, side, side) with a permute",
        "reshape keeps the order in memory, and there the features of one place stand together.",
        "First split N into rows and columns, then move D to the front.",
        {GRID: "patches.reshape(1, D, side, side)"},
        also=(
            {
                GRID: "patches.reshape(1, D, side, side)",
                "if (side, side) == tuple(new_grid_size):": "if N == 0:",
            },
        ),
    ),
    Mistake(
        "reshaped_back",
        "places and features are mixed on the way back",
        "(1, D, gh, gw) -> (1, gh*gw, D) with a transpose",
        "reshape keeps the order in memory.",
        "Flatten the two axes of the grid, then exchange them with D.",
        {BACK: "grid.reshape(1, -1, D)"},
    ),
    Mistake(
        "along_the_sequence",
        "the rows are stretched as one line",
        "a grid in two directions",
        "The end of a row is no neighbour of the next row's start.",
        "Fold the patches into a square first.",
        {
            "grid = F.interpolate(grid, size=size, "
            + MODE
            + ")": "grid = F.interpolate(grid.flatten(2)[:, :, None], size=(1, size[0] * size[1]), "
            + MODE
            + ")"
        },
    ),
    families.SQUARE_ONLY.by(
        {"size = tuple(new_grid_size)": "size = (new_grid_size[0], new_grid_size[0])"},
        name="the new grid is taken to be square",
        look="Use both numbers.",
    ),
    Mistake(
        "cropped",
        "the new grid is cut out of the old one, or repeated",
        "old places stretched over the new grid",
        "The picture shows the same, with more patches.",
        "Use F.interpolate.",
        {
            "grid = F.interpolate(grid, size=size, "
            + MODE
            + ")": "grid = grid.repeat(1, 1, *size)[:, :, : size[0], : size[1]]"
        },
    ),
    Mistake(
        "scaled_to_old_length",
        "the new positions are scaled",
        "the values as they come from bicubic",
        "Nothing else is asked for.",
        "Leave the scale out.",
        {BACK: BACK + " * (patches.norm() / grid.norm())"},
    ),
    Mistake(
        "enlarging_only",
        "a smaller grid is left as it was",
        "any new grid",
        "Models are used at smaller sizes, too.",
        "Leave the condition out.",
        part="other sizes",
        build=lambda: _enlarges_only,
    ),
)


def _enlarges_only(pos_embed, new_grid_size, num_prefix_tokens=1):
    N = pos_embed.shape[1] - num_prefix_tokens
    if new_grid_size[0] * new_grid_size[1] < N:
        return pos_embed
    return by_steps(pos_embed, new_grid_size, num_prefix_tokens)


def by_steps(pos_embed, new_grid_size, num_prefix_tokens=1):
    prefix = pos_embed[:, :num_prefix_tokens]
    rest = pos_embed[:, num_prefix_tokens:]
    side = round(rest.shape[1] ** 0.5)
    image = rest.transpose(1, 2).unflatten(2, (side, side))
    image = F.interpolate(image, tuple(new_grid_size), mode="bicubic", align_corners=False)
    return torch.cat((prefix, image.flatten(2).mT), dim=1)


def by_resize(pos_embed, new_grid_size, num_prefix_tokens=1):
    *prefix, patches = pos_embed[0].tensor_split([num_prefix_tokens])
    side = int(len(patches) ** 0.5 + 0.5)
    maps = patches.T.reshape(1, -1, side, side)
    maps = torch.nn.Upsample(size=list(new_grid_size), mode="bicubic")(maps)
    return torch.vstack([*prefix, maps[0].permute(1, 2, 0).flatten(0, 1)]).unsqueeze(0)


def _weights(old, new, like):
    """Write the kernel of one axis as a matrix (new, old)."""
    a, matrix = -0.75, torch.zeros(new, old, dtype=torch.float64)
    for i in range(new):
        centre = (i + 0.5) * old / new - 0.5
        left = int(centre // 1)
        for j in range(left - 1, left + 3):
            t = abs(centre - j)
            if t <= 1:
                weight = (a + 2) * t**3 - (a + 3) * t**2 + 1
            else:
                weight = a * (t**3 - 5 * t**2 + 8 * t - 4)
            matrix[i, min(max(j, 0), old - 1)] += weight
    return matrix.to(like)


def by_matrices(pos_embed, new_grid_size, num_prefix_tokens=1):
    parts = [num_prefix_tokens, pos_embed.shape[1] - num_prefix_tokens]
    prefix, patches = pos_embed.split(parts, 1)
    side = int(patches.shape[1] ** 0.5)
    down, across = (_weights(side, size, patches) for size in new_grid_size)
    grid = patches.reshape(side, side, -1)
    new = torch.einsum("ai,bj,ijd->abd", down, across, grid)
    return torch.cat([prefix, new.reshape(1, -1, grid.shape[-1])], dim=1)


def by_feature(pos_embed, new_grid_size, num_prefix_tokens=1):
    count = pos_embed.shape[1] - num_prefix_tokens
    side = next(n for n in range(1, count + 1) if n * n == count)
    images = pos_embed[0, num_prefix_tokens:].T.reshape(-1, 1, side, side)  # one for each feature
    images = F.interpolate(images, size=tuple(new_grid_size), mode="bicubic")
    return torch.cat([pos_embed[0, :num_prefix_tokens], images.flatten(1).T])[None]


CHECKER = Checker(
    "interpolate_positions",
    cases=shaped(
        "pos_embed: 1 side*side+1 D; new_grid_size = (gh, gw)",
        also(
            "prefix rows",
            "no row before the patches",
            shapes="pos_embed: 1 side*side D; new_grid_size = (gh, gw); num_prefix_tokens = 0",
        ),
        also(
            "prefix rows",
            "five rows before the patches, by keyword",
            shapes="pos_embed: 1 side*side+5 D; new_grid_size = (gh, gw); num_prefix_tokens = 5",
            keywords=("num_prefix_tokens",),
            side=2,
        ),
        also("other sizes", "a square new grid", gw="gh"),
        also("other sizes", "smaller one way, larger the other", gh="side-1", gw="side+2"),
        also("other sizes", "a smaller grid", gh="side-1", gw="side-2"),
        also("other sizes", "as many patches in another shape", side=4, gh=2, gw=8),
        also("other sizes", "the same grid", gh="side", gw="side"),
        also("other sizes", "sizes whose ratio is rounded", side=11, gh=15, gw=13),
        also("other sizes", "a grid of one patch", side=1),
        also("other sizes", "to a single patch", gh=1, gw=1),
        FLOAT64,
        ON_ACCELERATOR,
        ranges={"side": (4, 5), "gh": (6, 9), "gw": (6, 9), "D": (2, 3)},
        name="{side} x {side} patches to {gh} x {gw}, {D} features",
    ),
    proves={
        "values": "bicubic between the places of the old grid, row by row, the class token's row kept",
        "prefix rows": "with as many rows before the patches as the argument says",
        "other sizes": "larger, smaller, square or not, the same grid, a single patch, and float64",
    },
    special="num_prefix_tokens == 1; num_prefix_tokens == 0",
    equivalent={
        "there is one table of positions": ("(-1, side, side, D)",),
        families.DEFAULT: (
            "grid = F.interpolate(grid, size=size, mode='bicubic')",
            "size = new_grid_size",
        ),
        "bicubic gives the old values back where the size is the same": (
            "return pos_embed",
            "if (side,)",
            "(side, side) == tuple()",
            "(side, side) == new_grid_size",
        ),
    },
    left_open={
        "the old grid is square, so no error is asked for": (
            "ValueError",
            "TypeError(...)",
            "side * side < N",
            "side * side > N",
        ),
    },
)
