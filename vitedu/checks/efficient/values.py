"""Checkers of the values that notebook 08 asks for."""

from vitedu import efficient as reference
from vitedu.checks.values import ValueChecker, ValueMistake

REACHED_BANK = (
    ValueMistake(
        "leak",
        (64, 64),
        "the corner looks across the edge",
        "The roll brings the far side of the image beside the corner; the mask must separate them.",
        "Give the mask to the second attention.",
    ),
    ValueMistake(
        "one_block",
        (16, 16),
        "only one block is counted",
        "The second block mixes what the first one has collected.",
        "Run both blocks, one after the other.",
    ),
    ValueMistake(
        "second_alone",
        (4, 16),
        "only the second block is counted",
        "Its tokens already depend on their first windows.",
        "Run both blocks, one after the other.",
    ),
    ValueMistake(
        "swapped",
        (64, 16),
        "the two numbers are swapped",
        "The corner's shifted window has fewer members.",
        "The corner comes first.",
    ),
    ValueMistake(
        "everything",
        (144, 144),
        "every token is said to reach all others",
        "That is global attention.",
        "Count the tokens whose gradient is not zero.",
    ),
    ValueMistake(
        "values_counted",
        (48, 192),
        "numbers are counted, not tokens",
        "A token has three of them.",
        "Count a token once: .any(dim=-1).",
    ),
)

CROSSING_BANK = (
    ValueMistake(
        "projections",
        128,
        "the crossing with the projections is given",
        "That was T = 2D, a question of notebook 02.",
        "Compare 2*T*T*d with 2*T*d*d.",
    ),
    ValueMistake(
        "square", 64**2, "d*d is given", "One factor d cancels.", "Divide both counts by 2*T*d."
    ),
    ValueMistake(
        "half",
        32,
        "one product of softmax attention is counted twice, or one of linear attention not at all",
        "Both have two products.",
        "List the products of each with their shapes.",
    ),
    ValueMistake(
        "root",
        8,
        "the root of d is given",
        "T stands squared on one side only, and once on the other.",
        "Divide both counts by T.",
    ),
    ValueMistake(
        "all_heads",
        768,
        "the width of all heads together is given",
        "Each head has features of its own.",
        "d is the width of one head.",
    ),
)

CHECKERS = {
    "tokens_reached": ValueChecker(
        "tokens_reached",
        reference.tokens_reached,
        REACHED_BANK,
        proves="a corner reaches its window, a central token four of them",
    ),
    "crossing_tokens": ValueChecker(
        "crossing_tokens",
        reference.crossing_tokens,
        CROSSING_BANK,
        proves="2*T*T*d equals 2*T*d*d at T = d",
    ),
}
