"""Images, labels and partners to mix: for ``mixup`` and ``cutmix``."""

import torch

from vitedu.checks.inputs import normal


def draw_partners(g: torch.Generator, B: int) -> torch.Tensor:
    """Draw a partner for each of B items: no item's own, and if B > 2 no two are each other's."""
    order = torch.randperm(B, generator=g)
    permutation = torch.empty(B, dtype=torch.int64)
    permutation[order] = order.roll(-1)  # one ring through all of them
    return permutation


def draw_labelled_pairs(
    g, B: int, C: int, H: int, W: int, K: int, dtype=torch.float32, is_alike: bool = False
) -> dict:
    """Draw images, labels and partners to mix.

    The last class never occurs. Partners have other labels, but for one pair. ``is_alike``: all
    images are of one class, and each is the partner of its partner.
    """
    permutation = torch.arange(B).flip(0) if is_alike else draw_partners(g, B)
    labels, at = torch.empty(B, dtype=torch.int64), 0
    start = int(torch.randint(K - 1, (), generator=g))
    for step in range(B):  # along the ring
        labels[at] = (start + step % max(1, B - 1)) % (K - 1)
        at = int(permutation[at])
    labels = labels[:1].expand(B).clone() if is_alike else labels
    if dtype == torch.uint8:
        # black and white: partners share pixels
        images = torch.randint(0, 2, (B, C, H, W), generator=g, dtype=torch.uint8)
    else:
        images = normal(g, B, C, H, W, dtype=dtype)
    return {"images": images, "labels": labels, "num_classes": K, "permutation": permutation}
