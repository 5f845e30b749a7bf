import torch

from vitedu.checks.kit import NEW_AXIS, Checker, Mistake, also, shaped

DOWN = "rows[:, None] - rows[None, :] + gh - 1"
ACROSS = "columns[:, None] - columns[None, :] + gw - 1"
NUMBER = "down * (2 * gw - 1) + across"

MISTAKES = (
    Mistake(
        "negative",
        "the offsets are not moved to start at 0",
        "numbers from 0 up",
        "A negative index reads the table from its end, without an error.",
        "Add gh - 1 to one offset and gw - 1 to the other.",
        {DOWN: "rows[:, None] - rows[None, :]", ACROSS: "columns[:, None] - columns[None, :]"},
    ),
    Mistake(
        "one_too_far",
        "the numbers begin at 1 or later",
        "numbers from 0 up",
        "The largest would stand behind the end of the table.",
        "The smallest offset is -(gh - 1).",
        {
            DOWN: "rows[:, None] - rows[None, :] + gh",
            ACROSS: "columns[:, None] - columns[None, :] + gw",
        },
    ),
    Mistake(
        "key_minus_query",
        "the offset is taken from query to key",
        "row i minus row j, column i minus column j",
        "The table would be read backwards, so published tables do not fit.",
        "Look at which token is subtracted from which.",
        {
            DOWN: "rows[None, :] - rows[:, None] + gh - 1",
            ACROSS: "columns[None, :] - columns[:, None] + gw - 1",
        },
    ),
    Mistake(
        "height_for_width",
        "a row of the table has 2*gh - 1 entries",
        "2*gw - 1 offsets across",
        "It goes unnoticed where the grid is square.",
        "Count the offsets between columns.",
        {"(2 * gw - 1)": "(2 * gh - 1)"},
    ),
    Mistake(
        "rows_too_short",
        "a row of the table has only gw entries",
        "2*gw - 1 offsets across",
        "Different offsets then share a number.",
        "Offsets run from -(gw - 1) to gw - 1.",
        {"(2 * gw - 1)": "gw"},
    ),
    Mistake(
        "offsets_added",
        "the two offsets are only added",
        "one number for each pair of offsets",
        "One down and two down share a number with other pairs.",
        "Multiply the offset of rows by the length of a row of the table.",
        {"down * (2 * gw - 1)": "down"},
    ),
    Mistake(
        "columns_first",
        "the table has a row for each offset across",
        "a row for each offset down",
        "Published tables have the offsets down as rows.",
        "Look at which offset is multiplied.",
        {NUMBER: "across * (2 * gh - 1) + down"},
    ),
    Mistake(
        "distances",
        "distances are numbered, not offsets",
        "left and right differ",
        "A token could not tell what is above it from what is below.",
        "Keep the sign of the difference.",
        {
            DOWN: "(rows[:, None] - rows[None, :]).abs() + gh - 1",
            ACROSS: "(columns[:, None] - columns[None, :]).abs() + gw - 1",
        },
        also=(
            {
                DOWN: "(rows[:, None] - rows[None, :]).abs()",
                ACROSS: "(columns[:, None] - columns[None, :]).abs()",
            },
        ),
    ),
    Mistake(
        "distances_from_zero",
        "distances are numbered, not offsets",
        "left and right differ",
        "A token could not tell what is above it from what is below.",
        "Keep the sign of the difference.",
        {
            DOWN: "(rows[:, None] - rows[None, :]).abs()",
            ACROSS: "(columns[:, None] - columns[None, :]).abs()",
            "(2 * gw - 1)": "gw",
        },
    ),
    Mistake(
        "tokens_by_column",
        "the tokens are counted down the columns",
        "token 1 stands to the right of token 0",
        "The rest of the course counts row by row.",
        "Look at repeat and repeat_interleave.",
        {
            "repeat_interleave(gw)": "repeat(gw)",
            "arange(gw).repeat(gh)": "arange(gw).repeat_interleave(gh)",
        },
    ),
    Mistake(
        "divided_by_height",
        "row and column of a token come from a division by gh",
        "token i stands in row i // gw, column i % gw",
        "It goes unnoticed where the grid is square.",
        "A row holds gw tokens.",
        {
            "torch.arange(gh).repeat_interleave(gw)": "torch.arange(gh * gw) // gh",
            "torch.arange(gw).repeat(gh)": "torch.arange(gh * gw) % gh",
        },
    ),
    Mistake(
        "from_one",
        "the numbers start at 1",
        "numbers from 0 up",
        "The largest number would lie outside the table.",
        "The offset (-(gh-1), -(gw-1)) has number 0.",
        {"return down": "return 1 + down"},
    ),
    Mistake(
        "pairs",
        "pairs of offsets come back",
        "one number for each pair of tokens",
        "The table of biases has one axis.",
        "Multiply one offset and add the other.",
        {NUMBER: "torch.stack([down, across], dim=-1)"},
    ),
    Mistake(
        "floats",
        "the numbers are floats",
        "whole numbers",
        "An index must be a whole number.",
        "Look for a division, or for a tensor made with zeros.",
        {"return down": "return 1.0 * down"},
    ),
)


