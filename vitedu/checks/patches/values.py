"""Checkers of the values that notebook 01 asks for."""

from vitedu import patches as reference
from vitedu.checks.values import ValueChecker, ValueMistake

CHECKERS = {
    "tokens_at_224": ValueChecker(
        "tokens_at_224",
        reference.tokens_at_224,
        (
            ValueMistake(
                "no_class_token",
                196,
                "the class token is not counted",
                "The patches are only part of the sequence.",
                "The model puts one more token in front.",
            ),
            ValueMistake(
                "one_side",
                14,
                "one side of the grid is counted",
                "The grid has two sides.",
                "Multiply down by across.",
            ),
            ValueMistake(
                "one_side_and_token",
                15,
                "one side of the grid is counted",
                "The grid has two sides.",
                "Multiply down by across.",
            ),
            ValueMistake(
                "pixels",
                lambda v: v in (224 * 224, 224 * 224 + 1),
                "pixels are counted",
                "A token is a patch, not a pixel.",
                "Divide each side by the patch size.",
                example=224 * 224,
            ),
            ValueMistake(
                "values",
                768,
                "the width of a token is given",
                "That is how long one token is.",
                "Count the tokens.",
            ),
        ),
        proves="patches down times patches across, and the class token",
    ),
    "seam_neighbours": ValueChecker(
        "seam_neighbours",
        reference.seam_neighbours,
        (
            ValueMistake(
                "codes_swapped",
                reference.seam_neighbours[::-1],
                "the two codes are swapped",
                "The 1-D code knows one order: along the rows.",
                "The pair is (1-D code, 2-D code).",
            ),
            ValueMistake(
                "turned_round",
                tuple(-x for x in reference.seam_neighbours),
                "the first is taken from the second",
                "A positive number says that 7 is more like 8 than 0 is.",
                "Subtract the entry [0, 8] from the entry [7, 8].",
            ),
            ValueMistake(
                "seam_alone",
                (0.9662, 0.8356),
                "the cosines across the seam are given",
                "Alone they do not say which of the two neighbours is nearer.",
                "Subtract the entry [0, 8] from each.",
            ),
            ValueMistake(
                "step_alone",
                (0.7004, 0.9786),
                "the cosines of one step down are given",
                "Alone they do not say which of the two neighbours is nearer.",
                "Subtract each from the entry [7, 8].",
            ),
            ValueMistake(
                "ratios",
                (1.3793, 0.854),
                "the entries are divided",
                "A ratio of cosines says little where one of them is near 0.",
                "Subtract.",
            ),
            ValueMistake(
                "answers_not_numbers",
                lambda v: set(v) <= {True, False},
                "yes or no is given",
                "The question is by how much.",
                "Subtract the two entries, once for each code.",
                example=(1, 0),
            ),
        ),
        atol=0.006,  # two decimals are enough
        proves="the 1-D code joins the seam, the 2-D code does not",
    ),
    "stem_tokens": ValueChecker(
        "stem_tokens",
        reference.stem_tokens,
        (
            ValueMistake(
                "patch_tokens",
                196,
                "the tokens of patch size 16 are given",
                "Three halvings are a factor of 8, not 16.",
                "Run the stem and look at the grid.",
            ),
            ValueMistake(
                "with_class_token",
                785,
                "a class token is counted",
                "The stem alone adds none.",
                "Count the places of the grid.",
            ),
            ValueMistake(
                "one_side",
                28,
                "one side of the grid is given",
                "The grid has two sides.",
                "Multiply down by across.",
            ),
            ValueMistake(
                "divided_by_six",
                37 * 37,
                "the strides are added, not multiplied",
                "Each convolution halves what it gets.",
                "Three halvings in a row divide by 8.",
            ),
        ),
        proves="three convolutions of stride 2 leave a grid eight times smaller on each side",
    ),
}
