import math

import torch

from vitedu.checks.kit import FIRST_OF_BATCH, USUAL, Checker, Mistake, also, families, shaped

ROW = "weights[:, :, 0, -gh * gw :]"
MISTAKES = (
    Mistake(
        "column_of_class_token",
        "the column of the class token is taken, not its row",
        "weights[:, :, query, key] with the class token as the query",
        "The column says how much every patch looks at the class token. The question is the other way round.",
        "The query stands before the key: look at the order of the last two indices.",
        {ROW: "weights[:, :, -gh * gw :, 0]"},
    ),
    Mistake(
        "class_token_kept",
        "the first N tokens are taken, the class token among them",
        "N patches, without token 0",
        "Every patch then shows the weight of its neighbour to the left.",
        "The patches are the last N tokens.",
        {"-gh * gw :": ": gh * gw"},
    ),
    Mistake(
        "row_of_last_token",
        "the row of the last token is taken",
        "the row of the class token, token 0",
        "The last token is a patch at the bottom right.",
        "Look at the index of the query.",
        {"0, -gh": "-1, -gh"},
    ),
    Mistake(
        "row_of_first_patch",
        "the row of the first patch is taken",
        "the row of the class token, token 0",
        "Token 1 is the patch at the top left.",
        "Look at the index of the query.",
        {"0, -gh": "1, -gh"},
    ),
    Mistake(
        "received",
        "the weights are averaged over all queries",
        "the row of one query, the class token",
        "That mean says how much a patch is looked at by everybody.",
        "Pick one row of every matrix.",
        {ROW: "weights.mean(dim=2)[:, :, -gh * gw :]"},
    ),
    Mistake(
        "renormalised",
        "the weights are divided by their sum",
        "weights as they are, with a sum below 1",
        "What stays with the class token itself would be hidden.",
        "Leave out the division.",
        {
            ROW: "(weights[:, :, 0, -gh * gw :] / weights[:, :, 0, -gh * gw :].sum(dim=-1, keepdim=True))"
        },
    ),
    Mistake(
        "scaled_to_largest",
        "every map is divided by its largest weight",
        "weights as they are",
        "An even map would then look like a decided one.",
        "Leave the scale to the picture.",
        {
            ROW: "(weights[:, :, 0, -gh * gw :] / weights[:, :, 0, -gh * gw :].amax(dim=-1, keepdim=True))"
        },
    ),
    Mistake(
        "softmax_again",
        "softmax is applied to weights",
        "weights as they are",
        "They went through softmax already; a second one makes them nearly even.",
        "Take the softmax away.",
        {ROW: ROW + ".softmax(dim=-1)"},
    ),
    Mistake(
        "heads_averaged",
        "the heads are averaged",
        "one map for every head",
        "Heads differ, and the mean hides it.",
        "The result has an axis of heads.",
        {ROW: "weights[:, :, 0, -gh * gw :].mean(dim=1, keepdim=True)"},
        also=({ROW: "weights.mean(dim=1)[:, 0, -gh * gw :]"},),
    ),
    families.GRID_TURNED.by({"(gh, gw))": "(gw, gh))"}),
    families.DOWN_THE_COLUMNS.by({"(gh, gw))": "(gw, gh)).transpose(-2, -1)"}),
    Mistake(
        "upside_down",
        "the map stands on its head",
        "the first patches in the top row",
        "Row 0 of a map is its top row.",
        "Look for a flip.",
        {"(gh, gw))": "(gh, gw)).flip(-2)"},
    ),
    Mistake(
        "registers_taken",
        "all that follows token 0 is taken for patches",
        "the last N tokens",
        "Registers may stand between the class token and the patches.",
        "Count from the end, or from T - N.",
        {"return": "T = 1 + gh * gw\nweights = weights[:, :, :T, :T]\nreturn"},
        also=({"-gh * gw :": "1:"},),
        part="other sizes",
    ),
    FIRST_OF_BATCH.by({ROW: "weights[:1].expand_as(weights)[:, :, 0, -gh * gw :]"}),
)


def by_reshape(weights, grid_size):
    return weights[:, :, 0, -math.prod(grid_size) :].reshape(*weights.shape[:2], *grid_size)


def by_loops(weights, grid_size):
    gh, gw = grid_size
    first = weights[..., 0, -gh * gw :].unbind(-1)
    return torch.stack([torch.stack(first[i * gw : i * gw + gw], -1) for i in range(gh)], -2)


def by_selecting(weights, grid_size):
    (B, nh, T, _), (gh, gw) = weights.shape, grid_size
    return weights.select(2, 0).narrow(-1, T - gh * gw, gh * gw).view(B, nh, gh, gw)


def by_a_query(weights, grid_size):
    query = torch.zeros_like(weights[:, :, :, 0])
    query[..., 0] = 1
    found = torch.einsum("bht,bhts->bhs", query, weights)
    return found[..., -math.prod(grid_size) :].unflatten(-1, grid_size)


def by_splitting(weights, grid_size):
    N = math.prod(grid_size)
    _, patches = weights.unbind(dim=-2)[0].split([weights.shape[-1] - N, N], dim=-1)
    return torch.stack(patches.chunk(grid_size[0], dim=-1), dim=-2)


CHECKER = Checker(
    "class_attention",
    cases=shaped(
        "weights: B nh T T; grid_size = (gh, gw)",
        also("other sizes", "a square grid", gw="gh"),
        also("other sizes", "one head", nh=1),
        also("other sizes", "a long grid", gh=2, gw=9),
        also("other sizes", "a single row of patches", gh=1),
        also("other sizes", "a single column of patches", gw=1),
        also("other sizes", "three registers behind the class token", T="gh*gw + 4"),
        *USUAL,
        letters={"T": "gh*gw + 1"},
        values={"weights": lambda x: x.softmax(dim=-1)},
        name="{B:image}, {nh:head}, {gh} x {gw} patches",
    ),
    proves={
        "values": "the class token's weights on the patches, each at its place, not normalised again",
        "other sizes": "also for square grids, one row, one head, registers, a batch of one and float64",
    },
    special="len(weights) == 1; weights.shape[1] == 1; grid_size[0] == 1; grid_size[1] == 1; "
    "grid_size[0] == grid_size[1]",
)
