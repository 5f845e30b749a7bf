"""Right answers to 7.5 cutmix, and what becomes of its mutants."""

import torch
import torch.nn.functional as F


def _in_image(images, box):
    """Give a mask (H, W) of the pixels in the box."""
    rows = torch.arange(images.shape[-2], device=images.device)
    columns = torch.arange(images.shape[-1], device=images.device)
    in_rows = (rows >= box[0]) & (rows < box[2])
    return in_rows[:, None] & ((columns >= box[1]) & (columns < box[3]))


def by_mask(images, labels, num_classes, box, permutation):
    mask = _in_image(images, box)
    dtype = images.dtype if images.is_floating_point() else torch.float32
    share, one_hot = mask.to(dtype).mean(), F.one_hot(labels, num_classes).to(dtype)
    soft = torch.lerp(one_hot, one_hot[permutation], share)
    return torch.where(mask, images[permutation], images), soft


def by_loop(images, labels, num_classes, box, permutation):
    H, W = images.shape[2:]
    rows = [i for i in range(H) if box[0] <= i < box[2]]
    columns = [j for j in range(W) if box[1] <= j < box[3]]
    kind = images.dtype if images.is_floating_point() else torch.float32
    mixed, soft = [], torch.zeros(len(images), num_classes, dtype=kind, device=images.device)
    for i, j in enumerate(permutation.tolist()):
        image = images[i].clone()
        if rows and columns:
            box_of = (slice(None), slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
            image[box_of] = images[j][box_of]
        mixed.append(image)
        pasted = len(rows) * len(columns) / (H * W)
        soft[i, labels[i]] += 1 - pasted
        soft[i, labels[j]] += pasted
    return torch.stack(mixed), soft


def by_cat(images, labels, num_classes, box, permutation):
    H, W = images.shape[-2:]
    top, bottom = max(0, min(H, box[0])), max(0, min(H, box[2]))
    left, right = max(0, min(W, box[1])), max(0, min(W, box[3]))
    bottom, right = max(top, bottom), max(left, right)
    partner = images[permutation]
    middle = [images[:, :, top:bottom, :left], partner[:, :, top:bottom, left:right]]
    middle = torch.cat([*middle, images[:, :, top:bottom, right:]], dim=3)
    mixed = torch.cat([images[:, :, :top], middle, images[:, :, bottom:]], dim=2)
    keep = 1 - (bottom - top) * (right - left) / (H * W)
    dtype = (images[:1, 0, 0, 0] * 1.0).dtype
    soft = torch.eye(num_classes, device=images.device)[labels].to(dtype)
    return mixed, keep * soft + (1 - keep) * soft[permutation]


def by_counting(images, labels, num_classes, box, permutation):
    mask, mixed = _in_image(images, box), images.clone()
    mixed[:, :, mask] = images[permutation][:, :, mask]
    kind = images.dtype if images.dtype.is_floating_point else torch.float
    soft = torch.zeros(len(images), num_classes, dtype=kind, device=images.device)
    share = mask.sum().item() / mask.numel()
    rows = torch.arange(len(images), device=images.device)
    soft[rows, labels] += 1 - share
    soft[rows, labels[permutation]] += share
    return mixed, soft


EQUIVALENT = {
    "a box has four numbers": ("(box[0], box[-2])",),
    "min and max take their numbers in any order": (
        "min(H, max",
        "min(W, max",
        "max(0, row",
        "max(0, column",
        "max(0, bottom",
        "max(0, right",
    ),
    "a number times whole numbers gives float32": ("dtype = images.dtype",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(images) == 1",
    "images.shape[2] == images.shape[3]",
    "images.dtype == torch.uint8",
)
