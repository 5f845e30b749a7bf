"""Plainly wrong answers of ten exercises."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def add_class_token_and_positions__last(patch_tokens, cls_token, pos_embed):
    return torch.cat([patch_tokens, cls_token.expand(len(patch_tokens), -1, -1)], 1) + pos_embed


def add_class_token_and_positions__no_positions(patch_tokens, cls_token, pos_embed):
    return torch.cat([cls_token.expand(len(patch_tokens), -1, -1), patch_tokens], 1)


def add_class_token_and_positions__no_expand(patch_tokens, cls_token, pos_embed):
    return torch.cat([cls_token, patch_tokens], 1) + pos_embed


def add_class_token_and_positions__times(patch_tokens, cls_token, pos_embed):
    return torch.cat([cls_token.expand(len(patch_tokens), -1, -1), patch_tokens], 1) * pos_embed


def softmax__naive(x, dim=-1):
    return x.exp() / x.exp().sum(dim, keepdim=True)


def softmax__no_keepdim(x, dim=-1):
    e = (x - x.max()).exp()
    return e / e.sum(dim)


def softmax__sigmoid(x, dim=-1):
    return torch.sigmoid(x)


def softmax__only_exp(x, dim=-1):
    return (x - x.amax(dim, True)).exp()


class Mlp__relu(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


class Mlp__no_bend(Mlp__relu):
    def forward(self, x):
        return self.fc2(self.fc1(x))


class Mlp__residual(Mlp__relu):
    def forward(self, x):
        return x + self.fc2(F.gelu(self.fc1(x)))


class Mlp__bend_last(Mlp__relu):
    def forward(self, x):
        return F.gelu(self.fc2(F.gelu(self.fc1(x))))


def warmup_cosine__constant(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    return peak_lr


def warmup_cosine__linear(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    p = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return peak_lr + (final_lr - peak_lr) * p


def warmup_cosine__from_zero(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return peak_lr * step / warmup_steps
    p = (step - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(math.pi * p))


def warmup_cosine__degrees(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    p = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(180 * p))


def confusion_matrix__columns_truth(predictions, labels, num_classes):
    table = torch.zeros(num_classes, num_classes, dtype=torch.long)
    for p, t in zip(predictions, labels):
        table[p, t] += 1
    return table


def confusion_matrix__shares(predictions, labels, num_classes):
    table = torch.zeros(num_classes, num_classes)
    for p, t in zip(predictions, labels):
        table[t, p] += 1
    return table / table.sum(1, keepdim=True)


def confusion_matrix__diagonal(predictions, labels, num_classes):
    right = labels[labels == predictions]
    return torch.diag(torch.bincount(right, minlength=num_classes))


def confusion_matrix__once(predictions, labels, num_classes):
    table = torch.zeros(num_classes, num_classes, dtype=torch.long)
    table[labels, predictions] += 1
    return table


def linear_cka__not_centred(x, y):
    return (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())


def linear_cka__not_squared(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return (y.T @ x).norm() / ((x.T @ x).norm() * (y.T @ y).norm())


def linear_cka__rows_centred(x, y):
    x, y = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
    return (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())


def linear_cka__norms_of_features(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return (y.T @ x).norm() ** 2 / (x.norm() * y.norm())


def masked_patch_loss__all(prediction, target, mask):
    return ((prediction - target) ** 2).mean()


def masked_patch_loss__visible(prediction, target, mask):
    error = ((prediction - target) ** 2).mean(-1)
    seen = 1 - mask.float()
    return (error * seen).sum() / seen.sum()


def masked_patch_loss__over_all(prediction, target, mask):
    return (((prediction - target) ** 2).mean(-1) * mask).mean()


def masked_patch_loss__absolute(prediction, target, mask):
    return ((prediction - target).abs().mean(-1) * mask).sum() / mask.sum()


def window_partition__reshape(x, window_size):
    return x.reshape(-1, window_size**2, x.shape[-1])


def window_partition__transposed(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    return x.reshape(B, gh // w, w, gw // w, w, D).permute(0, 3, 1, 2, 4, 5).reshape(-1, w * w, D)


def window_partition__batch_inside(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    return x.reshape(B, gh // w, w, gw // w, w, D).permute(1, 3, 0, 2, 4, 5).reshape(-1, w * w, D)


def window_partition__number_of_windows(x, window_size):
    B, gh, gw, D = x.shape
    h, v = gh // window_size, gw // window_size
    x = x.reshape(B, window_size, h, window_size, v, D)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window_size**2, D)


def clip_loss__one_way(image_features, text_features, temperature):
    logits = (
        F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T / temperature
    )
    return F.cross_entropy(logits, torch.arange(len(logits)))


def clip_loss__raw(image_features, text_features, temperature):
    logits = image_features @ text_features.T / temperature
    n = torch.arange(len(logits))
    return (F.cross_entropy(logits, n) + F.cross_entropy(logits.T, n)) / 2


def clip_loss__multiplied(image_features, text_features, temperature):
    logits = (
        F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T * temperature
    )
    n = torch.arange(len(logits))
    return (F.cross_entropy(logits, n) + F.cross_entropy(logits.T, n)) / 2


def clip_loss__added(image_features, text_features, temperature):
    logits = (
        F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T / temperature
    )
    n = torch.arange(len(logits))
    return F.cross_entropy(logits, n) + F.cross_entropy(logits.T, n)


def _sincos(num_positions, embed_dim, base=10000.0, step=2.0, start=0):
    if embed_dim % 2:
        raise ValueError(f"{embed_dim} is odd")
    rate = base ** (-torch.arange(embed_dim // 2).double() * step / embed_dim)
    angle = (torch.arange(num_positions).double() + start)[:, None] * rate
    return angle.sin().float(), angle.cos().float()


def sincos_positions__halves(num_positions, embed_dim):
    return torch.cat(_sincos(num_positions, embed_dim), 1)


def sincos_positions__cosine_first(num_positions, embed_dim):
    sin, cos = _sincos(num_positions, embed_dim)
    return torch.stack([cos, sin], -1).flatten(1)


def sincos_positions__from_one(num_positions, embed_dim):
    return torch.stack(_sincos(num_positions, embed_dim, start=1), -1).flatten(1)


def sincos_positions__one_frequency(num_positions, embed_dim):
    return torch.stack(_sincos(num_positions, embed_dim, base=1.0), -1).flatten(1)
