"""Right answers, chapter 06: ViT and CNN."""

import math

import torch
import torch.nn.functional as F


# --------------------------------------------------------- receptive_field


def receptive_field__forward(kernel_sizes, strides):
    field, jump = 1, 1
    for k, s in zip(kernel_sizes, strides):
        field += (k - 1) * jump
        jump *= s
    return field


def receptive_field__backward(kernel_sizes, strides):
    size = 1
    for k, s in reversed(list(zip(kernel_sizes, strides))):
        size = (size - 1) * s + k
    return size


def receptive_field__sum(kernel_sizes, strides):
    return 1 + sum((k - 1) * math.prod(strides[:i]) for i, k in enumerate(kernel_sizes))


# ----------------------------------------------- effective_receptive_field


def effective_receptive_field__grad(feature_map, images):
    pixels = images.detach().clone().requires_grad_()
    features = feature_map(pixels)
    gh, gw = features.shape[-2:]
    number = features[:, :, gh // 2, gw // 2].sum()
    (gradient,) = torch.autograd.grad(number, pixels)
    field = gradient.abs().sum(dim=1).mean(dim=0)
    return field / field.max()


def effective_receptive_field__backward(feature_map, images):
    x = images.detach().clone()
    x.requires_grad = True
    with torch.enable_grad():
        out = feature_map(x)
        centre = out[..., out.size(-2) // 2, out.size(-1) // 2]
        centre.sum().backward(inputs=[x])
    saliency = torch.einsum("bchw->hw", x.grad.abs()) / x.shape[0]
    return saliency / saliency.amax()


def effective_receptive_field__images(feature_map, images):
    total = torch.zeros(images.shape[-2:], dtype=images.dtype, device=images.device)
    for i in range(images.shape[0]):
        image = images[i : i + 1].clone().detach().requires_grad_(True)
        fmap = feature_map(image)
        _, _, gh, gw = fmap.shape
        cell = sum(fmap[0, c, (gh - 1) // 2, (gw - 1) // 2] for c in range(fmap.shape[1]))
        g = torch.autograd.grad(cell, image)[0]
        total = total + g[0].abs().sum(dim=0)
    average = total / images.shape[0]
    return average / average.max()


# ------------------------------------------------------- shift_consistency


def shift_consistency__plain(model, images, shift):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            before = model(images).argmax(dim=1)
            moved = torch.roll(images, shifts=tuple(shift), dims=(2, 3))
            after = model(moved).argmax(dim=1)
    finally:
        for m, mode in modes:
            m.training = mode
    return (before == after).float().mean().item()


@torch.no_grad()
def shift_consistency__decorator(model, images, shift):
    dy, dx = shift
    remembered = {m: m.training for m in model.modules()}
    model.eval()
    n = images.shape[0]
    logits = model(torch.cat([images, images.roll(dy, dims=-2).roll(dx, dims=-1)]))
    for m, training in remembered.items():
        m.training = training
    a, b = logits[:n].argmax(-1), logits[n:].argmax(-1)
    return (a == b).sum().item() / n


@torch.inference_mode()
def shift_consistency__index(model, images, shift):
    dy, dx = shift
    H, W = images.shape[-2:]
    rows = (torch.arange(H, device=images.device) - dy) % H
    cols = (torch.arange(W, device=images.device) - dx) % W
    modules = list(model.modules())
    flags = [m.training for m in modules]
    model.eval()
    first = model(images).max(1).indices
    second = model(images[:, :, rows][:, :, :, cols]).max(1).indices
    for m, flag in zip(modules, flags):
        m.training = flag
    return torch.eq(first, second).double().mean()


# --------------------------------------------------------- shuffle_patches


def shuffle_patches__loops(images, patch_size, permutation):
    P = patch_size
    H, W = images.shape[-2:]
    gw = W // P
    out = torch.empty_like(images)
    for i, j in enumerate(permutation.tolist()):
        r, c = divmod(i, gw)
        r2, c2 = divmod(j, gw)
        out[:, :, r * P : (r + 1) * P, c * P : (c + 1) * P] = images[
            :, :, r2 * P : (r2 + 1) * P, c2 * P : (c2 + 1) * P
        ]
    return out


def shuffle_patches__unfold(images, patch_size, permutation):
    columns = F.unfold(images, patch_size, stride=patch_size)  # (B, C*P*P, N)
    columns = columns[:, :, permutation]
    return F.fold(columns, images.shape[-2:], patch_size, stride=patch_size)


def _patchify(images, P):
    B, C, H, W = images.shape
    if H % P or W % P:
        raise ValueError(f"{H} x {W} is not divisible by {P}")
    x = images.reshape(B, C, H // P, P, W // P, P)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, (H // P) * (W // P), C * P * P)


def _unpatchify(patches, P, image_size):
    H, W = image_size
    B = patches.shape[0]
    x = patches.reshape(B, H // P, W // P, -1, P, P)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(B, -1, H, W)


def shuffle_patches__parts(images, patch_size, permutation):
    patches = _patchify(images, patch_size)
    shuffled = patches.index_select(1, permutation.to(images.device))
    return _unpatchify(shuffled, patch_size, images.shape[-2:])


# -------------------------------------------------------------- linear_cka


def linear_cka__formula(x, y):
    x = x - x.mean(dim=0, keepdim=True)
    y = y - y.mean(dim=0, keepdim=True)
    cross = torch.linalg.norm(y.T @ x) ** 2
    return cross / (torch.linalg.norm(x.T @ x) * torch.linalg.norm(y.T @ y))


def linear_cka__gram(x, y):
    x = x - x.mean(0)
    y = y - y.mean(0)
    K = x @ x.T
    L = y @ y.T
    return (K * L).sum() / ((K * K).sum().sqrt() * (L * L).sum().sqrt())


def _squared_frobenius(a, b):
    return torch.einsum("ni,nj->ij", a, b).square().sum()


def linear_cka__double(x, y):
    a, b = x.double(), y.double()
    a = a - a.sum(0) / a.shape[0]
    b = b - b.sum(0) / b.shape[0]
    similarity = (
        _squared_frobenius(b, a) / (_squared_frobenius(a, a) * _squared_frobenius(b, b)).sqrt()
    )
    return similarity.to(x.dtype)
