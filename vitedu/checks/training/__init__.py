"""Checkers of notebook 04: loss, schedule, parameter groups, augmentation, one epoch."""

from vitedu.checks.training import (
    cross_entropy,
    evaluate,
    random_crop_flip,
    train_one_epoch,
    values,
    warmup_cosine,
    weight_decay_groups,
)

IN_ORDER = (
    cross_entropy,
    warmup_cosine,
    weight_decay_groups,
    random_crop_flip,
    train_one_epoch,
    evaluate,
)
CHECKERS = {module.CHECKER.exercise: module.CHECKER for module in IN_ORDER} | values.CHECKERS
