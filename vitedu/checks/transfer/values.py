"""Checkers of the values that notebook 09 asks for."""

import math

from vitedu import transfer as reference
from vitedu.checks.values import ValueChecker, ValueMistake

LORA_BANK = (
    ValueMistake(
        "one_block",
        reference.lora_parameters / 12,
        "one block is counted",
        "The model has twelve.",
        "Multiply by the number of blocks.",
    ),
    ValueMistake(
        "down_only",
        12 * 8 * 768,
        "only down is counted",
        "up learns, too.",
        "Count both thin matrices.",
    ),
    ValueMistake(
        "up_only",
        12 * 8 * 2304,
        "only up is counted",
        "down learns, too.",
        "Count both thin matrices.",
    ),
    ValueMistake(
        "square",
        12 * 8 * 2 * 768,
        "qkv is taken for a square layer",
        "It has 768 inputs and 3 * 768 outputs.",
        "Look at linear.out_features.",
    ),
    ValueMistake(
        "frozen_counted",
        12 * 768 * 2304,
        "the frozen matrices are counted",
        "They do not learn.",
        "Count what has requires_grad.",
    ),
    ValueMistake(
        "whole_layer",
        12 * (768 * 2304 + 2304),
        "the frozen layers are counted",
        "They do not learn.",
        "Count what has requires_grad.",
    ),
    ValueMistake(
        "both",
        12 * (768 * 2304 + 2304) + reference.lora_parameters,
        "everything in these layers is counted",
        "The frozen layers do not learn.",
        "Count what has requires_grad.",
    ),
    ValueMistake(
        "with_biases",
        12 * (8 * (768 + 2304) + 8 + 2304),
        "biases are counted",
        "Neither thin layer has one.",
        "Look at the given __init__.",
    ),
    ValueMistake(
        "with_head",
        reference.lora_parameters + 769 * 1000,
        "the head is counted as well",
        "The question is about the adapters.",
        "Leave the head out.",
    ),
    ValueMistake(
        "with_proj",
        reference.lora_parameters + 12 * 8 * 2 * 768,
        "proj has an adapter, too",
        "The question is about qkv alone.",
        "Count one layer a block.",
    ),
    ValueMistake(
        "share",
        reference.lora_parameters / 86_567_656,
        "a share is given",
        "The question asks for a number of parameters.",
        "Do not divide.",
        rtol=1e-2,
    ),
    ValueMistake(
        "percent",
        100 * reference.lora_parameters / 86_567_656,
        "a percentage is given",
        "The question asks for a number of parameters.",
        "Do not divide.",
        rtol=1e-2,
    ),
)

CLIP, SIGLIP, BIASED = reference.blind_losses
BLIND_BANK = (
    ValueMistake(
        "over_pairs",
        (CLIP, SIGLIP / 64, BIASED / 64),
        "the sigmoid loss is divided by all pairs",
        "It is divided by B.",
        "Use your function.",
    ),
    ValueMistake(
        "one_pair",
        lambda answer: len(answer) == 3 and math.isclose(answer[1], math.log(2), rel_tol=5e-3),
        "the second number is the loss of a single pair",
        "Every image meets all 64 texts, and their losses are added up.",
        "Use your function.",
        example=(CLIP, math.log(2), 10.0),
    ),
    ValueMistake(
        "not_divided",
        (CLIP, SIGLIP * 64, BIASED * 64),
        "the sigmoid loss is not divided by B",
        "It is divided by B.",
        "Use your function.",
    ),
    ValueMistake(
        "swapped",
        (SIGLIP, CLIP, BIASED),
        "the first two are exchanged",
        "CLIP comes first.",
        "Look at the order that is asked for.",
    ),
    ValueMistake(
        "biases_swapped",
        (CLIP, BIASED, SIGLIP),
        "the last two are exchanged",
        "Bias 0 comes before bias -10.",
        "Look at the order that is asked for.",
    ),
    ValueMistake(
        "bias_positive",
        (CLIP, SIGLIP, 63 * math.log1p(math.exp(10)) + math.log1p(math.exp(-10))),
        "the bias has the wrong sign",
        "It is -10.",
        "Look at the sign.",
    ),
    ValueMistake(
        "log_two",
        (math.log(2), SIGLIP, BIASED),
        "the loss of two choices is given for CLIP",
        "An image chooses among 64 texts.",
        "Use your function.",
        rtol=1e-3,
    ),
    ValueMistake(
        "zeros",
        (0.0, 0.0, 0.0),
        "the losses are said to be 0",
        "Cosines of 0 say nothing, and knowing nothing has its price.",
        "Use your function.",
    ),
    ValueMistake(
        "base_two",
        (6.0, 64.0, BIASED / math.log(2)),
        "the logarithm has base 2",
        "torch counts in nats.",
        "Use your function.",
    ),
)

CHECKERS = {
    "lora_parameters": ValueChecker(
        "lora_parameters",
        reference.lora_parameters,
        LORA_BANK,
        proves="two thin matrices beside each of twelve layers",
    ),
    "blind_losses": ValueChecker(
        "blind_losses",
        reference.blind_losses,
        BLIND_BANK,
        rtol=5e-3,
        proves="what both losses cost while nothing is known, and what the bias saves",
    ),
}
