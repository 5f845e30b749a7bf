import torch

from vitedu import patches as reference
from vitedu.checks.kit import NEGATIVE_DIVISOR, Case, Checker, Mistake, distinct, draw, families
from vitedu.checks.patches.sincos_positions import by_loops, by_phase, by_slices


def cases(g: torch.Generator) -> list[Case]:
    """Draw grids that are not square, the wide one first, and one that is."""

    def case(gh, gw, D, part="other sizes", name="grid {gh} x {gw}, embed_dim {D}", **rest):
        args, name = {"grid_size": (gh, gw), "embed_dim": D}, name.format(gh=gh, gw=gw, D=D)
        return Case(name, args, part=part, rtol=0, atol=2e-4, **rest)

    gh, gw = sorted(distinct(g, 2, 2, 6))
    D = 4 * draw(g, 2, 5)
    refused = ("errors", "embed_dim {D} is not divisible by 4")
    return [
        case(gh, gw, D, "values"),
        case(gw, gh, D),
        case(gh, gh, D),
        case(1, gw, D),
        case(gh, 1, D),
        case(gh, gw, 4),
        # half of it, cut off, is even: the table of one direction has nothing to refuse
        case(gh, gw, D + 1, *refused, raises="ValueError"),
        case(gh, gw, D + 2, *refused, raises="ValueError"),
    ]


MISTAKES = (
    Mistake(
        "column_first",
        "the column's code comes first",
        "the first D/2 columns encode the row",
        "Rows before columns, as everywhere in this course.",
        "Look at the order of the two halves in torch.cat.",
        {
            "[rows.repeat_interleave(gw, dim=0), columns.repeat(gh, 1)]": "[columns.repeat(gh, 1), rows.repeat_interleave(gw, dim=0)]"
        },
    ),
    Mistake(
        "cells_by_column",
        "the cells run down the columns of the grid",
        "cells row by row, as patchify numbers them",
        "Cell 1 stands to the right of cell 0.",
        "The row code repeats gw times in a row; the column code cycles.",
        {
            "rows.repeat_interleave(gw, dim=0), columns.repeat(gh, 1)": "rows.repeat(gw, 1), columns.repeat_interleave(gh, dim=0)"
        },
    ),
    Mistake(
        "halves_of_a_longer_code",
        "a code of D columns is cut to its first half",
        "sincos_positions with D/2 columns for each",
        "The slow waves would be missing.",
        "Ask for D/2 columns.",
        {
            f"{side} = sincos_positions({n}, embed_dim // 2)": f"{side} = sincos_positions({n}, embed_dim)[:, : embed_dim // 2]"
            for side, n in (("rows", "gh"), ("columns", "gw"))
        },
    ),
    Mistake(
        "both_repeated_alike",
        "row and column codes are repeated in the same way",
        "every pair of row and column once",
        "Some cells would share a code.",
        "One of the two has to stay while the other runs.",
        {"repeat_interleave(gw, dim=0)": "repeat(gw, 1)"},
    ),
    Mistake(
        "one_long_row",
        "the grid is coded as one long row",
        "row and column coded apart",
        "The cell below would look far away.",
        "Use sincos_positions twice, with D/2 columns each.",
        {"gh, gw = grid_size": "gh, gw = grid_size\nreturn sincos_positions(gh * gw, embed_dim)"},
    ),
    Mistake(
        "grid_is_width_height",
        "the two numbers of the grid have changed places",
        "cell i in row i // gw and column i % gw, with grid_size = (gh, gw)",
        "It is right for square grids only.",
        "Look at the order in which you unpack grid_size, and at which number you divide or repeat by.",
        {"gh, gw = grid_size": "gw, gh = grid_size"},
    ),
    Mistake(
        "added",
        "row and column codes are added",
        "row code beside column code",
        "A sum cannot tell (2, 5) from (5, 2).",
        "Concatenate along the last axis.",
        {"return torch.cat(": "return (lambda x, dim: torch.cat([x[0] + x[1]] * 2, dim))("},
        also=(
            {
                "rows = sincos_positions(gh, embed_dim // 2)": "rows = sincos_positions(gh, embed_dim)",
                "columns = sincos_positions(gw, embed_dim // 2)": "columns = sincos_positions(gw, embed_dim)",
                "return torch.cat(": "return (lambda x, dim: x[0] + x[1])(",
            },
        ),
    ),
    Mistake(
        "halves_interleaved",
        "row and column codes take turns column by column",
        "the row's D/2 columns, then the column's",
        "The first half belongs to the row alone.",
        "Concatenate; do not stack.",
        {"return torch.cat(": "return (lambda x, dim: torch.stack(x, dim=-1).flatten(1))("},
    ),
    Mistake(
        "not_flattened",
        "the grid keeps its two axes",
        "one row for each cell, (gh*gw, D)",
        "The tokens of an image stand in one line.",
        "Flatten the two axes of the grid.",
        {
            "return torch.cat(": "return (lambda x, dim: torch.cat(x, dim=dim).unflatten(0, tuple(grid_size)))("
        },
    ),
    Mistake(
        "sines_then_cosines",
        "in each half all sines come first",
        "each half as sincos_positions gives it",
        "The two notebooks' tables would not match.",
        "Call sincos_positions for each half.",
        {
            "return torch.cat(": "rows, columns = (torch.cat([x[:, 0::2], x[:, 1::2]], dim=1) for x in (rows, columns))\nreturn torch.cat("
        },
    ),
    Mistake(
        "positions_from_one",
        "rows and columns count from 1",
        "row 0 and column 0 come first",
        "Every cell is one late.",
        "Call sincos_positions(gh, ...) and use it from its first row.",
        {
            "rows = sincos_positions(gh, embed_dim // 2)": "rows = sincos_positions(gh + 1, embed_dim // 2)[1:]",
            "columns = sincos_positions(gw, embed_dim // 2)": "columns = sincos_positions(gw + 1, embed_dim // 2)[1:]",
        },
    ),
    families.DOUBLE_TABLE.by(
        {},
        build=lambda: (
            lambda grid_size, embed_dim: reference.sincos_positions_2d(
                grid_size, embed_dim
            ).double()
        ),
    ),
)


