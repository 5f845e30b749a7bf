"""Checkers of the values that notebook 04 asks for."""

import math

from vitedu import training as reference
from vitedu.checks.values import ValueChecker, ValueMistake

CHECKERS = {
    "smoothing_floor": ValueChecker(
        "smoothing_floor", reference.smoothing_floor,
        (
            ValueMistake("zero", 0.0, "a smoothed target cannot be met for free", "The loss compares with the target, and a target that is spread has an entropy of its own.",
                         "Ask what the loss charges where the model gives exactly the target."),
            ValueMistake("label_only", -math.log(0.91), "only the label is priced", "The other classes have a share of the target too.", "Weigh each class's price with its target, and add all ten.", rtol=5e-3),
            ValueMistake("label_weighted_only", -0.91 * math.log(0.91), "only the label is priced", "The other classes have a share of the target too.", "Add the nine others."),
            ValueMistake("one_minus_s", -math.log(0.9), "only 1 - s is priced", "The label also gets its share s/K, and the other classes have theirs.", "The target has 0.91 once and 0.01 nine times.", rtol=5e-3),
            ValueMistake("shared_by_others", -(0.9 * math.log(0.9) + 0.1 * math.log(0.1 / 9)), "s is shared by the nine others only", "s/K goes to every class, the label included.",
                         "The target has 0.91 once and 0.01 nine times."),
            ValueMistake("one_other", -(0.91 * math.log(0.91) + 0.01 * math.log(0.01)), "one other class is counted", "There are nine.", "Nine times the price of 0.01."),
            ValueMistake("table", 0.723, "that is one line of the table", "At margin 8 the loss is already rising.",
                         "Find the probabilities that make the price smallest; no margin of the table gives them.", rtol=9e-4),
            ValueMistake("bits", reference.smoothing_floor / math.log(2), "it is counted in bits", "The course, and torch, use the natural log.", "Use log, not log2.", rtol=9e-4),
            ValueMistake("nine_as_one", -(0.9 * math.log(0.9) + 0.1 * math.log(0.1)), "the nine others are taken for one class", "Each has 0.01 of its own.",
                         "The target has 0.91 once and 0.01 nine times."),
            ValueMistake("nine_shares_as_one", -(0.91 * math.log(0.91) + 0.09 * math.log(0.09)), "the nine others are taken for one class", "Each has 0.01 of its own.",
                         "The target has 0.91 once and 0.01 nine times."),
            ValueMistake("negative", -reference.smoothing_floor, "the sign is turned", "A loss is minus a log.", "Look for the minus."),
            ValueMistake("uniform", math.log(10), "that is the loss of a model that knows nothing", "A perfect model knows the target.", "Price 0.91 and 0.01, not 1/10."),
        ),
        rtol=2e-3,
        proves="the entropy of the smoothed target",
    ),
    "views_of_one_image": ValueChecker(
        "views_of_one_image", reference.views_of_one_image,
        (
            ValueMistake("no_mirror", 81, "the mirror is missing", "Each window can also come out mirrored.", "Count each window twice."),
            ValueMistake("eight_places", 128, "one place is missing in each direction", "0 to 8 are nine places.", "Count both ends."),
            ValueMistake("eight_places_no_mirror", 64, "one place is missing in each direction, and the mirror", "0 to 8 are nine places.", "Count both ends, and each window twice."),
            ValueMistake("one_direction", 18, "only one direction is counted", "Top and left are drawn apart.", "Multiply tops by lefts."),
            ValueMistake("one_direction_no_mirror", 9, "only one direction is counted", "Top and left are drawn apart.", "Multiply tops by lefts, and count the mirror."),
            ValueMistake("half_the_border", 50, "places from 0 to 4 are counted", "Padding is added on both sides.", "Offsets run to twice the padding."),
            ValueMistake("added", 36, "tops and lefts are added", "Every top goes with every left.", "Multiply."),
            ValueMistake("mirrored_both_ways", 324, "the mirror is counted twice", "Images are mirrored left to right only.", "One coin has two sides."),
        ),
        proves="tops times lefts times two",
    ),
    "last_batch_weight": ValueChecker(
        "last_batch_weight", reference.last_batch_weight,
        (
            ValueMistake("inverse", 0.125, "the ratio is turned round", "Every batch mean counts the same, so an image of a small batch counts more.", "An image of the last batch against one of a full batch."),
            ValueMistake("equal", 1, "that would be a mean weighted by batch size", "A mean of means gives every batch, not every image, the same say.", "Count the images that share the last batch's say."),
            ValueMistake("images_left", 16, "the images left over are counted", "That is how many share the last batch's say.", "Compare 1/16 with 1/128."),
            ValueMistake("batches", 79, "batches are counted", "Every batch has the same say; the question is how many images share it.", "Compare the last batch with a full one."),
            ValueMistake("full_batches", 78, "batches are counted", "Every batch has the same say; the question is how many images share it.", "Compare the last batch with a full one."),
            ValueMistake("full_batch", 128, "the images of a full batch are counted", "That is how many share its say.", "Compare it with the images left over."),
        ),
        proves="the images of a full batch over those of the last",
    ),
}  # fmt: skip
