"""Checkers of the values that notebook 01 asks for."""

from vitedu import patches as reference
from vitedu.checks.values import ValueChecker, ValueMistake

CHECKERS = {
    "tokens_at_224": ValueChecker(
        "tokens_at_224", reference.tokens_at_224,
        (
            ValueMistake("no_class_token", 196, "the class token is not counted", "The patches are only part of the sequence.",
                         "The model puts one more token in front."),
            ValueMistake("one_side", 14, "one side of the grid is counted", "The grid has two sides.", "Multiply down by across."),
            ValueMistake("one_side_and_token", 15, "one side of the grid is counted", "The grid has two sides.", "Multiply down by across."),
            ValueMistake("pixels", lambda v: v in (224 * 224, 224 * 224 + 1), "pixels are counted", "A token is a patch, not a pixel.", "Divide each side by the patch size.", example=224 * 224),
            ValueMistake("values", 768, "the width of a token is given", "That is how long one token is.", "Count the tokens."),
        ),
        proves="patches down times patches across, and the class token",
    ),
    "seam_neighbours": ValueChecker(
        "seam_neighbours", reference.seam_neighbours,
        (
            ValueMistake("codes_swapped", (False, True), "the two codes are swapped", "The 1-D code knows one order: along the rows.",
                         "The pair is (1-D code, 2-D code)."),
            ValueMistake("both_see_the_seam", (True, True), "both codes are said to join 7 and 8", "The 2-D code knows that 8 starts a new row.",
                         "Read the second entry from the similarity of the 2-D table."),
            ValueMistake("neither", (False, False), "neither code is said to join 7 and 8", "In one long row, 8 follows 7.",
                         "Read the first entry from the similarity of the 1-D table."),
        ),
        proves="the 1-D code joins the seam, the 2-D code does not",
    ),
    "stem_tokens": ValueChecker(
        "stem_tokens", reference.stem_tokens,
        (
            ValueMistake("patch_tokens", 196, "the tokens of patch size 16 are given", "Three halvings are a factor of 8, not 16.", "Run the stem and look at the grid."),
            ValueMistake("with_class_token", 785, "a class token is counted", "The stem alone adds none.", "Count the places of the grid."),
            ValueMistake("one_side", 28, "one side of the grid is given", "The grid has two sides.", "Multiply down by across."),
            ValueMistake("divided_by_six", 37 * 37, "the strides are added, not multiplied", "Each convolution halves what it gets.", "Three halvings in a row divide by 8."),
        ),
        proves="three convolutions of stride 2 leave a grid eight times smaller on each side",
    ),
}  # fmt: skip
