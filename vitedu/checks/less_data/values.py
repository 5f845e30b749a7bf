"""Checkers of the values that notebook 07 asks for."""

import math

from vitedu import less_data as reference
from vitedu.checks.values import ValueChecker, ValueMistake

GAP_BANK = (
    ValueMistake(
        "off_label",
        math.log(81),
        "the label gets no share of the 0.1",
        "All ten classes share it, the label too.",
        "The target has 0.91 once and 0.01 nine times.",
    ),
    ValueMistake(
        "own_share_forgotten",
        math.log(90),
        "the label's own share of the 0.1 is forgotten",
        "The ten numbers of the target sum to 1.",
        "The target has 0.91 once and 0.01 nine times.",
    ),
    ValueMistake(
        "nine_as_one",
        math.log(0.91 / 0.09),
        "the nine others are taken for one class",
        "Each of them has a logit of its own.",
        "Compare the label with one other class.",
    ),
    ValueMistake(
        "no_end",
        math.isinf,
        "the logits are said to grow without end",
        "That is what hard labels ask for. The smoothed target is met at a finite distance.",
        "Compare the two kinds of entries of the target.",
        example=math.inf,
    ),
    ValueMistake(
        "one_minus_s",
        math.log(0.9 / 0.1),
        "the label is held against all that was spread",
        "One other class gets a tenth of it.",
        "The target has 0.91 once and 0.01 nine times.",
    ),
    ValueMistake(
        "ratio",
        91.0,
        "the ratio of the probabilities is given",
        "Logits are logarithms, so the ratio becomes a difference.",
        "Take the logarithm.",
    ),
    ValueMistake(
        "difference",
        0.9,
        "the difference of the probabilities is given",
        "Softmax turns differences of logits into ratios.",
        "Take the logarithm of the ratio.",
    ),
    ValueMistake(
        "label_alone",
        lambda v: abs(abs(v) - 0.0943) < 2e-3,
        "the logarithm of one probability is given",
        "Only the difference between two logits is fixed.",
        "Take both entries of the target.",
        example=math.log(0.91),
    ),
    ValueMistake(
        "other_alone",
        lambda v: abs(abs(v) - 4.6052) < 5e-3,
        "the logarithm of one probability is given",
        "Only the difference between two logits is fixed.",
        "Take both entries of the target.",
        example=math.log(0.01),
    ),
    ValueMistake(
        "base_two", math.log2(91), "the log has base 2", "Softmax uses e.", "Use math.log."
    ),
    ValueMistake(
        "base_ten", math.log10(91), "the log has base 10", "Softmax uses e.", "Use math.log."
    ),
    ValueMistake(
        "sign",
        -math.log(91),
        "the sign is turned",
        "The label's logit is the larger one.",
        "Divide the label's probability by the other.",
    ),
    ValueMistake(
        "floor",
        0.5003,
        "that is the smallest loss",
        "The question is about the logits of the answer that has it.",
        "Compare the two kinds of entries of the target.",
    ),
)

_LN = math.log(64)
COLLAPSE_BANK = (
    ValueMistake(
        "swapped",
        (0.0, _LN),
        "the two numbers have changed places",
        "The even answer comes first.",
        "Turn the pair round.",
    ),
    ValueMistake(
        "both_zero",
        (0.0, 0.0),
        "an even answer is taken to cost nothing",
        "Its cross-entropy is its entropy.",
        "Call dino_loss on zeros.",
    ),
    ValueMistake(
        "both_even",
        (_LN, _LN),
        "a sure answer is taken to cost as much as an even one",
        "Student and teacher are sure of the same prototype.",
        "Call dino_loss on 100 times a one-hot row, for both.",
    ),
    ValueMistake(
        "base_two", (6.0, 0.0), "the log has base 2", "The loss is in nats.", "Call your dino_loss."
    ),
    ValueMistake(
        "number_of_prototypes",
        (64.0, 0.0),
        "the number of prototypes is given",
        "The loss is its log.",
        "Call your dino_loss.",
    ),
    ValueMistake(
        "one_prototype_of_many",
        (_LN, 1 / 64),
        "a share is given, not a loss",
        "A cross-entropy between two sure answers that agree is asked for.",
        "Call dino_loss on 100 times a one-hot row, for both.",
    ),
    ValueMistake(
        "divided",
        (_LN / 64, 0.0),
        "the loss is divided by the prototypes",
        "The sum runs over prototypes, the mean over images.",
        "Call your dino_loss.",
    ),
)

CHECKERS = {
    "smoothed_gap": ValueChecker(
        "smoothed_gap",
        reference.smoothed_gap,
        GAP_BANK,
        rtol=1e-3,
        proves="the log of the ratio of 0.91 and 0.01",
    ),
    "collapse_losses": ValueChecker(
        "collapse_losses",
        reference.collapse_losses,
        COLLAPSE_BANK,
        rtol=1e-3,
        atol=1e-3,
        proves="an even collapse costs log 64, a collapse onto one prototype nothing at all",
    ),
}
