"""Checkers of the values that notebook 07 asks for."""

import math

from vitedu import less_data as reference
from vitedu.checks.values import ValueChecker, ValueMistake

_FLOOR = reference.smoothing_floor
FLOOR_BANK = (
    ValueMistake("zero", 0.0, "a loss of 0 is expected", "The target spreads 0.1 over all classes; whoever is sure of one pays for the others.", "Compute the loss of the target itself as prediction."),
    ValueMistake("off_label", -0.9 * math.log(0.9) - 9 * (0.1 / 9) * math.log(0.1 / 9), "the label gets no share of the 0.1", "All ten classes share it, the label too.", "The target has 0.91 once and 0.01 nine times."),
    ValueMistake("only_label", -0.91 * math.log(0.91), "only the label's class is counted", "The other nine have a share of the target, and a price.", "Add nine times 0.01 * -log(0.01)."),
    ValueMistake("label_price", -math.log(0.91), "the price of the label is taken alone", "The target has ten entries.", "Weigh each price with its share of the target."),
    ValueMistake("one_other", -0.91 * math.log(0.91) - 0.01 * math.log(0.01), "one of the other classes is counted", "There are nine.", "Count all ten entries."),
    ValueMistake("base_two", _FLOOR / math.log(2), "the log has base 2", "The loss is in nats, as torch's.", "Use math.log."),
    ValueMistake("base_ten", _FLOOR / math.log(10), "the log has base 10", "The loss is in nats, as torch's.", "Use math.log."),
    ValueMistake("even", math.log(10), "the loss of an even answer is given", "That is what an untrained model pays.", "The best answer is the target itself."),
    ValueMistake("mean_of_prices", _FLOOR / 10, "the sum over classes is divided by ten", "A cross-entropy adds up over classes.", "Leave out the mean."),
    ValueMistake("sign", -_FLOOR, "the sign is turned", "A loss is at least 0.", "Look for the minus before the sum."),
    ValueMistake("certain", -0.91 * math.log(1) + 9 * 0.01 * 100, "the loss of a model that is sure is given", "Certainty is not the best answer here.", "The best answer is the target itself."),
)  # fmt: skip

_LN = math.log(64)
COLLAPSE_BANK = (
    ValueMistake("swapped", (0.0, _LN), "the two numbers have changed places", "The even answer comes first.", "Turn the pair round."),
    ValueMistake("both_zero", (0.0, 0.0), "an even answer is taken to cost nothing", "Its cross-entropy is its entropy.", "Call dino_loss on zeros."),
    ValueMistake("both_even", (_LN, _LN), "a sure answer is taken to cost as much as an even one", "Student and teacher are sure of the same prototype.", "Call dino_loss on 100 times a one-hot row, for both."),
    ValueMistake("base_two", (6.0, 0.0), "the log has base 2", "The loss is in nats.", "Call your dino_loss."),
    ValueMistake("number_of_prototypes", (64.0, 0.0), "the number of prototypes is given", "The loss is its log.", "Call your dino_loss."),
    ValueMistake("one_prototype_of_many", (_LN, 1 / 64), "a share is given, not a loss", "A cross-entropy between two sure answers that agree is asked for.", "Call dino_loss on 100 times a one-hot row, for both."),
    ValueMistake("divided", (_LN / 64, 0.0), "the loss is divided by the prototypes", "The sum runs over prototypes, the mean over images.", "Call your dino_loss."),
)  # fmt: skip

CHECKERS = {
    "smoothing_floor": ValueChecker(
        "smoothing_floor", reference.smoothing_floor, FLOOR_BANK, rtol=2e-3,
        proves="the entropy of a target with 0.91 once and 0.01 nine times",
    ),
    "collapse_losses": ValueChecker(
        "collapse_losses", reference.collapse_losses, COLLAPSE_BANK, rtol=1e-3, atol=1e-3,
        proves="an even collapse costs log 64, a collapse onto one prototype nothing at all",
    ),
}  # fmt: skip
