"""Right answers to 4.4 warmup_cosine, and what becomes of its mutants."""

import math

import numpy as np
import torch


def with_numpy(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    climb = peak_lr * np.arange(1, warmup_steps + 1) / max(warmup_steps, 1)
    turn = np.linspace(0, np.pi, total_steps - warmup_steps + 1)[1:]
    fall = final_lr + (peak_lr - final_lr) * (1 + np.cos(turn)) / 2
    return np.concatenate([climb, fall])[step]


def with_torch(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    done = torch.tensor(step + 1.0, dtype=torch.float64)
    if done <= warmup_steps:
        return done / warmup_steps * peak_lr
    progress = (done - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * torch.cos(progress * math.pi / 2) ** 2


def by_mixing(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if warmup_steps > step:
        return (step + 1) * (peak_lr / warmup_steps)
    left = (total_steps - 1 - step) / (total_steps - warmup_steps)
    weight = math.sin(math.pi / 2 * left) ** 2
    return weight * peak_lr + (1 - weight) * final_lr


def in_single_precision(
    step: int, total_steps: int, warmup_steps: int, peak_lr: float, final_lr: float = 0.0
) -> np.float32:
    return np.float32(
        peak_lr * (step + 1) / warmup_steps
        if step + 1 <= warmup_steps
        else (peak_lr + final_lr) / 2
        + (peak_lr - final_lr)
        / 2
        * math.cos(math.pi * (step - warmup_steps + 1) / (total_steps - warmup_steps))
    )


EQUIVALENT = {
    "a cosine has no sign": ("warmup_steps - (step + 1)", "warmup_steps - total_steps"),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "step == 0",
    "warmup_steps == 0",
    "warmup_steps == 1",
    "total_steps == 1",
    "final_lr == 0",
    "final_lr == peak_lr",
    "step == warmup_steps",
    "step == total_steps - 1",
)
