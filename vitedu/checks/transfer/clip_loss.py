"""9.3 clip_loss: which text belongs to which image?."""

import torch
import torch.nn.functional as F

from vitedu.checks.writing.kit import USUAL, also, shaped

FEATURES = "image_features: B D; text_features: B D; temperature = "


def _scale_rows(x: torch.Tensor) -> torch.Tensor:
    """Give every row a length of its own."""
    return x * (0.4 + torch.arange(len(x), dtype=x.dtype))[:, None] / len(x) * 3


def _repeat_first_row(x: torch.Tensor) -> torch.Tensor:
    """Make the second row equal to the first."""
    return torch.cat([x[:1], x[:1], x[2:]])


def _make_hub(x: torch.Tensor) -> torch.Tensor:
    """Let positive rows prefer the first row, so that the two directions differ for everybody."""
    return torch.cat([x[:1].abs(), -x[1:].abs()])


VALUES = dict.fromkeys(("image_features", "text_features"), _scale_rows)
TWINS = dict.fromkeys(VALUES, _repeat_first_row)
HUB = {"image_features": torch.abs, "text_features": _make_hub}
# what both losses of pairs share
PAIRS = (
    also("other sizes", "features of length 1", values=dict.fromkeys(VALUES, F.normalize)),
    also("other sizes", "as many pairs as features", B="D"),
    also("other sizes", "two equal images, two equal texts", values=TWINS),
    USUAL[0],
    also("dtype", "float64", dtype=torch.float64, values=HUB),
    *USUAL[2:],
)
SIZES = {"B": (4, 7), "D": (3, 6)}
COMMON: dict = {"values": VALUES, "name": "{B:pair} of {D} features", "rtol": 2e-4, "atol": 2e-5}

cases = shaped(
    FEATURES + "t / 10",
    also("values", ""),
    also("temperatures", "a small temperature", shapes=FEATURES + "0.05"),
    also("large logits", "logits of 10,000", shapes=FEATURES + "1e-4", rtol=1e-3, atol=2e-2),
    also("temperatures", "a large temperature", shapes=FEATURES + "10.0"),
    also("temperatures", "1, by keyword", shapes=FEATURES + "1.0", keywords=("temperature",)),
    also("other sizes", "many pairs of many features", B="2*t + 5", D="100 + t"),
    *PAIRS,
    ranges=SIZES | {"t": (2, 6)},
    **COMMON,
)
