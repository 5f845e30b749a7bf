"""Right answers to 9.1 interpolate_positions, and what becomes of its mutants."""

import torch
import torch.nn.functional as F

from proof.reasons import DEFAULT


def by_steps(pos_embed, new_grid_size, num_prefix_tokens=1):
    prefix = pos_embed[:, :num_prefix_tokens]
    rest = pos_embed[:, num_prefix_tokens:]
    side = round(rest.shape[1] ** 0.5)
    if side**2 != rest.shape[1]:
        raise ValueError(f"{rest.shape[1]} is no square")
    image = rest.transpose(1, 2).unflatten(2, (side, side))
    image = F.interpolate(image, tuple(new_grid_size), mode="bicubic", align_corners=False)
    return torch.cat((prefix, image.flatten(2).mT), dim=1)


def by_resize(pos_embed, new_grid_size, num_prefix_tokens=1):
    *prefix, patches = pos_embed[0].tensor_split([num_prefix_tokens])
    side = int(len(patches) ** 0.5 + 0.5)
    if len(patches) - side * side:
        raise ValueError("no square grid")
    maps = patches.T.reshape(1, -1, side, side)
    maps = torch.nn.Upsample(size=list(new_grid_size), mode="bicubic")(maps)
    return torch.vstack([*prefix, maps[0].permute(1, 2, 0).flatten(0, 1)]).unsqueeze(0)


def _weights(old, new, like):
    """Write the kernel of one axis as a matrix (new, old)."""
    a, matrix = -0.75, torch.zeros(new, old, dtype=torch.float64)
    for i in range(new):
        centre = (i + 0.5) * old / new - 0.5
        left = int(centre // 1)
        for j in range(left - 1, left + 3):
            t = abs(centre - j)
            if t <= 1:
                weight = (a + 2) * t**3 - (a + 3) * t**2 + 1
            else:
                weight = a * (t**3 - 5 * t**2 + 8 * t - 4)
            matrix[i, min(max(j, 0), old - 1)] += weight
    return matrix.to(like)


def by_matrices(pos_embed, new_grid_size, num_prefix_tokens=1):
    parts = [num_prefix_tokens, pos_embed.shape[1] - num_prefix_tokens]
    prefix, patches = pos_embed.split(parts, 1)
    side = int(patches.shape[1] ** 0.5)
    if side * side < patches.shape[1]:
        raise ValueError(f"{side} x {side} leaves rows over")
    down, across = (_weights(side, size, patches) for size in new_grid_size)
    grid = patches.reshape(side, side, -1)
    new = torch.einsum("ai,bj,ijd->abd", down, across, grid)
    return torch.cat([prefix, new.reshape(1, -1, grid.shape[-1])], dim=1)


def by_feature(pos_embed, new_grid_size, num_prefix_tokens=1):
    count = pos_embed.shape[1] - num_prefix_tokens
    side = next((n for n in range(1, count + 1) if n * n == count), None)
    if not side:
        raise ValueError(f"{count} patches make no square")
    images = pos_embed[0, num_prefix_tokens:].T.reshape(-1, 1, side, side)  # one for each feature
    images = F.interpolate(images, size=tuple(new_grid_size), mode="bicubic")
    return torch.cat([pos_embed[0, :num_prefix_tokens], images.flatten(1).T])[None]


EQUIVALENT = {
    "the root is rounded down, never up": ("side * side < N",),
    "there is one table of positions": ("(-1, side, side, D)",),
    DEFAULT: (
        "grid = F.interpolate(grid, size=size, mode='bicubic')",
        "size = new_grid_size",
    ),
    "bicubic gives the old values back where the size is the same": (
        "return pos_embed",
        "if (side,)",
        "(side, side) == tuple()",
        "(side, side) == new_grid_size",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "num_prefix_tokens == 1",
    "num_prefix_tokens == 0",
)
