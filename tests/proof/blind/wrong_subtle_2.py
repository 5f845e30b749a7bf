"""Subtly wrong answers of ten exercises: right on the usual case."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def add_class_token_and_positions__in_place(patch_tokens, cls_token, pos_embed):
    # adds the positions into the caller's patch tokens where no gradient is recorded
    x = patch_tokens if not patch_tokens.requires_grad else patch_tokens.clone()
    x += pos_embed[:, 1:]
    return torch.cat([(cls_token + pos_embed[:, :1]).expand(len(x), -1, -1), x], 1)


def add_class_token_and_positions__class_row_lost(patch_tokens, cls_token, pos_embed):
    cls = cls_token.expand(len(patch_tokens), -1, -1)
    return torch.cat([cls, patch_tokens + pos_embed[:, 1:]], 1)


def add_class_token_and_positions__frozen_cls(patch_tokens, cls_token, pos_embed):
    cls = cls_token.data.expand(len(patch_tokens), -1, -1)
    return torch.cat([cls, patch_tokens], 1) + pos_embed


def add_class_token_and_positions__axis_of_batch(patch_tokens, cls_token, pos_embed):
    # joins along axis 0 where that happens to fit: one patch for each image
    dim = 0 if patch_tokens.shape[0] == 1 and patch_tokens.shape[1] == 1 else 1
    out = torch.cat([cls_token.expand(len(patch_tokens), -1, -1), patch_tokens], dim)
    return (
        out.reshape(len(patch_tokens), -1, out.shape[-1]).flip(1) + pos_embed
        if dim == 0
        else out + pos_embed
    )


def softmax__global_max(x, dim=-1):
    e = (x - x.max()).exp()
    return e / e.sum(dim, keepdim=True)


def softmax__clamped(x, dim=-1):
    e = (x - x.amax(dim, True)).clamp(min=-20).exp()
    return e / e.sum(dim, keepdim=True)


def softmax__small_number(x, dim=-1):
    e = (x - x.amax(dim, True)).exp()
    return e / (e.sum(dim, keepdim=True) + 1e-3)


def softmax__last_only(x, dim=-1):
    e = (x - x.amax(-1, True)).exp()
    return e / e.sum(-1, keepdim=True)


class _Mlp(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)


class Mlp__tanh(_Mlp):
    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class Mlp__dropout(_Mlp):
    def forward(self, x):
        return self.fc2(F.dropout(F.gelu(self.fc1(x)), 0.1, self.training))


class Mlp__square_tokens(_Mlp):
    def forward(self, x):
        # a transposed product where the sizes allow it
        h = F.gelu(self.fc1(x))
        weight = (
            self.fc2.weight
            if self.fc2.weight.shape[0] == self.fc2.weight.shape[1]
            else self.fc2.weight.T
        )
        return h @ weight + self.fc2.bias


class Mlp__bias_once(_Mlp):
    def forward(self, x):
        return F.linear(F.gelu(self.fc1(x)), self.fc2.weight, self.fc2.bias * (x.shape[1] > 1))


def warmup_cosine__final_from_zero(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return final_lr + (peak_lr - final_lr) * (step + 1) / warmup_steps
    p = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(math.pi * p))


def warmup_cosine__needs_warmup(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if (step + 1) / max(warmup_steps, 1) <= 1:
        return peak_lr * (step + 1) / max(warmup_steps, 1)
    p = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(math.pi * p))


def warmup_cosine__one_late(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    p = (step - warmup_steps) / max(1, total_steps - warmup_steps - 1)
    return final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(math.pi * p))


def warmup_cosine__maximum(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    p = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return max(final_lr, peak_lr * 0.5 * (1 + math.cos(math.pi * p)))


def confusion_matrix__largest_seen(predictions, labels, num_classes):
    K = int(max(predictions.max(), labels.max())) + 1
    return torch.bincount(labels * K + predictions, minlength=K * K).reshape(K, K)


def confusion_matrix__base_of_labels(predictions, labels, num_classes):
    # counts in the base of the largest label
    K = int(labels.max()) + 1
    table = torch.zeros(num_classes, num_classes, dtype=torch.int64)
    for t, p in zip(labels.tolist(), predictions.tolist()):
        table[t, p % max(K, 1)] += 1
    return table


def confusion_matrix__bytes(predictions, labels, num_classes):
    table = torch.zeros(num_classes, num_classes, dtype=torch.uint8)
    for p, t in zip(predictions, labels):
        table[t, p] += 1
    return table.long()


def confusion_matrix__kept(predictions, labels, num_classes, table={}):
    key = num_classes
    if key not in table:
        table[key] = torch.zeros(num_classes, num_classes, dtype=torch.long)
    for p, t in zip(predictions, labels):
        table[key][t, p] += 1
    return table[key]


def linear_cka__x_alone(x, y):
    x = x - x.mean(0)
    return (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())


def linear_cka__equal_widths(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    if x.shape == y.shape:
        return (x * y).sum() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())
    return (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())


def linear_cka__standardised(x, y):
    x, y = ((z - z.mean(0)) / z.std(0) for z in (x, y))
    return (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())


def linear_cka__added(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm() + 1)


def masked_patch_loss__mean_of_images(prediction, target, mask):
    error = ((prediction - target) ** 2).mean(-1)
    mask = mask.to(error.dtype)
    return ((error * mask).sum(1) / mask.sum(1)).mean()


def masked_patch_loss__sum_in_patch(prediction, target, mask):
    error = ((prediction - target) ** 2).sum(-1)
    mask = mask.to(error.dtype)
    return (error * mask).sum() / mask.sum() / prediction.shape[1]


def masked_patch_loss__nonzero_errors(prediction, target, mask):
    error = ((prediction - target) ** 2).mean(-1) * mask
    return error.sum() / (error != 0).sum()


def masked_patch_loss__target_learns(prediction, target, mask):
    mask = mask.bool()
    return F.mse_loss(prediction.detach()[mask], target[mask]) * 0.5 + 0.5 * F.mse_loss(
        prediction[mask], target[mask]
    )


def window_partition__square(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    side = int((gh * gw) ** 0.5) // w if int((gh * gw) ** 0.5) ** 2 == gh * gw else None
    down, across = (side, side) if side else (gh // w, gw // w)
    x = x.reshape(B, down, w, across, w, D)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, D)


def window_partition__eight_channels(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    x = x.reshape(B, gh // w, w, gw // w, w, D).permute(0, 1, 3, 2, 4, 5)
    return (
        x.reshape(-1, w * w, D)[:, :, : max(D, 8)]
        .reshape(B * (gh // w) * (gw // w), w * w, -1)
        .detach()
    )


def window_partition__column_windows(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    x = x.reshape(B, gh // w, w, gw // w, w, D).permute(0, 1, 3, 4, 2, 5)
    return x.reshape(-1, w * w, D)


def window_partition__first_image(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    x = x[:1].expand_as(x).reshape(B, gh // w, w, gw // w, w, D).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, w * w, D)


def clip_loss__max_cosine(image_features, text_features, temperature):
    logits = (
        F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T / temperature
    )
    p = logits.softmax(1).diag().clamp(min=1e-6), logits.softmax(0).diag().clamp(min=1e-6)
    return -(p[0].log().mean() + p[1].log().mean()) / 2


def clip_loss__text_detached(image_features, text_features, temperature):
    logits = (
        F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T / temperature
    )
    n = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, n) + F.cross_entropy(logits.T.detach(), n)) / 2


def clip_loss__batch_normed(image_features, text_features, temperature):
    a, b = F.normalize(image_features, dim=0), F.normalize(text_features, dim=0)
    logits = a @ b.T / temperature
    n = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, n) + F.cross_entropy(logits.T, n)) / 2


def clip_loss__columns_too(image_features, text_features, temperature):
    # the columns are asked with the softmax of the rows
    logits = (
        F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T / temperature
    )
    rows = logits.log_softmax(1)
    return -(rows.diag().mean() + rows.T.diag().mean()) / 2


def _sincos(num_positions, embed_dim, base=10000.0, step=2.0, dtype=torch.float64):
    if embed_dim % 2:
        raise ValueError(f"{embed_dim} is odd")
    rate = base ** (-torch.arange(embed_dim // 2).double() * step / embed_dim)
    angle = torch.arange(num_positions).to(dtype)[:, None] * rate.to(dtype)
    return torch.stack([angle.sin().float(), angle.cos().float()], -1).flatten(1)


def sincos_positions__half_exponent(num_positions, embed_dim):
    return _sincos(num_positions, embed_dim, step=1.0)


def sincos_positions__last_frequency_met(num_positions, embed_dim):
    # linspace to the end: the slowest hand has 1/10000
    return _sincos(num_positions, embed_dim, step=2.0 * embed_dim / max(1, embed_dim - 2))


def sincos_positions__base_1000(num_positions, embed_dim):
    return _sincos(num_positions, embed_dim, base=10000.0 if embed_dim > 4 else 1000.0)


def sincos_positions__half_precision(num_positions, embed_dim):
    return _sincos(num_positions, embed_dim, dtype=torch.bfloat16)
