"""Checker of sincos_positions_2d: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import patches as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw
from vitedu.checks.probing import Case


def sincos_2d_cases(g: torch.Generator) -> list[Case]:
    """Draw grids that are not square, and one that is."""

    def case(gh, gw, D, **rest):
        return Case(
            f"grid {gh} x {gw}, embed_dim {D}",
            {"grid_size": (gh, gw), "embed_dim": D},
            rtol=0,
            atol=2e-4,
            **rest,
        )

    gh, gw = distinct(g, 2, 2, 6)
    D = 4 * draw(g, 2, 5)
    odd = D + 1  # half of it, cut off, is even: the table of one direction has nothing to refuse
    return [
        case(gh, gw, D),
        case(gw, gh, D, part="other sizes"),
        case(gh, gh, D, part="other sizes"),
        case(1, gw, D, part="other sizes"),
        case(gh, gw, 4, part="other sizes"),
        Case(
            f"embed_dim {odd} is not divisible by 4",
            {"grid_size": (gh, gw), "embed_dim": odd},
            part="errors",
            raises="ValueError",
        ),
        Case(
            f"embed_dim {D + 2} is not divisible by 4",
            {"grid_size": (gh, gw), "embed_dim": D + 2},
            part="errors",
            raises="ValueError",
        ),
    ]


def faulty_sincos_2d(mistakes: frozenset[str]):
    """Fill the table of a grid with the named mistakes made."""

    def sincos_positions_2d(grid_size, embed_dim):
        gh, gw = grid_size
        D = embed_dim
        if D % 4:
            return reference.sincos_positions_2d(grid_size, D)
        if "grid_is_width_height" in mistakes:
            gh, gw = gw, gh
        if "one_long_row" in mistakes:
            return reference.sincos_positions(gh * gw, D)
        rows, columns = (
            reference.sincos_positions(gh, D // 2),
            reference.sincos_positions(gw, D // 2),
        )
        if "sines_then_cosines" in mistakes:
            rows, columns = (torch.cat([x[:, 0::2], x[:, 1::2]], dim=1) for x in (rows, columns))
        if "positions_from_one" in mistakes:
            rows, columns = (
                reference.sincos_positions(gh + 1, D // 2)[1:],
                reference.sincos_positions(gw + 1, D // 2)[1:],
            )
        if "cells_by_column" in mistakes:
            halves = [rows.repeat(gw, 1), columns.repeat_interleave(gh, dim=0)]
        elif "both_repeated_alike" in mistakes:
            halves = [rows.repeat(gw, 1), columns.repeat(gh, 1)]
        else:
            halves = [rows.repeat_interleave(gw, dim=0), columns.repeat(gh, 1)]
        if "column_first" in mistakes:
            halves.reverse()
        if "halves_interleaved" in mistakes:
            return torch.stack(halves, dim=-1).flatten(1)
        if "added" in mistakes:
            return torch.cat([halves[0] + halves[1]] * 2, dim=1)
        return torch.cat(halves, dim=1)

    return sincos_positions_2d


SINCOS_2D_BANK = (
    Misconception(
        "column_first", "the column's code comes first", "the first D/2 columns encode the row",
        "Rows before columns, as everywhere in this course.", "Look at the order of the two halves in torch.cat.",
    ),
    Misconception(
        "cells_by_column", "the cells run down the columns of the grid", "cells row by row, as patchify numbers them",
        "Cell 1 stands to the right of cell 0.", "The row code repeats gw times in a row; the column code cycles.",
    ),
    Misconception(
        "both_repeated_alike", "row and column codes are repeated in the same way", "every pair of row and column once",
        "Some cells would share a code.", "One of the two has to stay while the other runs.",
    ),
    Misconception(
        "one_long_row", "the grid is coded as one long row", "row and column coded apart",
        "The cell below would look far away.", "Use sincos_positions twice, with D/2 columns each.",
    ),
    Misconception(
        "grid_is_width_height", "grid_size is read as (across, down)", "grid_size = (gh, gw), down first",
        "In torch the height comes first.", "Unpack it as gh, gw = grid_size.",
    ),
    Misconception(
        "added", "row and column codes are added", "row code beside column code",
        "A sum can not tell (2, 5) from (5, 2).", "Concatenate along the last axis.",
    ),
    Misconception(
        "halves_interleaved", "row and column codes take turns column by column", "the row's D/2 columns, then the column's",
        "The first half belongs to the row alone.", "Concatenate; do not stack.",
    ),
    Misconception(
        "sines_then_cosines", "in each half all sines come first", "each half as sincos_positions gives it",
        "The two notebooks' tables would not match.", "Call sincos_positions for each half.",
    ),
    Misconception(
        "positions_from_one", "rows and columns count from 1", "row 0 and column 0 come first", "Every cell is one late.",
        "Call sincos_positions(gh, ...) and use it from its first row.",
    ),
    Misconception(
        "double_table", "the table is float64", "float32, like every table made from sizes alone",
        "Added to float32 tokens it would turn all of them into float64.", "Finish with .float().",
        build=lambda: lambda grid_size, embed_dim: reference.sincos_positions_2d(grid_size, embed_dim).double(),
    ),
)  # fmt: skip

CHECKER = Checker(
    "sincos_positions_2d",
    reference.sincos_positions_2d,
    sincos_2d_cases,
    faulty_sincos_2d,
    SINCOS_2D_BANK,
    proves={
        "values": "every cell's row code, then its column code",
        "other sizes": "also for square grids, one row and four columns",
        "errors": "an embed_dim that 4 does not divide is refused",
    },
)
