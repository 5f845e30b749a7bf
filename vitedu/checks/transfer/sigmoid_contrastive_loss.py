"""9.7 sigmoid_contrastive_loss: each pair by itself."""

import torch

from vitedu.checks.transfer.clip_loss import TWINS, UNIT, VALUES
from vitedu.checks.writing.kit import USUAL, Checker, also, shaped

PAIRS = "image_features: B D; text_features: B D; scale = {}; bias = {}"
# no cosine below 0: no loss at SigLIP's start is so large that a small number in the log shows in
# it
MILD = dict.fromkeys(VALUES, torch.abs)
# where the features have little effect both get gradients, so that both are seen to take part
BOTH: dict = {"gradients": tuple(VALUES)}
LARGE: dict = {"part": "large logits", "rtol": 1e-4, "atol": 2e-2} | BOTH

CHECKER = Checker(
    cases=shaped(
        PAIRS.format("s / 2", "-b / 4"),
        also(note="scale 10,000", shapes=PAIRS.format("1e4", "-b / 4"), **LARGE),
        also(note="bias 10,000", shapes=PAIRS.format("s / 2", "1e4"), **LARGE),
        also(note="bias -10,000", shapes=PAIRS.format("s / 2", "-1e4"), **LARGE),
        also(
            "other sizes",
            "SigLIP's start: scale 10, bias -10, by keyword",
            shapes=PAIRS.format("10.0", "-10.0"),
            keywords=("scale", "bias"),
            values=MILD,
        ),
        also("other sizes", "scale and bias 0", shapes=PAIRS.format("0.0", "0.0"), **BOTH),
        also("other sizes", "features of length 1", values=UNIT),
        also("other sizes", "as many pairs as features", B="D"),
        also("other sizes", "many pairs of many features", B="s + 6", D="100 + s"),
        also("other sizes", "two equal images, two equal texts", values=TWINS),
        *USUAL,
        ranges={"B": (4, 7), "D": (3, 6), "s": (3, 9), "b": (3, 9)},
        values=VALUES,
        name="{B:pair} of {D} features",
        rtol=2e-4,
        atol=2e-5,
    ),
)
