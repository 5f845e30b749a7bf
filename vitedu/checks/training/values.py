"""Checkers of the values that notebook 04 asks for."""

from vitedu.checks.explaining.values import ValueChecker

CHECKERS = {
    "smoothing_floor": ValueChecker(rtol=2e-3, proves="the entropy of the smoothed target"),
    "views_of_one_image": ValueChecker(proves="tops times lefts times two"),
    "last_batch_weight": ValueChecker(proves="the images of a full batch over those of the last"),
}
