"""Checkers of the values that notebook 04 asks for."""

from vitedu import training as reference
from vitedu.checks.values import ValueChecker

CHECKERS = {
    "smoothing_floor": ValueChecker(
        "smoothing_floor",
        reference.smoothing_floor,
        rtol=2e-3,
        proves="the entropy of the smoothed target",
    ),
    "views_of_one_image": ValueChecker(
        "views_of_one_image", reference.views_of_one_image, proves="tops times lefts times two"
    ),
    "last_batch_weight": ValueChecker(
        "last_batch_weight",
        reference.last_batch_weight,
        proves="the images of a full batch over those of the last",
    ),
}
