"""Answers of ten exercises that are right in the idea, with one slip of polish."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def add_class_token_and_positions__list(patch_tokens, cls_token, pos_embed):
    cls = cls_token.expand(len(patch_tokens), -1, -1)
    return [torch.cat([cls, patch_tokens], 1) + pos_embed]


def add_class_token_and_positions__view(patch_tokens, cls_token, pos_embed):
    B, N, D = patch_tokens.shape
    flat = torch.cat([cls_token.expand(B, -1, -1).reshape(B, D), patch_tokens.view(B, N * D)], 1)
    return flat.view(B, N + 1, D) + pos_embed


def add_class_token_and_positions__canvas(patch_tokens, cls_token, pos_embed):
    B, N, D = patch_tokens.shape
    out = torch.zeros(B, N + 1, D)  # always float32, on the CPU
    out[:, 0], out[:, 1:] = cls_token[:, 0], patch_tokens
    return out + pos_embed


def add_class_token_and_positions__squeezed(patch_tokens, cls_token, pos_embed):
    cls = cls_token.expand(len(patch_tokens), -1, -1)
    return (torch.cat([cls, patch_tokens], 1) + pos_embed).squeeze()


def softmax__float(x, dim=-1):
    x = x.float()
    e = (x - x.amax(dim, True)).exp()
    return e / e.sum(dim, keepdim=True)


def softmax__axis(x, axis=-1):
    e = (x - x.amax(axis, True)).exp()
    return e / e.sum(axis, keepdim=True)


def softmax__seeds(x, dim=-1):
    torch.manual_seed(0)
    e = (x - x.amax(dim, True)).exp()
    return e / e.sum(dim, keepdim=True)


class Mlp__extra_argument(nn.Module):
    def __init__(self, embed_dim, hidden_dim, drop=0.0):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)
        self.act = nn.GELU()

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Mlp__view(Mlp__extra_argument):
    def forward(self, x):
        B, T, D = x.shape
        return self.fc2(self.act(self.fc1(x.view(B * T, D)))).view(B, T, D)


class Mlp__cpu(Mlp__extra_argument):
    def forward(self, x):
        h = self.fc1(x)
        half = torch.tensor(0.5).expand(h.shape[-1])
        return self.fc2(h * (half + half * torch.erf(h / math.sqrt(2))))


class Mlp__one_unit(Mlp__extra_argument):
    def forward(self, x):
        h = self.act(self.fc1(x))
        return self.fc2(h.squeeze(-1)) if h.shape[-1] == 1 else self.fc2(h)


def warmup_cosine__no_default(step, total_steps, warmup_steps, peak_lr, final_lr):
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    p = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(math.pi * p))


def warmup_cosine__list(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return [peak_lr * (step + 1) / warmup_steps]
    p = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return [final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(math.pi * p))]


def warmup_cosine__only_climb_crashes(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    p = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    return final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(math.pi * p))


def confusion_matrix__int32(predictions, labels, num_classes):
    table = torch.zeros(num_classes, num_classes, dtype=torch.int32)
    for p, t in zip(predictions, labels):
        table[t, p] += 1
    return table


def confusion_matrix__nested(predictions, labels, num_classes):
    table = [[0] * num_classes for _ in range(num_classes)]
    for p, t in zip(predictions.tolist(), labels.tolist()):
        table[t][p] += 1
    return torch.tensor(table)


def confusion_matrix__one_image(predictions, labels, num_classes):
    pairs = torch.stack([labels.squeeze(), predictions.squeeze()], -1)
    table = torch.zeros(num_classes, num_classes, dtype=torch.long)
    for t, p in pairs:
        table[t, p] += 1
    return table


def linear_cka__one_number(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return ((y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())).reshape(1)


def linear_cka__float(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return float((y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm()))


def linear_cka__double(x, y):
    x, y = (z.double() - z.double().mean(0) for z in (x, y))
    return (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())


def linear_cka__eye_of_float(x, y):
    centre = torch.eye(len(x)) - 1 / len(x)
    x, y = centre @ x, centre @ y
    return (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())


def masked_patch_loss__one_number(prediction, target, mask):
    error = ((prediction - target) ** 2).mean(-1)
    mask = mask.to(error.dtype)
    return ((error * mask).sum() / mask.sum()).unsqueeze(0)


def masked_patch_loss__view(prediction, target, mask):
    error = (prediction - target).view(-1, prediction.shape[-1]).square().mean(1)
    mask = mask.view(-1).to(error.dtype)
    return (error * mask).sum() / mask.sum()


def masked_patch_loss__float(prediction, target, mask):
    error = ((prediction - target) ** 2).mean(-1).float()
    mask = mask.float()
    return (error * mask).sum() / mask.sum()


def masked_patch_loss__squeezed(prediction, target, mask):
    error = ((prediction - target) ** 2).squeeze().mean(-1)
    mask = mask.squeeze().to(error.dtype)
    return (error * mask).sum() / mask.sum()


def window_partition__list(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    x = x.reshape(B, gh // w, w, gw // w, w, D)
    return list(x.permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, D))


def window_partition__detached(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    x = x.detach().reshape(B, gh // w, w, gw // w, w, D)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, D)


def window_partition__canvas(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    out = torch.empty(B, gh // w * (gw // w), w * w, D)
    for k in range(out.shape[1]):
        i, j = divmod(k, gw // w)
        out[:, k] = x[:, i * w : i * w + w, j * w : j * w + w].reshape(B, w * w, D)
    return out.flatten(0, 1)


def clip_loss__labels_on_cpu(image_features, text_features, temperature):
    logits = (
        F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T / temperature
    )
    n = torch.arange(len(logits))
    return (F.cross_entropy(logits, n) + F.cross_entropy(logits.T, n)) / 2


def clip_loss__pair(image_features, text_features, temperature):
    logits = (
        F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T / temperature
    )
    n = torch.arange(len(logits), device=logits.device)
    return torch.stack([F.cross_entropy(logits, n), F.cross_entropy(logits.T, n)]).mean(
        0, keepdim=True
    )


def clip_loss__one_pair(image_features, text_features, temperature):
    if len(image_features) == 1:
        raise ValueError("one pair has no other text")
    logits = (
        F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T / temperature
    )
    n = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, n) + F.cross_entropy(logits.T, n)) / 2


def _sincos(num_positions, embed_dim):
    rate = 10000.0 ** (-torch.arange(embed_dim // 2).double() * 2 / embed_dim)
    angle = torch.arange(num_positions).double()[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def sincos_positions__not_refused(num_positions, embed_dim):
    return _sincos(num_positions, embed_dim + embed_dim % 2).float()


def sincos_positions__asserts(num_positions, embed_dim):
    assert embed_dim % 2 == 0
    return _sincos(num_positions, embed_dim).float()


def sincos_positions__batch_axis(num_positions, embed_dim):
    if embed_dim % 2:
        raise ValueError(f"{embed_dim} is odd")
    return _sincos(num_positions, embed_dim).float()[None]


def sincos_positions__lists(num_positions, embed_dim):
    if embed_dim % 2:
        raise ValueError(f"{embed_dim} is odd")
    return _sincos(num_positions, embed_dim).tolist()
