"""8.7 linear_attention: attention without a T x T matrix."""

import torch

from vitedu.checks.attention import FUSED_NAMES
from vitedu.checks.efficient.linear_attention_driver import growth
from vitedu.checks.writing.kit import USUAL, also, shaped

COST: dict = {
    "part": "cost",
    "shapes": "q: long d; k: long d; v: long dv",
    "driver": growth.__name__,
    "gradients": (),
}
LARGE = dict.fromkeys("qk", lambda x: 100 * x.abs())

cases = shaped(
    "q: B nh Tq d; k: B nh Tk d; v: B nh Tk dv",
    also(note="and one of 4 x as many tokens", long=24, **COST),
    also("leading axes", "no leading axis", shapes="q: Tq d; k: Tk d; v: Tk dv"),
    also("leading axes", "one leading axis", shapes="q: B Tq d; k: B Tk d; v: B Tk dv"),
    also("other sizes", "T equals d", Tq="d", Tk="d", dv="d"),
    also(note="of few tokens, and one of 4 x as many", long=4, d=2, dv=2, **COST),
    also(note="with many features, and one of 4 x as many tokens", long=5, d=10, dv=3, **COST),
    also("other sizes", "many keys", Tk="64 + d"),
    also("rare inputs", "q and k of size 100", values=LARGE),
    also("rare inputs", "one query", Tq=1),
    also("rare inputs", "one key", Tk=1),
    *USUAL,
    ranges={"d": (2, 5), "dv": (2, 5), "Tk": (2, 5)},
    # the first query has small features, so that a number added to the sum of its weights is
    # felt
    values={"q": lambda q: torch.cat([0.2 * q[..., :1, :] - 2.5, q[..., 1:, :]], dim=-2)},
    rtol=1e-4,
    atol=2e-5,
)

forbidden = FUSED_NAMES
weights = {"cost": 3}
