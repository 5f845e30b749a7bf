"""Images, labels and partners to mix: for ``mixup`` and ``cutmix``."""

from typing import Any

import torch

from vitedu.checks.writing.inputs import normal


def draw_labelled_pairs(
    g: torch.Generator,
    shape: tuple[int, ...],
    K: int,
    dtype: torch.dtype = torch.float32,
    is_alike: bool = False,
    **how: Any,
) -> dict[str, Any]:
    """Draw images, labels and partners to mix, and return the arguments of a call.

    The last class never occurs. Nobody is his own partner, if B > 2 no two are each other's, and
    partners have other labels, but for one pair. ``is_alike``: all images are of one class, and
    each is the partner of its partner. ``how`` are the arguments that say how to mix.
    """
    B = shape[0]
    permutation = torch.arange(B).flip(0)
    if not is_alike:
        order = torch.randperm(B, generator=g)
        permutation[order] = order.roll(-1)  # one ring through all of them
    labels, at = torch.empty(B, dtype=torch.int64), 0
    start = int(torch.randint(K - 1, (), generator=g))
    for step in range(B):  # along the ring
        labels[at] = (start + step % max(1, B - 1)) % (K - 1)
        at = int(permutation[at])
    labels = labels[:1].expand(B).clone() if is_alike else labels
    if dtype == torch.uint8:
        # black and white: partners share pixels
        images = torch.randint(0, 2, shape, generator=g, dtype=torch.uint8)
    else:
        images = normal(g, *shape, dtype=dtype)
    return {"images": images, "labels": labels, "num_classes": K, **how, "permutation": permutation}
