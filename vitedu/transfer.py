"""Notebook 09: standing on published weights.

Role: what carries trained weights over to another image size. Not here: loading them (``pretrained``).

Legend: D embed_dim, gh gw patch grid.
"""

import math

import torch
import torch.nn.functional as F


def interpolate_positions(
    pos_embed: torch.Tensor,
    new_grid_size: tuple[int, int],
    num_prefix_tokens: int = 1,
    *,
    antialias: bool = False,
) -> torch.Tensor:
    """Stretch or shrink learned positions to another grid of patches.

    A model that was trained at one image size can then be used at another: positions are the only
    parameters that know how many patches there are.

    Args:
        pos_embed: (1, prefix + N, D), its patches from a square grid.
        new_grid_size: (gh, gw), patches down and across.
        num_prefix_tokens: rows before those of the patches, which stand for no place; they are kept.
        antialias: what timm does; its cubic kernel is softer, when enlarging too.

    Returns:
        (1, prefix + gh*gw, D); ``pos_embed`` itself where the grid is the same.

    Raises:
        ValueError: N is no square.

    Example:
        >>> interpolate_positions(torch.zeros(1, 1 + 4 * 4, 8), (6, 5)).shape
        torch.Size([1, 31, 8])

    Reference: Dosovitskiy et al. 2020, section 3.2; bicubic as in DeiT and timm.
    """
    prefix, patches = pos_embed[:, :num_prefix_tokens], pos_embed[:, num_prefix_tokens:]
    _, N, D = patches.shape
    side = math.isqrt(N)
    if side * side != N:
        raise ValueError(
            f"the positions of the patches must come from a square grid (got {N} rows beside "
            f"{num_prefix_tokens} of the prefix); change num_prefix_tokens."
        )
    if (side, side) == tuple(new_grid_size):
        return pos_embed
    grid = patches.reshape(1, side, side, D).permute(0, 3, 1, 2)  # (1, N, D) -> (1, D, side, side)
    grid = F.interpolate(
        grid.float(), size=tuple(new_grid_size), mode="bicubic", antialias=antialias
    )  # -> (1, D, gh, gw), in float32 since not every device has the kernel for less
    patches = grid.flatten(2).transpose(1, 2).to(pos_embed.dtype)  # -> (1, gh*gw, D)
    return torch.cat([prefix, patches], dim=1)