def _four_divides(D):
    if D % 4:
        raise ValueError(f"{D} is not divisible by 4")


def by_broadcast(grid_size, embed_dim):
    _four_divides(embed_dim)
    gh, gw = grid_size
    rows = by_slices(gh, embed_dim // 2)[:, None].expand(gh, gw, -1)
    columns = by_slices(gw, embed_dim // 2)[None].expand(gh, gw, -1)
    return torch.cat([rows, columns], dim=-1).reshape(gh * gw, embed_dim)


def by_index(grid_size, embed_dim):
    _four_divides(embed_dim)
    gh, gw = grid_size
    cell = torch.arange(gh * gw)
    half = by_phase(max(gh, gw), embed_dim // 2)
    return torch.hstack([half[cell // gw], half[cell % gw]])


def by_meshgrid(grid_size, embed_dim):
    _four_divides(embed_dim)
    y, x = torch.meshgrid(torch.arange(grid_size[0]), torch.arange(grid_size[1]), indexing="ij")
    rate = 10000.0 ** (-torch.arange(0, embed_dim // 2, 2).double() / (embed_dim // 2))
    angle = torch.stack([y.flatten(), x.flatten()], dim=1).double()[:, :, None] * rate
    return torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).reshape(-1, embed_dim).float()


def by_pairs(grid_size, embed_dim):
    _four_divides(embed_dim)
    rows, columns = (by_loops(size, embed_dim // 2) for size in grid_size)
    return torch.stack([torch.cat([r, c]) for r in rows for c in columns])


CHECKER = Checker(
    "sincos_positions_2d",
    proves={
        "values": "every cell's row code, then its column code",
        "other sizes": "also for square grids, one row and four columns",
        "errors": "an embed_dim that 4 does not divide is refused",
    },
    equivalent={
        NEGATIVE_DIVISOR: ("if embed_dim % -4:",),
        "an even number halved is whole, as a float too": ("embed_dim / 2",),
    },
    special="grid_size[0] == 1; grid_size[1] == 1; grid_size[0] == grid_size[1]; embed_dim == 4",
)
