"""Checkers of notebook 01: patches, class token, positions."""

from vitedu.checks.patches import (
    add_class_token_and_positions,
    linear_from_conv,
    patchify,
    sincos_positions,
    sincos_positions_2d,
    unpatchify,
    values,
)

IN_ORDER = (
    patchify,
    unpatchify,
    linear_from_conv,
    add_class_token_and_positions,
    sincos_positions,
    sincos_positions_2d,
)
CHECKERS = {module.CHECKER.exercise: module.CHECKER for module in IN_ORDER} | values.CHECKERS
