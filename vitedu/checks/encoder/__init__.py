"""Checkers of notebook 03: normalisation, GELU, the encoder block, the whole model, its parameters."""

from vitedu.checks.encoder import (
    count_parameters,
    encoder_block,
    gelu,
    layer_norm,
    values,
    vision_transformer,
)

IN_ORDER = (layer_norm, gelu, encoder_block, vision_transformer, count_parameters)
CHECKERS = {module.CHECKER.exercise: module.CHECKER for module in IN_ORDER} | values.CHECKERS
