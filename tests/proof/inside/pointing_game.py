"""Right answers to 5.8 pointing_game, and what becomes of its mutants."""

import torch
import torch.nn.functional as F

from proof.reasons import TENSOR_AS_NUMBER


def by_loops(attention, masks):
    B, gh, gw = attention.shape
    P, Q, hits = masks.shape[1] // gh, masks.shape[2] // gw, 0
    for image, mask in zip(attention, masks, strict=True):
        row, column = divmod(int(image.argmax()), gw)
        hits += bool(mask[row * P : (row + 1) * P, column * Q : (column + 1) * Q].any())
    return hits / B


def by_pooling(attention, masks):
    P = [side // cells for side, cells in zip(masks.shape[1:], attention.shape[1:], strict=True)]
    touched = F.max_pool2d(masks[:, None].float(), P)[:, 0]
    hottest = attention.flatten(1).argmax(1)
    return touched.flatten(1)[torch.arange(len(touched), device=touched.device), hottest].mean()


def by_enlarging(attention, masks):
    hottest = attention.flatten(1).argmax(1)
    first = F.one_hot(hottest, attention[0].numel()).bool().view_as(attention)
    P, Q = masks.shape[1] // attention.shape[1], masks.shape[2] // attention.shape[2]
    pixels = first.repeat_interleave(P, 1).repeat_interleave(Q, 2)
    return (pixels & masks).flatten(1).any(1).float().mean().item()


def by_sorting(attention, masks):
    P = masks.shape[1] // attention.shape[1], masks.shape[2] // attention.shape[2]
    order = attention.flatten(1).sort(dim=1, descending=True, stable=True).indices[:, 0]
    cells = F.unfold(masks[:, None].double(), P, stride=P).sum(dim=1)  # (B, N)
    return (cells.gather(1, order[:, None]) > 0).double().mean()


def by_numpy(attention, masks):
    maps, objects = attention.detach().cpu().numpy(), masks.cpu().numpy()
    (B, gh, gw), (_, H, W) = maps.shape, objects.shape
    touched = objects.reshape(B, gh, H // gh, gw, W // gw).sum((2, 4)).reshape(B, -1) > 0
    return touched[range(B), maps.reshape(B, -1).argmax(1)].mean()


EQUIVALENT = {
    "shares of a few images need no more digits": ("float().mean",),
}


LEFT_OPEN = {
    TENSOR_AS_NUMBER: ("return touched.flatten(1).gather(1, hottest).double().mean()",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(masks) == 1",
    "attention.shape[1] == attention.shape[2]",
    "attention.shape[1:] == masks.shape[1:]",
)
