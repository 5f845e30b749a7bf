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

CHECKERS = {
    checker.exercise: checker
    for checker in (
        patchify.CHECKER,
        unpatchify.CHECKER,
        linear_from_conv.CHECKER,
        add_class_token_and_positions.CHECKER,
        sincos_positions.CHECKER,
        sincos_positions_2d.CHECKER,
    )
} | values.CHECKERS
