"""What drawn shapes can be asked for besides their class: a caption, a box, a height."""

import math

import torch
import torch.nn.functional as F

from vitedu.data.shapes import SHAPES

COLOURS = ("red", "yellow", "green", "cyan", "blue", "pink")
PLACES = ("top left", "top right", "bottom left", "bottom right")
CAPTIONS = [f"a {c} {s} at the {p}" for s in SHAPES for c in COLOURS for p in PLACES]
VOCABULARY = sorted({word for caption in CAPTIONS for word in caption.split()})


def quarter(masks: torch.Tensor) -> torch.Tensor:
    """Say which quarter holds the middle of the object (n, H, W): 0 to 3, row by row."""
    places = (torch.arange(masks.shape[-1]) + 0.5) / masks.shape[-1]
    share = masks.float() / masks.sum(dim=(1, 2), keepdim=True)
    row, column = (share.sum(dim=2) * places).sum(dim=1), (share.sum(dim=1) * places).sum(dim=1)
    return 2 * (row > 0.5).long() + (column > 0.5).long()


def facts_of(images: torch.Tensor, labels: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Give shape, colour and quarter of each drawing (n, 3, H, W), as numbers (n, 3)."""
    share = masks[:, None] / masks.sum(dim=(1, 2))[:, None, None, None]
    paint = (images * share).sum(dim=(2, 3))  # (n, 3), mean colour of the object
    turn = 2 * math.pi * torch.arange(3) / 3  # red, green and blue stand a third of a circle apart
    hue = torch.atan2((paint * turn.sin()).sum(dim=1), (paint * turn.cos()).sum(dim=1))
    colour = (hue * 6 / (2 * math.pi)).round().long() % 6
    return torch.stack([labels, colour, quarter(masks)], dim=1)


def caption_of(facts: torch.Tensor) -> torch.Tensor:
    """Give the number of the caption (n,), from shape, colour and quarter (n, 3)."""
    return (facts[:, 0] * 6 + facts[:, 1]) * 4 + facts[:, 2]


def boxes_of(masks: torch.Tensor) -> torch.Tensor:
    """Give the box around each object (n, H, W): left, top, right, bottom (n, 4), as shares."""
    S = masks.shape[-1]
    used = torch.stack([masks.any(dim=1), masks.any(dim=2)], dim=1)  # columns, then rows: (n, 2, S)
    low = torch.where(used, torch.arange(S), S).amin(dim=-1)
    high = torch.where(used, torch.arange(S), -1).amax(dim=-1) + 1
    return torch.cat([low, high], dim=1) / S


def depth_of(masks: torch.Tensor, most: int = 8) -> torch.Tensor:
    """Say how far each pixel of an object (n, H, W) is from its edge: peel off layer by layer."""
    inside, height = masks[:, None].float(), torch.zeros(len(masks), 1, *masks.shape[1:])
    for _ in range(most):
        height += inside
        inside = 1 - F.max_pool2d(1 - F.pad(inside, (1, 1, 1, 1)), 3, stride=1)
    return height[:, 0]


def overlap(boxes: torch.Tensor, truth: torch.Tensor) -> float:
    """Divide the area of both boxes (n, 4) by the area of either, averaged."""
    low, high = torch.maximum(boxes[:, :2], truth[:, :2]), torch.minimum(boxes[:, 2:], truth[:, 2:])
    both = (high - low).clamp(min=0).prod(dim=1)
    areas = [(b[:, 2:] - b[:, :2]).clamp(min=0).prod(dim=1) for b in (boxes, truth)]
    return (both / (areas[0] + areas[1] - both)).mean().item()
