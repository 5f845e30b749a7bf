"""Right answers to the exercises of notebook 04, each by another road."""

import math

import numpy as np
import torch
import torch.nn.functional as F

# --- cross_entropy ------------------------------------------------------------------------------


def cross_entropy_by_nll(logits, labels, label_smoothing=0.0):
    """Let nll_loss pick."""
    log_probs = F.log_softmax(logits, dim=1)
    uniform = -log_probs.sum(1).mean() / logits.size(1)
    return (1 - label_smoothing) * F.nll_loss(log_probs, labels) + label_smoothing * uniform


def cross_entropy_by_target_table(logits, labels, label_smoothing=0.0):
    """Write the smoothed target out and multiply."""
    K = logits.shape[-1]
    target = torch.full_like(logits, label_smoothing / K)
    target[torch.arange(len(labels)), labels] += 1 - label_smoothing
    shifted = logits - logits.max(dim=-1, keepdim=True).values
    return (target * (shifted.exp().sum(-1, keepdim=True).log() - shifted)).sum(-1).mean()


def cross_entropy_by_loop(logits, labels, label_smoothing=0.0):
    """Go through the images."""
    losses = []
    for row, label in zip(logits, labels, strict=True):
        prices = torch.logsumexp(row, 0) - row
        losses.append(prices[label] * (1 - label_smoothing) + label_smoothing * prices.mean())
    return torch.stack(losses).mean()


def cross_entropy_in_float64(logits, labels, label_smoothing=0.0):
    """Compute in double precision and cast back."""
    exact = logits.double()
    one_hot = F.one_hot(labels, exact.shape[1]).double()
    target = (1 - label_smoothing) * one_hot + label_smoothing / exact.shape[1]
    loss = exact.logsumexp(1).sum() - torch.einsum("bk,bk->", target, exact)
    return (loss / len(exact)).to(logits.dtype)


def cross_entropy_by_divergence(logits, labels, label_smoothing=0.0):
    """Cross-entropy is divergence plus entropy."""
    eye = torch.eye(logits.shape[1], dtype=logits.dtype, device=logits.device)
    target = torch.lerp(eye, torch.full_like(eye, 1 / len(eye)), label_smoothing)[labels]
    divergence = F.kl_div(logits.log_softmax(-1), target, reduction="batchmean")
    return divergence - torch.xlogy(target, target).sum() / len(target)


# --- warmup_cosine ------------------------------------------------------------------------------


def warmup_cosine_with_numpy(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    """Build the whole table and look the step up."""
    climb = peak_lr * np.arange(1, warmup_steps + 1) / max(warmup_steps, 1)
    turn = np.linspace(0, np.pi, total_steps - warmup_steps + 1)[1:]
    fall = final_lr + (peak_lr - final_lr) * (1 + np.cos(turn)) / 2
    return np.concatenate([climb, fall])[step]


def warmup_cosine_with_torch(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    """Use 0-d tensors and the half-angle form."""
    done = torch.tensor(step + 1.0, dtype=torch.float64)
    if done <= warmup_steps:
        return done / warmup_steps * peak_lr
    progress = (done - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * torch.cos(progress * math.pi / 2) ** 2


def warmup_cosine_by_mixing(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    """Mix both rates, weights by sine."""
    if warmup_steps > step:
        return (step + 1) * (peak_lr / warmup_steps)
    left = (total_steps - 1 - step) / (total_steps - warmup_steps)
    weight = math.sin(math.pi / 2 * left) ** 2
    return weight * peak_lr + (1 - weight) * final_lr


def warmup_cosine_by_conditional(
    step: int, total_steps: int, warmup_steps: int, peak_lr: float, final_lr: float = 0.0
) -> np.float32:
    """One expression in single precision."""
    return np.float32(
        peak_lr * (step + 1) / warmup_steps
        if step + 1 <= warmup_steps
        else (peak_lr + final_lr) / 2
        + (peak_lr - final_lr)
        / 2
        * math.cos(math.pi * (step - warmup_steps + 1) / (total_steps - warmup_steps))
    )


TOKENS = ("cls_token", "pos_embed")


ALTERNATIVES = {
    "cross_entropy": [
        cross_entropy_by_nll,
        cross_entropy_by_target_table,
        cross_entropy_by_loop,
        cross_entropy_in_float64,
        cross_entropy_by_divergence,
    ],
    "warmup_cosine": [
        warmup_cosine_with_numpy,
        warmup_cosine_with_torch,
        warmup_cosine_by_mixing,
        warmup_cosine_by_conditional,
    ],
}
