"""Reasons why a mutant is right that several exercises share."""

SIDE_BY_SIDE = "two axes that stay side by side to the end may be split in either order"
NEW_AXIS = "broadcasting adds the axis in front by itself"
UNUSED_SIZES = "sizes that are bound and not used"
DEFAULT = "what is left out is the default"
NEGATIVE_DIVISOR = "a remainder by -n is 0 where one by n is"
SAME_ZERO = "0 and 0.0 are added to alike"
AS_MANY_LABELS = "a batch has as many labels as images"
TENSOR_AS_NUMBER = "exercises.md takes 0-d tensors as numbers"

RESULTS_SURVIVORS = {
    SAME_ZERO: (
        "correct, total_loss, seen = (0.0, 0, 0)",
        "seen, correct, total_loss = (0.0, 0, 0)",
        "total_loss, seen, correct = (0.0, 0, 0)",
        "total_loss, correct, seen = (0, 0.0, 0)",
        "total_loss, correct, seen = (0, 0, 0.0)",
    ),
}
