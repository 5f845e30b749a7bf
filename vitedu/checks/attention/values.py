"""Checkers of the values that notebook 02 asks for."""

import math

from vitedu import attention as reference
from vitedu.checks.values import ValueChecker, ValueMistake

_MEGABYTES, _ENTROPY = reference.attention_megabytes, reference.untrained_entropy

MEGABYTES_BANK = (
    ValueMistake(
        "no_class_token",
        32 * 12 * 196**2 * 4 / 1e6,
        "the class token is not counted",
        "It attends and is attended to like any patch.",
        "T is one more than the number of patches.",
    ),
    ValueMistake(
        "mebibytes",
        _MEGABYTES * 1e6 / 2**20,
        "the unit is 2**20 bytes",
        "A megabyte here is 10**6 bytes.",
        "Divide by 1e6.",
    ),
    ValueMistake(
        "one_image",
        _MEGABYTES / 32,
        "one image is counted",
        "Each image of the batch has weights of its own.",
        "Multiply by the batch.",
    ),
    ValueMistake(
        "one_head",
        _MEGABYTES / 12,
        "one head is counted",
        "Each head has weights of its own.",
        "Multiply by the heads.",
    ),
    ValueMistake(
        "all_layers",
        _MEGABYTES * 12,
        "all twelve layers are counted",
        "The question is about one.",
        "12 occurs twice in ViT-B: heads, and layers.",
    ),
    ValueMistake(
        "half_precision",
        _MEGABYTES / 2,
        "two bytes a number are counted",
        "float32 has four.",
        "Multiply by 4 bytes.",
    ),
    ValueMistake(
        "numbers_not_bytes",
        _MEGABYTES / 4,
        "numbers are counted, not bytes",
        "A float32 takes four bytes.",
        "Multiply by 4 bytes.",
    ),
    ValueMistake(
        "bits", _MEGABYTES * 8, "bits are counted", "A byte is eight bits.", "4 bytes a number."
    ),
    ValueMistake(
        "bytes",
        _MEGABYTES * 1e6,
        "the number of bytes is given",
        "A megabyte is 10**6 bytes.",
        "Divide by 1e6.",
    ),
    ValueMistake(
        "kilobytes",
        _MEGABYTES * 1e3,
        "kilobytes are given",
        "A megabyte is 10**6 bytes.",
        "Divide by 1e6.",
    ),
    ValueMistake(
        "gigabytes",
        _MEGABYTES / 1e3,
        "gigabytes are given",
        "A megabyte is 10**6 bytes.",
        "Divide by 1e6, not by 1e9.",
    ),
    ValueMistake(
        "one_row",
        _MEGABYTES / 197,
        "one query is counted",
        "The weights are T x T: a row for each query.",
        "T occurs twice.",
    ),
)

BLINDNESS_BANK = (
    ValueMistake(
        "invariant",
        (True, False),
        "the outputs are said to stay where they were",
        "Invariant and equivariant are easily mixed up; the measurement tells them apart.",
        "Compare output_of_shuffled with output, and with output[:, permutation].",
    ),
    ValueMistake(
        "both",
        (True, True),
        "the outputs are said to stay and to move",
        "Both can hold only if all outputs are alike.",
        "Print the largest difference to output itself.",
    ),
    ValueMistake(
        "neither",
        (False, False),
        "the outputs are said to have nothing to do with each other",
        "Rounding makes equal things differ in the seventh digit, and == counts that; or the inverse permutation was taken.",
        "Use torch.allclose with atol=1e-5, on output[:, permutation].",
    ),
)

ENTROPY_BANK = (
    ValueMistake(
        "not_divided",
        _ENTROPY * math.log(65),
        "the entropy is not divided by ln(T)",
        "In nats it grows with the number of tokens.",
        "Divide by math.log(T).",
    ),
    ValueMistake(
        "bits",
        _ENTROPY / math.log(2),
        "bits are divided by nats",
        "log2 above and ln below do not cancel.",
        "Use the same logarithm in both.",
    ),
    ValueMistake(
        "in_bits",
        _ENTROPY * math.log2(65),
        "the entropy is in bits and not divided",
        "It grows with the number of tokens.",
        "Use ln, and divide by ln(T).",
    ),
    ValueMistake(
        "divided_by_tokens",
        _ENTROPY * math.log(65) / 65,
        "the entropy is divided by T",
        "The largest entropy of T weights is ln(T).",
        "Divide by math.log(T).",
    ),
    ValueMistake(
        "patches_only",
        _ENTROPY * math.log(65) / math.log(64),
        "it is divided by the logarithm of the number of patches",
        "A row has a weight for the class token, too; no share can exceed 1.",
        "T is weights.shape[-1].",
    ),
    ValueMistake(
        "mean_of_terms",
        _ENTROPY / 65,
        "the terms of a row are averaged, not added",
        "The entropy of a row is a sum over its weights.",
        "Sum over dim=-1 first, then take the mean.",
    ),
    ValueMistake(
        "sign",
        -_ENTROPY,
        "the minus sign is missing",
        "ln of a weight is negative, so the sum is.",
        "Entropy has a minus in front.",
    ),
    ValueMistake(
        "sum_of_rows",
        8 * 3 * 65 * _ENTROPY,
        "the rows are added up",
        "The question is about the mean row.",
        "Take the mean over images, heads and queries.",
    ),
    ValueMistake(
        "percent",
        100 * _ENTROPY,
        "a percentage is given",
        "The scale runs from 0 to 1.",
        "Do not multiply by 100.",
    ),
    ValueMistake(
        "uniform",
        1.0,
        "an exactly uniform map is given",
        "The rows differ a little, because the patches do.",
        "Measure the weights of the cell above, and keep four digits.",
    ),
    ValueMistake(
        "certain",
        0.0,
        "the map is said to be a single choice",
        "0 is the entropy of a row that puts everything on one token.",
        "Measure a row of weights.",
    ),
)

CHECKERS = {
    "attention_megabytes": ValueChecker(
        "attention_megabytes",
        reference.attention_megabytes,
        MEGABYTES_BANK,
        rtol=0.0066,  # 60 is a fair rounding; without the class token it is 1 % less
        proves="batch, heads, T x T weights, four bytes each",
    ),
    "order_blindness": ValueChecker(
        "order_blindness",
        reference.order_blindness,
        BLINDNESS_BANK,
        proves="the outputs move with their tokens and change in nothing else",
    ),
    "untrained_entropy": ValueChecker(
        "untrained_entropy",
        reference.untrained_entropy,
        ENTROPY_BANK,
        rtol=4.5e-4,  # an exactly uniform map, 1, was not measured
        proves="an untrained map is uniform but for a trace",
    ),
}
