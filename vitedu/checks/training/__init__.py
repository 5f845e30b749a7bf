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

CHECKERS = {
    checker.exercise: checker
    for checker in (
        cross_entropy.CHECKER,
        warmup_cosine.CHECKER,
        weight_decay_groups.CHECKER,
        random_crop_flip.CHECKER,
        train_one_epoch.CHECKER,
        evaluate.CHECKER,
    )
} | values.CHECKERS
