import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import DEFAULT, FLOAT64, ON_ACCELERATOR, Checker, Mistake, also, shaped

UNIT = "torch.nn.functional.normalize(pos_embed[0, -gh * gw :], dim=-1)"
MISTAKES = (
    Mistake(
        "dot_products",
        "dot products are taken, not cosines",
        "each position compared with itself gives 1",
        "A long vector would be similar to everything.",
        "Divide by both lengths.",
        {UNIT: "pos_embed[0, -gh * gw :]"},
    ),
    Mistake(
        "normalised_once",
        "only one of the two vectors is divided by its length",
        "each position compared with itself gives 1",
        "Row i would depend on the length of the others.",
        "Divide by both lengths.",
        {"unit @ unit.T": "unit @ pos_embed[0, -gh * gw :].T"},
    ),
    Mistake(
        "normalised_over_positions",
        "every feature is divided by its length over the positions",
        "every position divided by its own length",
        "A cosine compares two positions and knows no third.",
        "Look at the dim of the length: the features.",
        {"dim=-1": "dim=0"},
    ),
    Mistake(
        "one_length",
        "all positions are divided by one length",
        "every position divided by its own length",
        "Long positions would be more alike than short ones.",
        "Keep the length of each row: keepdim=True along the features.",
        {UNIT: "pos_embed[0, -gh * gw :] / pos_embed[0, -gh * gw :].norm()"},
    ),
    Mistake(
        "prefix_kept",
        "the first N rows are taken",
        "the last N rows, those of the patches",
        "Row 0 belongs to the class token, so every patch would get its neighbour's position.",
        "Drop the rows before the patches.",
        {"0, -gh * gw :": "0, : gh * gw"},
    ),
    Mistake(
        "last_dropped",
        "the last rows are dropped, not the first",
        "the last N rows, those of the patches",
        "The class token stands first.",
        "Drop the rows before the patches.",
        {"0, -gh * gw :": "0, :-1"},
    ),
    Mistake(
        "one_prefix_row",
        "exactly one row is dropped, whatever the number of tokens",
        "T - N rows before the patches",
        "Models with registers have more rows there, and some have none.",
        "Count from the end: the patches are the last N rows.",
        {"0, -gh * gw :": "0, 1:"},
        part="prefix rows",
        also=({"0, -gh * gw :": "0, int(pos_embed.shape[1] > gh * gw) :][: gh * gw"},),
    ),
    families.GRID_TURNED.by({"-1, (gh, gw))": "-1, (gw, gh))"}),
    families.DOWN_THE_COLUMNS.by({"-1, (gh, gw))": "-1, (gw, gh)).mT"}),
    Mistake(
        "left_flat",
        "the result is an N x N table",
        "(N, gh, gw), a map for every patch",
        "A picture needs rows and columns.",
        "Fold the last axis into the grid.",
        {".unflatten(-1, (gh, gw))": ""},
    ),
    Mistake(
        "first_axis_folded",
        "the first axis is folded, not the last",
        "(N, gh, gw): entry i is the map of patch i",
        "The maps would be cut into strips.",
        "Fold the last axis.",
        {"unflatten(-1": "unflatten(0"},
    ),
    Mistake(
        "centred",
        "the mean of all positions is subtracted first",
        "cosines of the positions as they are",
        "That is another measure: it compares what is special about each position.",
        "Use the rows as they are.",
        {
            UNIT: "torch.nn.functional.normalize(pos_embed[0, -gh * gw :] - pos_embed[0, -gh * gw :].mean(dim=0), dim=-1)"
        },
    ),
    Mistake(
        "correlation",
        "the mean of each row is subtracted first",
        "cosines of the positions as they are",
        "That is a correlation.",
        "Use the rows as they are.",
        {
            UNIT: "torch.nn.functional.normalize(pos_embed[0, -gh * gw :] - pos_embed[0, -gh * gw :].mean(dim=1, keepdim=True), dim=-1)"
        },
    ),
    Mistake(
        "distances",
        "distances are returned",
        "cosines: 1 for equal directions",
        "A distance is 0 where a similarity is 1.",
        "Use a product, not a difference.",
        {"(unit @ unit.T)": "torch.cdist(unit, unit)"},
    ),
    Mistake(
        "one_minus",
        "one minus the cosine is returned",
        "cosines: 1 for equal directions",
        "That is a distance.",
        "Leave out the 1 -.",
        {"(unit @ unit.T)": "(1 - unit @ unit.T)"},
    ),
    Mistake(
        "absolute",
        "the sign is lost",
        "cosines from -1 to 1",
        "Opposite directions would count as alike.",
        "Look for abs or a square.",
        {"(unit @ unit.T)": "(unit @ unit.T).abs()"},
    ),
    Mistake(
        "softmax",
        "a softmax runs over the cosines",
        "cosines from -1 to 1",
        "Similarities share nothing, so nothing has to sum to 1.",
        "Leave out the softmax.",
        {"(unit @ unit.T)": "(unit @ unit.T).softmax(dim=-1)"},
    ),
)


