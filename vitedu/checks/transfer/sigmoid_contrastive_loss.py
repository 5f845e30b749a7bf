"""9.7 sigmoid_contrastive_loss: each pair by itself."""

import torch

from vitedu.checks.transfer.clip_loss import COMMON, PAIRS, SIZES, VALUES
from vitedu.checks.writing.kit import also, shaped

SHAPES = "image_features: B D; text_features: B D; scale = {}; bias = {}"
# no cosine below 0: no loss at SigLIP's start is so large that a small number in the log shows in
# it
MILD = dict.fromkeys(VALUES, torch.abs)
# where the features have little effect both get gradients, so that both are seen to take part
BOTH: dict = {"gradients": tuple(VALUES)}
START: dict = {"shapes": SHAPES.format("10.0", "-10.0"), "keywords": ("scale", "bias")}
LARGE: dict = {"part": "large logits", "rtol": 1e-4, "atol": 2e-2} | BOTH

cases = shaped(
    SHAPES.format("s / 2", "-b / 4"),
    also(note="scale 10,000", shapes=SHAPES.format("1e4", "-b / 4"), **LARGE),
    also(note="bias 10,000", shapes=SHAPES.format("s / 2", "1e4"), **LARGE),
    also(note="bias -10,000", shapes=SHAPES.format("s / 2", "-1e4"), **LARGE),
    also("other sizes", "SigLIP's start, 10 and -10, by keyword", values=MILD, **START),
    also("other sizes", "scale and bias 0", shapes=SHAPES.format("0.0", "0.0"), **BOTH),
    also("other sizes", "many pairs of many features", B="s + 6", D="100 + s"),
    *PAIRS,
    ranges=SIZES | {"s": (3, 9), "b": (3, 9)},
    **COMMON,
)
