"""Checkers of the values that notebook 05 asks for."""

import math

from vitedu import inside as reference
from vitedu.checks.values import ValueChecker, ValueMistake

_PLACES = [(i, j) for i in range(8) for j in range(8)]


def _mean(pairs, apart=math.dist) -> float:
    distances = [apart(a, b) for a, b in pairs]
    return sum(distances) / len(distances)


_ALL = [(a, b) for a in _PLACES for b in _PLACES]

DISTANCE_BANK = (
    ValueMistake(
        "without_itself",
        _mean([(a, b) for a, b in _ALL if a != b]),
        "the patch itself is left out",
        "A head that looks everywhere alike also looks at the query's own patch.",
        "Count the distance 0 as well.",
    ),
    ValueMistake(
        "rows_and_columns_added",
        _mean(_ALL, lambda a, b: abs(a[0] - b[0]) + abs(a[1] - b[1])),
        "rows and columns are added",
        "The distance is the straight line.",
        "Use the root of the squares, or torch.cdist.",
    ),
    ValueMistake(
        "larger_of_the_two",
        _mean(_ALL, lambda a, b: max(abs(a[0] - b[0]), abs(a[1] - b[1]))),
        "only the longer side counts",
        "The distance is the straight line.",
        "Use the root of the squares, or torch.cdist.",
    ),
    ValueMistake(
        "squared",
        _mean(_ALL, lambda a, b: math.dist(a, b) ** 2),
        "squares of distances are averaged",
        "A square of 4 patches is no distance.",
        "Take the root before the mean.",
    ),
    ValueMistake(
        "root_of_mean_square",
        _mean(_ALL, lambda a, b: math.dist(a, b) ** 2) ** 0.5,
        "the root is taken after the mean",
        "A mean of distances and the root of a mean of squares differ.",
        "Take the root before the mean.",
    ),
    ValueMistake(
        "from_a_corner",
        _mean([((0, 0), b) for b in _PLACES]),
        "the query stands in a corner",
        "Every patch is a query.",
        "Average over all queries.",
    ),
    ValueMistake(
        "from_the_middle",
        _mean([((3.5, 3.5), b) for b in _PLACES]),
        "the query stands in the middle",
        "Every patch is a query.",
        "Average over all queries.",
    ),
    ValueMistake(
        "from_a_middle_patch",
        _mean([((4, 4), b) for b in _PLACES]),
        "the query stands in the middle",
        "Every patch is a query.",
        "Average over all queries.",
    ),
    ValueMistake(
        "one_axis",
        _mean(_ALL, lambda a, b: abs(a[0] - b[0])),
        "only rows count",
        "The grid has two directions.",
        "Use row and column.",
    ),
    ValueMistake(
        "pixels",
        4 * reference.uniform_distance,
        "the distance is in pixels",
        "The question is in patches.",
        "Divide by the patch size.",
    ),
    ValueMistake(
        "half_the_side",
        4.0,
        "half the side of the grid is taken",
        "The mean has to be computed: near pairs are more frequent than far ones.",
        "Average over all 64 x 64 pairs.",
        rtol=1e-4,
    ),
    ValueMistake(
        "largest",
        7 * 2**0.5,
        "the largest distance is given",
        "That is from corner to corner.",
        "Average over all 64 x 64 pairs.",
    ),
    ValueMistake(
        "flat_index",
        _mean([((a,), (b,)) for a in range(64) for b in range(64)]),
        "the numbers of the patches are subtracted",
        "Patch 8 stands right below patch 0.",
        "Turn a number into row and column first.",
    ),
    ValueMistake(
        "one_decimal",
        round(reference.uniform_distance, 1),
        "only one decimal is given",
        "Other answers round to the same.",
        "Give two decimals or more.",
        rtol=1e-6,
    ),
)

_U = 1 / 65
SELF_BANK = (
    ValueMistake(
        "diagonal_multiplied",
        (0.5 + 0.5 * _U) ** 4,
        "the diagonal entries are multiplied",
        "Content may leave the class token and come back in a later layer.",
        "Multiply the matrices, then read the entry.",
        rtol=1e-3,
    ),
    ValueMistake(
        "identity_only",
        0.5**4,
        "only the residual paths are counted",
        "Attention brings some of the class token back in every layer.",
        "Multiply the matrices, then read the entry.",
        rtol=1e-3,
    ),
    ValueMistake(
        "no_identity",
        _U,
        "the residual paths are left out",
        "Half of every layer is the identity.",
        "Call your rollout on four layers of 1/65.",
        rtol=1e-3,
    ),
    ValueMistake(
        "one_layer",
        0.5 + 0.5 * _U,
        "one layer is counted",
        "The model has four.",
        "Call your rollout on a list of four.",
        rtol=1e-3,
    ),
    ValueMistake(
        "three_layers",
        0.5**3 + (1 - 0.5**3) * _U,
        "three layers are counted",
        "The model has four.",
        "Call your rollout on a list of four.",
        rtol=1e-3,
    ),
    ValueMistake(
        "five_layers",
        0.5**5 + (1 - 0.5**5) * _U,
        "five layers are counted",
        "The model has four.",
        "Call your rollout on a list of four.",
        rtol=1e-3,
    ),
    ValueMistake(
        "no_class_token",
        0.5**4 + (1 - 0.5**4) / 64,
        "64 tokens are counted",
        "The class token is one of the tokens.",
        "There are 65 tokens.",
        rtol=1e-3,
    ),
    ValueMistake(
        "on_the_patches",
        1 - reference.rollout_self_share,
        "the share of the patches is given",
        "The question is what stays on the class token.",
        "Read entry [0, 0].",
        rtol=4e-3,
    ),
    ValueMistake(
        "one_patch",
        (1 - 0.5**4) * _U,
        "the share of one patch is given",
        "The question is what stays on the class token.",
        "Read entry [0, 0].",
        rtol=1e-3,
    ),
    ValueMistake(
        "not_halved",
        1 + 4 * _U,
        "the rows are not normalised",
        "No share exceeds 1.",
        "Halve after adding the identity.",
        rtol=1e-3,
    ),
    ValueMistake(
        "two_decimals",
        round(reference.rollout_self_share, 2),
        "only two decimals are given",
        "Other answers round to the same.",
        "Give three decimals or more.",
        rtol=1e-6,
    ),
    ValueMistake(
        "percent",
        100 * reference.rollout_self_share,
        "a percentage is given",
        "The scale runs from 0 to 1.",
        "Do not multiply by 100.",
    ),
)

CHECKERS = {
    "uniform_distance": ValueChecker(
        "uniform_distance",
        reference.uniform_distance,
        DISTANCE_BANK,
        rtol=2e-3,
        proves="the mean distance of two places on an 8 x 8 grid",
    ),
    "rollout_self_share": ValueChecker(
        "rollout_self_share",
        reference.rollout_self_share,
        SELF_BANK,
        rtol=2e-3,
        proves="what four halvings leave, and what uniform attention brings back",
    ),
}
