"""Checkers of notebook 03: normalisation, GELU, the encoder block, the model, its parameters."""
