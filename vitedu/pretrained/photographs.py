"""DINOv2 on photographs: what its patches, heads, positions and norms look like.

Role: run such a model, or read what was measured of it beforehand and comes along
(``dinov2/SOURCE.md`` says how). Not here: weights by name (``loading``), figures
(``vitedu.plots``).

Legend: n photographs, N patches, T tokens, D embed_dim, L blocks, nh heads, gh gw patch grid.

Reference: Oquab et al. 2023, "DINOv2", figure 1 (arXiv 2304.07193).
"""

from collections.abc import Sequence
from typing import Any

import torch

from vitedu.data.photograph import PHOTOGRAPHS, square_photograph
from vitedu.inside import attention_distance
from vitedu.pretrained.reading import FOLDER, read_weights
from vitedu.vit import capture

SHIPPED = FOLDER / "dinov2" / "photographs.safetensors"
# pixels of the shipped measurement: 37 x 37 patches, as the weights were published
IMAGE_SIZE = 518
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as its authors prepare


@torch.no_grad()
def look_at_photographs(
    model: Any = None, photographs: Sequence[Any] = PHOTOGRAPHS
) -> dict[str, torch.Tensor]:
    """Run DINOv2 over photographs and keep what figures show, or read what was kept beforehand.

    Args:
        model: ``load_pretrained("vit_small_patch14_dinov2")``, or a student's own with its weights.
            None: the numbers that come along, of ``PHOTOGRAPHS`` at 518 pixels. Of features and
            positions they hold the 32 directions in which they vary most.
        photographs: as ``square_photograph`` takes them; for a model alone.

    Returns:
        ``"features"`` (n, N, D) of the patches after the last norm; ``"distances"`` (L, nh), how
        far heads look, in patches, a mean over photographs; ``"positions"`` (1, N, D);
        ``"norms"`` (n, 1+L, T) of the tokens before the first block and after each.

    Example:
        >>> {name: tuple(found.shape) for name, found in look_at_photographs().items()}["distances"]
        (12, 6)
    """
    if model is None:
        return {name: tensor.float() for name, tensor in read_weights(SHIPPED).items()}
    config, found = model.config, []
    grid, N = config.grid_size, config.num_patches
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (MEAN, STD))
    for photograph in photographs:  # one by one: the weights of all heads are large
        pixels = torch.from_numpy(square_photograph(photograph, config.image_size))
        tensors = capture(model, ((pixels / 255 - mean) / std)[None])
        blocks = [f"blocks.{i}" for i in range(config.depth)]
        weights = [tensors[f"{block}.attn.weights"] for block in blocks]
        found.append(
            (
                model.norm(tensors[blocks[-1]])[0, -N:],
                torch.stack([attention_distance(each, grid) for each in weights]),
                torch.stack([tensors[name][0].norm(dim=-1) for name in ("tokens", *blocks)]),
            )
        )
    features, distances, norms = map(torch.stack, zip(*found, strict=True))
    positions = model.pos_embed.detach()[:, -N:]
    kinds = {"features": features, "positions": positions, "norms": norms}
    return {**kinds, "distances": distances.mean(dim=0)}


def leading_directions(vectors: torch.Tensor, count: int, *, centre: bool = True) -> torch.Tensor:
    """Turn vectors so that the directions in which they vary most come first, and keep ``count``.

    Args:
        vectors: (n, N, D).
        count: how many numbers of each vector stay.
        centre: whether the mean of all is taken away first, as in principal component analysis.

    Returns:
        (n, N, count); the first stay the same whatever the count.

    Example:
        >>> leading_directions(torch.tensor([[[0.0, 3.0], [0.0, 5.0]]]), 1).abs()
        tensor([[[1.],
                 [1.]]])
    """
    rows = vectors.flatten(0, 1)  # (n, N, D) -> (n*N, D)
    if centre:
        rows = rows - rows.mean(dim=0)
    _, directions = torch.linalg.eigh(rows.double().T @ rows.double())  # the largest last, (D, D)
    turned = rows @ directions[:, -count:].flip(1).float()  # (n*N, D) -> (n*N, count)
    return turned.unflatten(0, vectors.shape[:2])


def patch_colours(features: torch.Tensor, grid_size: tuple[int, int]) -> torch.Tensor:
    """Show the three leading directions of all patches together as red, green and blue.

    Args:
        features: (n, N, D); one analysis for all, so that a colour means the same in each.
        grid_size: (gh, gw).

    Returns:
        (n, 3, gh, gw) in [0, 1]; of each direction the outermost 2 % at both ends are cut.

    Reference: Oquab et al. 2023, figure 1. Departure: they first drop the background.
    """
    turned = leading_directions(features, 3)
    low, high = (turned.flatten(0, 1).quantile(q, dim=0) for q in (0.02, 0.98))
    return ((turned - low) / (high - low)).clamp(0, 1).mT.unflatten(-1, grid_size)
