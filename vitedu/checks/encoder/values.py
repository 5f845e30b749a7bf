"""Checkers of the values that notebook 03 asks for."""

from vitedu import encoder as reference
from vitedu.checks.values import ValueChecker, ValueMistake

CHECKERS = {
    "class_token_alone": ValueChecker(
        "class_token_alone",
        reference.class_token_alone,
        (
            ValueMistake(
                "pair_swapped",
                (0.0, 1),
                "the pair is swapped",
                "Rows first, gradient second.",
                "Look at the order that the text asks for.",
            ),
            ValueMistake(
                "eight_rows",
                lambda v: v[0] == 8,
                "eight different answers are given",
                "Nothing that the head reads has seen an image.",
                "Count the distinct rows of the logits.",
                example=(8, 0.0),
            ),
            ValueMistake(
                "no_row",
                lambda v: v[0] == 0,
                "no row at all is given",
                "All rows are equal: that is one distinct row.",
                "Count distinct rows, not differences.",
                example=(0, 0.0),
            ),
            ValueMistake(
                "gradient_expected",
                lambda v: v[0] == 1 and v[1] != 0,
                "a gradient is given where none can arrive",
                "The loss does not depend on the patches.",
                "Read the largest entry of patch_embed's gradient.",
                example=(1, 0.5),
            ),
        ),
        proves="one answer for every image, and no gradient for the patches",
    ),
    "mlp_share": ValueChecker(
        "mlp_share",
        reference.mlp_share,
        (
            ValueMistake(
                "attention_share",
                1 - reference.mlp_share,
                "the share of attention, or of one of the two layers, is given",
                "The MLP is fc1 and fc2, and has twice as many as attention.",
                "Add fc1 and fc2, biases too, and divide by the block.",
            ),
            ValueMistake(
                "whole_model",
                85_017_600 * reference.mlp_share / 86_567_656,
                "the MLPs are held against the whole model",
                "Patch embedding, positions and head are no part of a block.",
                "Divide by one block.",
            ),
            ValueMistake(
                "projection_forgotten",
                2 / 3.5,
                "one of the matrices is forgotten",
                "A block has the q, k, v projection, the output projection, fc1 and fc2.",
                "List the six parts of a block first.",
            ),
            ValueMistake(
                "one_layer",
                0.5,
                "the MLP is taken for half of the block",
                "Its two layers together have twice as many as attention.",
                "List the six parts of a block first.",
            ),
            ValueMistake(
                "percent",
                100 * reference.mlp_share,
                "the share is given in percent",
                "A number between 0 and 1 was asked for.",
                "Divide by 100.",
            ),
            ValueMistake(
                "ratio_to_attention",
                2.0,
                "the ratio to attention is given",
                "The share is of the whole block.",
                "Divide by the block, not by attention.",
            ),
        ),
        rtol=0.008,
        proves="about two thirds",
    ),
}
