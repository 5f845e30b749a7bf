"""5.9 position_similarity: which positions are alike?."""

import torch

from vitedu.checks.writing.kit import USUAL, also, shaped


def _make_positions(x: torch.Tensor) -> torch.Tensor:
    """Make positions of unlike lengths, with a mean of their own; the last two are opposite."""
    x = x * (0.3 + torch.arange(x.shape[1]).cos().abs()[:, None].to(x)) + 0.4
    return torch.cat([x[:, :-1], 0.1 * x[:, -1:] - x[:, -2:-1]], dim=1)


SMALL = {"pos_embed": lambda x: 1e-3 * _make_positions(x)}

cases = shaped(
    "pos_embed: 1 T D; grid_size = (gh, gw)",
    also("prefix rows", "five tokens before the patches", T="gh*gw + 5"),
    also("prefix rows", "no token before the patches", T="gh*gw", gh=2, gw=8),
    also("other sizes", "a square grid of many patches", gh=9, gw=9),
    also("other sizes", "as many features as patches", D="gh*gw"),
    also("other sizes", "a single row of patches", gh=1),
    also("other sizes", "a single column of patches", gw=1),
    also("rare positions", "more tokens before the patches than patches", T="2*gh*gw + 1"),
    also("rare positions", "small positions", values=SMALL, rtol=5e-3),
    *USUAL[1:],
    letters={"T": "gh*gw + 1"},
    values={"pos_embed": _make_positions},
    name="{gh} x {gw} patches, positions of {D}",
)