def by_torch(pos_embed, grid_size):
    rows = pos_embed[0, pos_embed.shape[1] - grid_size[0] * grid_size[1] :]
    return F.cosine_similarity(rows[:, None], rows[None], dim=-1).reshape(-1, *grid_size)


def by_lengths(pos_embed, grid_size):
    gh, gw = grid_size
    rows = pos_embed[0][-(gh * gw) :]
    lengths = rows.norm(dim=1)
    return (rows @ rows.T / (lengths[:, None] * lengths)).view(gh * gw, gh, gw)


def by_loops(pos_embed, grid_size):
    gh, gw = grid_size
    rows = list(pos_embed.squeeze(0).unbind(0))[-gh * gw :]
    units = [row / row.square().sum().sqrt() for row in rows]
    return torch.stack([torch.stack([(a * b).sum() for b in units]).reshape(gh, gw) for a in units])


def by_einsum(pos_embed, grid_size):
    grid = pos_embed.flip(1)[:, : grid_size[0] * grid_size[1]].flip(1).unflatten(1, grid_size)
    grid = grid * torch.einsum("bijd,bijd->bij", grid, grid)[..., None] ** -0.5
    return torch.einsum("bijd,bkld->ijkl", grid, grid).flatten(0, 1)


def in_double(pos_embed, grid_size):
    gh, gw = grid_size
    unit = F.normalize(pos_embed.double()[:, -gh * gw :], dim=2)
    return torch.bmm(unit, unit.mT)[0].reshape(gh * gw, gh, gw).to(pos_embed.dtype)


def _positions(x: torch.Tensor) -> torch.Tensor:
    """Make positions of unlike lengths, with a mean of their own; the last two point away from each other."""
    x = x * (0.3 + torch.arange(x.shape[1]).cos().abs()[:, None].to(x)) + 0.4
    return torch.cat([x[:, :-1], 0.1 * x[:, -1:] - x[:, -2:-1]], dim=1)


CHECKER = Checker(
    "position_similarity",
    cases=shaped(
        "pos_embed: 1 T D; grid_size = (gh, gw)",
        also("prefix rows", "five tokens before the patches", T="gh*gw + 5"),
        also("prefix rows", "more tokens before the patches than patches", T="2*gh*gw + 1"),
        also("prefix rows", "no token before the patches", T="gh*gw"),
        also("other sizes", "a square grid", gw="gh"),
        also("other sizes", "a single row of patches", gh=1),
        also("other sizes", "a single column of patches", gw=1),
        also(
            "other sizes",
            "small positions",
            values={"pos_embed": lambda x: 1e-3 * _positions(x)},
            rtol=5e-3,
        ),
        FLOAT64,
        ON_ACCELERATOR,
        letters={"T": "gh*gw + 1"},
        values={"pos_embed": _positions},
        name="{gh} x {gw} patches, positions of {D}",
    ),
    proves={
        "values": "cosines of every patch position with every other, as maps",
        "prefix rows": "however many rows stand before those of the patches",
        "other sizes": "also for a square grid, one row and float64",
    },
    equivalent={
        "there is one table of positions": ("[-1, -gh * gw:]",),
        DEFAULT: ("(pos_embed[0, -gh * gw:])",),
    },
    special="grid_size[0] == grid_size[1]; grid_size[0] == 1; grid_size[1] == 1; "
    "pos_embed.shape[1] == grid_size[0] * grid_size[1] + 1",
)
