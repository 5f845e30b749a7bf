"""8.9 merge_tokens: merge what is alike."""

import torch

from vitedu.checks.writing.kit import USUAL, also, refused, shaped


def _count(x: torch.Tensor) -> torch.Tensor:
    """Turn normal values into counts from 1 up."""
    return (3 * x.abs()).floor() + 1


def _lengthen(keys: torch.Tensor) -> torch.Tensor:
    """Make each key three times as long as the one before."""
    return keys.abs() * 3.0 ** torch.arange(keys.shape[1])[:, None]


LENGTHS = {"sizes": _count, "keys": _lengthen}

cases = shaped(
    "tokens: B N+1 D; keys: B N+1 d; sizes: B N+1; merge = r",
    also("values", "", gradients=(), N=9, r=4),
    also("no merge", "no merge", r=0),
    also("other sizes", "one merge", r=1),
    also("other sizes", "all even-placed ones of an odd number", N=7, r=4),
    also("other sizes", "all even-placed ones of an even number", N=8, r=4),
    also("other sizes", "sizes of 1", values={"sizes": torch.ones_like}),
    refused("{N} patches, merge={N // 2 + 2}", r="N // 2 + 2"),
    refused("merge=-1", r=-1),
    # so many merges that every mistake shows
    also("batch of one", "a batch of one", B=1, N=12, r=6, values=LENGTHS),
    also("dtype", "float64", dtype=torch.float64, N=12, r=5),
    also("layout", "its axes turned round in memory", turned=True, N=12, r=5),
    *USUAL[3:],
    ranges={"B": (3, 4), "r": (2, 3), "D": (4, 7), "d": (4, 7), "N": (9, 12)},
    values={"sizes": _count},
    outputs=("tokens", "sizes"),
    gradients=("tokens",),
)
