"""Right answers to 6.5 effective_receptive_field, and what becomes of its mutants."""

import torch


def by_backward(feature_map, images):
    pixels = images.clone()
    pixels.requires_grad_(True)
    cells = feature_map(pixels)
    cells[..., cells.shape[-2] // 2, cells.shape[-1] // 2].sum().backward()
    size = pixels.grad.abs().sum(1).mean(0)
    return size / torch.max(size)


def image_by_image(feature_map, images):
    total = 0
    for image in images:
        pixels = image[None].detach().requires_grad_()
        cell = feature_map(pixels)[0, :, :, :]
        cell = cell[:, (cell.shape[1] - 1) // 2, (cell.shape[2] - 1) // 2]
        (gradient,) = torch.autograd.grad(cell.sum(), pixels)
        total = total + gradient[0].abs().sum(dim=0)
    return total / total.max()


def by_a_mask(feature_map, images):
    pixels = images.detach().clone().requires_grad_()
    features = feature_map(pixels)
    mask = torch.zeros_like(features)
    mask[:, :, features.size(2) // 2, features.size(3) // 2] = 1
    features.backward(mask)
    return pixels.grad.norm(p=1, dim=1).mean(dim=0).div(pixels.grad.norm(p=1, dim=1).mean(0).amax())


def by_vjp(feature_map, images):
    def cell(x):
        features = feature_map(x)
        return features[:, :, features.shape[2] // 2, features.shape[3] // 2].sum(dim=1)

    out, pull = torch.func.vjp(cell, images)
    size = torch.einsum("bchw->hw", pull(torch.ones_like(out))[0].abs())
    return size / size.max()


EQUIVALENT = {
    "a common factor falls out in the division": (
        "sum(dim=0)",
        "().mean(dim=1)",
        "[:, :, gh // 2, gw // 2].mean",
    ),
    "the middle, counted from the end": ("gh // -2, gw", "gh // 2, gw // -2"),
    "a detached tensor is a leaf of its own": ("images = images.detach().requires_grad_()",),
}


LEFT_OPEN = {
    "nothing is said about images that carry a graph, or about calls under no_grad": (
        "images = images.clone().requires_grad_()",
        "images = images.detach().clone().requires_grad_(); features = feature_map(images); "
        "gh, gw = features.shape[-2:]; centre = features[:, :, gh // 2, gw // 2].sum()",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(images) == 1",
    "images.shape[1] == 1",
    "images.shape[2] == images.shape[3]",
)
