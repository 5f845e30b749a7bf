"""Checkers of notebook 03: normalisation, GELU, the encoder block, the whole model, its parameters."""

from vitedu.checks.encoder import (
    count_parameters,
    encoder_block,
    gelu,
    layer_norm,
    values,
    vision_transformer,
)

CHECKERS = {
    checker.exercise: checker
    for checker in (
        layer_norm.CHECKER,
        gelu.CHECKER,
        encoder_block.CHECKER,
        vision_transformer.CHECKER,
        count_parameters.CHECKER,
    )
} | values.CHECKERS
