"""Checkers of notebook 04: loss, schedule, parameter groups, augmentation, one epoch."""