def by_loops(grid_size):
    gh, gw = grid_size
    places = [divmod(i, gw) for i in range(gh * gw)]
    offsets = [[(r - s + gh - 1, c - d + gw - 1) for s, d in places] for r, c in places]
    return torch.tensor([[down * (2 * gw - 1) + across for down, across in row] for row in offsets])


def as_swin(grid_size):
    gh, gw = grid_size
    coords = torch.meshgrid(torch.arange(gh), torch.arange(gw), indexing="ij")
    coords = torch.stack(coords).flatten(1)
    relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous()
    relative[:, :, 0] += gh - 1
    relative[:, :, 1] += gw - 1
    relative[:, :, 0] *= 2 * gw - 1
    return relative.sum(-1)


def by_one_number(grid_size):
    gh, gw = grid_size
    number = (torch.arange(gh)[:, None] * (2 * gw - 1) + torch.arange(gw)).flatten()
    return number[:, None] - number + number[-1]


def by_windows_of_a_table(grid_size):
    gh, gw = grid_size
    table = torch.arange((2 * gh - 1) * (2 * gw - 1)).reshape(2 * gh - 1, 2 * gw - 1)
    places = [(i, j) for i in range(gh) for j in range(gw)]
    return torch.stack([table[i : i + gh, j : j + gw].flip(0, 1).flatten() for i, j in places])


def in_short_integers(grid_size):
    gh, gw = grid_size
    place = torch.arange(gh * gw, dtype=torch.int32)
    row, column = place // gw, place % gw
    down, across = (torch.sub(x[:, None], x) + n - 1 for x, n in ((row, gh), (column, gw)))
    return down * (2 * gw - 1) + across


CHECKER = Checker(
    "relative_position_index",
    cases=shaped(
        "grid_size = (gh, gw)",
        also("values", "", shapes="grid_size = (gw, gh)"),
        also("other sizes", "a square", gw="gh"),
        also("other sizes", "a table of more than 256 numbers", gh=9, gw=10),
        also("other sizes", "one row", gh=1),
        also("other sizes", "one column", gw=1),
        also("other sizes", "one token", gh=1, gw=1),
        ranges={"gh": (3, 6), "gw": (3, 6)},
        name="{gh} and {gw} tokens along the sides",
        driver="whole_numbers",
    ),
    proves={
        "values": "every offset has one number, that of published tables",
        "other sizes": "also for a square, one row, one column and one token",
    },
    equivalent={
        NEW_AXIS: (
            "[None,] + gh",
            "[None,] + gw",
            "columns + gw",
            "[:,] + gh - 1",
            "[:,] + gw - 1",
            "rows + gh - 1",
        ),
    },
    special="grid_size[0] == 1; grid_size[1] == 1; grid_size[0] == grid_size[1]",
)
