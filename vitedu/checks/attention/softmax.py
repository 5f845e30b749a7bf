"""2.1 softmax: scores into weights."""

from functools import partial

import torch

from vitedu.checks.attention import FUSED_NAMES, drawing
from vitedu.checks.writing.kit import USUAL, also, shaped

SOFTMAX_NAMES = frozenset(
    "softmax log_softmax softmin _softmax _log_softmax _safe_softmax "
    "aten.softmax aten.log_softmax aten._softmax aten._log_softmax aten._safe_softmax "
    "aten._sparse_softmax aten._sparse_log_softmax aten._masked_softmax".split()
)


def _shift(x):
    """Move four rows to +1e4, to -1e4, to both, and 120 apart: exp of float32 ends at 88."""
    middle = torch.tensor([1e4, -1e4, 1e4, 60.0])[:, None].repeat(1, x.shape[1])
    middle[2:, ::2] *= -1
    return middle + x


def _shift_columns(x):
    return _shift(x.T).T.contiguous()


# the spacing of float32 at 1e4 is 1e-3
large = partial(also, "large scores", scale=1.0, rtol=5e-3, atol=2e-3)

cases = shaped(
    "x: a b",
    also("other axes", "", shapes="x: a b c; dim = 1", keywords=("dim",)),
    also("other axes", "", shapes="x: a b c; dim = 0"),
    also("other axes", "", shapes="x: a b c d; dim = -2"),
    also("other sizes", "square, with equal scores", a="b", values={"x": torch.relu}),
    also("other sizes", "square, more than 64", shapes="x: b b; dim = 0", b=70),
    also("batch of one", "one row", a=1),
    also("other axes", "no other axis", shapes="x: b"),
    # no score so small that exp(score - 100) is 0 for some students and not for others
    also("one score a row", "one score a row", b=1, scale=0.5),
    *USUAL[1:],
    also("dtype", "float16", dtype=torch.float16, rtol=1e-2, atol=2e-3),
    large("scores of size 1e4", shapes="x: 4 e", values={"x": _shift}),
    large("scores of size 1e4", shapes="x: e 4; dim = 0", values={"x": _shift_columns}),
    large("scores of size 1e4, no other axis", shapes="x: e", scale=1e4),
    ranges=dict.fromkeys("abcd", (3, 7)) | {"e": (5, 8)},
    scale=2.0,
)

forbidden = SOFTMAX_NAMES | FUSED_NAMES  # attention to the unit matrix is softmax
forbidden_words = "log_softmax, softmax, softmin"
picture = drawing.draw_sums
