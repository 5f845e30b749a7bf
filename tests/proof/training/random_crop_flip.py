"""Right answers to 4.7 random_crop_flip, and what becomes of its mutants."""

import torch
import torch.nn.functional as F

from proof.reasons import DEFAULT


def by_loop(images, padding, generator):
    H, W = images.shape[2:]
    on_cpu = {"generator": generator, "device": generator.device}
    padded = F.pad(images.double(), [padding] * 4, mode="reflect").to(images.dtype)
    results = []
    for image in padded:
        top, left = torch.randint(2 * padding + 1, (2,), **on_cpu).tolist()
        image = image[:, top : top + H, left : left + W]
        if torch.rand((), **on_cpu).item() < 0.5:
            image = torch.flip(image, dims=[-1])
        results.append(image)
    return torch.stack(results)


def by_unfold(images, padding, generator):
    B, C, H, W = images.shape
    side = 2 * padding + 1
    pick = torch.randint(0, 2 * side * side, (B,), generator=generator).to(images.device)
    padded = F.pad(images.float(), (padding, padding, padding, padding), "reflect")
    if images.dtype == torch.float64:
        padded = F.pad(images, (padding, padding, padding, padding), "reflect")
    windows = padded.unfold(2, H, 1).unfold(3, W, 1)  # (B, C, side, side, H, W)
    chosen = windows[torch.arange(B), :, pick // 2 // side, pick // 2 % side]
    mirrored = (pick % 2).bool()[:, None, None, None]
    return torch.where(mirrored, chosen.flip(3), chosen).to(images.dtype)


def by_gather(images, padding, generator):
    B, C, H, W = images.shape
    out = images.clone()
    coins = torch.randint(2, (B,), generator=generator).bool().to(images.device)
    out[coins] = out[coins].flip(-1)

    def shifted(size):
        start = torch.randint(-padding, padding + 1, (B, 1), generator=generator)
        index = (start + torch.arange(size)).abs()
        return torch.minimum(index, 2 * (size - 1) - index).to(images.device)

    rows = shifted(H)[:, None, :, None].expand(B, C, H, W)
    columns = shifted(W)[:, None, None, :].expand(B, C, H, W)
    return out.gather(2, rows).gather(3, columns)


def by_concatenation(images, padding, generator):
    p, H, W = padding, images.shape[2], images.shape[3]
    x = images
    if p:
        x = torch.cat([x[:, :, 1 : p + 1].flip(2), x, x[:, :, -p - 1 : -1].flip(2)], dim=2)
        x = torch.cat([x[..., 1 : p + 1].flip(3), x, x[..., -p - 1 : -1].flip(3)], dim=3)
    out = torch.empty_like(images)
    for i in range(len(images)):
        dy = int(torch.randint(0, 2 * p + 1, (1,), generator=generator))
        dx = int(torch.randint(0, 2 * p + 1, (1,), generator=generator))
        window = x[i].roll((-dy, -dx), (1, 2))[:, :H, :W]
        heads = bool(torch.randint(0, 2, (1,), generator=generator))
        out[i] = window.flip(2) if heads else window
    return out


EQUIVALENT = {
    DEFAULT: ("(2 * padding + 1, (B, 1), **draw)", "columns[:, None]"),
    "reflect begins with the absolute value": ("= padding -",),
    "the offset drawn is 2*padding minus the other, and both are as likely": ("- torch.arange",),
    "the other side of a fair coin": (
        "(B, 1, **draw) >",
        "(B, 1, **draw) <= 0",
        "flip, columns, columns.flip",
    ),
    "an index may live on the CPU": ("torch.arange(B)", "B, device=generator"),
}


LEFT_OPEN = {
    "nothing is said about the layout in memory": ("return picked.permute(0, 3, 1, 2)",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "padding == 0",
    "len(images) == 1",
    "images.shape[1] == 1",
    "images.shape[2] == images.shape[3]",
)
