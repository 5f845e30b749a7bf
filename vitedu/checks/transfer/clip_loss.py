"""9.6 clip_loss: which text belongs to which image?."""

import torch
import torch.nn.functional as F

from vitedu.checks.kit import USUAL, Checker, also, shaped

LENGTHS = "image_features: B D; text_features: B D; temperature = "


def _unequal(x: torch.Tensor) -> torch.Tensor:
    """Give every row a length of its own."""
    return x * (0.4 + torch.arange(len(x), dtype=x.dtype))[:, None] / len(x) * 3


def _twins(x: torch.Tensor) -> torch.Tensor:
    """Make the second row equal to the first."""
    return torch.cat([x[:1], x[:1], x[2:]])


VALUES = {"image_features": _unequal, "text_features": _unequal}


TWINS = {"image_features": _twins, "text_features": _twins}


CHECKER = Checker(
    "clip_loss",
    cases=shaped(
        LENGTHS + "t / 10",
        also("values", ""),
        also("temperatures", "a small temperature", shapes=LENGTHS + "0.01"),
        also(
            "temperatures",
            "a temperature that makes logits of 10,000",
            shapes=LENGTHS + "1e-4",
            rtol=1e-3,
            atol=2e-2,
        ),
        also("temperatures", "a large temperature", shapes=LENGTHS + "10.0"),
        also(
            "temperatures",
            "temperature 1, by keyword",
            shapes=LENGTHS + "1.0",
            keywords=("temperature",),
        ),
        also(
            "other sizes",
            "features of length 1",
            values={"image_features": F.normalize, "text_features": F.normalize},
        ),
        also("other sizes", "as many pairs as features", B="D"),
        also("other sizes", "two equal images, two equal texts", values=TWINS),
        *USUAL,
        ranges={"B": (4, 7), "D": (3, 6), "t": (2, 6)},
        values=VALUES,
        name="{B:pair} of {D} features",
        rtol=2e-4,
        atol=2e-5,
    ),
    proves={
        "values": "the mean of both cross-entropies over cosines / temperature",
        "temperatures": "finite and right for temperatures from 0.0001 to 10",
        "other sizes": "also for one pair, for features of length 1, and float64",
    },
)
