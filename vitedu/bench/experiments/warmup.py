"""Does warm-up matter? Both places of the norms, two learning rates each, with and without it.

Role: the arms and one run of section 6 of notebook 04.

A small model learns 128 drawn images by heart, with batches of 32 and gradients clipped to norm 1.
The rate climbs for a third of the steps or not at all, and then stays at its peak. Both runs of a
pair start from the same weights and see the same batches, so their difference is what warm-up did.
"""

from collections.abc import Iterable
from statistics import fmean
from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Measurement, Results
from vitedu.data import load_data
from vitedu.encoder import EncoderBlock
from vitedu.hardware import Profile
from vitedu.options import build_model, preset
from vitedu.training import train_one_epoch, weight_decay_groups
from vitedu.vit import VisionTransformer

PEAKS = (("post-norm", 1e-3), ("post-norm", 3e-3), ("pre-norm", 3e-3), ("pre-norm", 1e-2))
ARMS: dict[str, dict[str, Any]] = {
    f"{norm}, {lr:g}, {'warm-up' if warmup else 'no warm-up'}": {
        "norm": norm,
        "lr": lr,
        "warmup": warmup,
    }
    for norm, lr in PEAKS
    for warmup in (False, True)
}
IMAGES, BATCH_SIZE = 128, 32
WINDOW, GOAL = 10, 1.0  # the goal is met when the mean loss of ten steps is below one nat


class PostNormBlock(EncoderBlock):
    """The block of 2017: the sum is normalised, not the branch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        x = self.norm1(x + self.attn(x)[0])
        return self.norm2(x + self.mlp(x))


def build(norm: str, seed: int) -> VisionTransformer:
    """Make a small model; one seed gives the same weights for either norm."""
    torch.manual_seed(seed)
    config = preset("vit_micro_patch8_32", embed_dim=64, depth=6, num_heads=4)
    model = build_model(config)
    if norm == "post-norm":
        blocks = [PostNormBlock(config.embed_dim, config.num_heads) for _ in model.blocks]
        for new, old in zip(blocks, model.blocks, strict=True):
            new.load_state_dict(old.state_dict())
        model.blocks = nn.ModuleList(blocks)
        model.register_module("norm", nn.Identity())
    return model


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and say how low its loss came, and after how many steps it met the goal."""
    steps = profile.pick(quick=20, laptop=120, gpu=120)
    norm, lr, warmup = ARMS[arm].values()
    data = load_data("shapes")
    images, labels = data.normalize(data.train.images[:IMAGES]), data.train.labels[:IMAGES]
    model = build(norm, seed)
    losses: list[float] = []
    optimizer = torch.optim.AdamW(weight_decay_groups(model, 0.05), lr=lr)
    climb = steps // 3 if warmup else 1
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / climb)
    )
    generator = torch.Generator().manual_seed(seed)
    while len(losses) < steps:
        for index in torch.randperm(IMAGES, generator=generator).split(BATCH_SIZE):
            batch = [(images[index], labels[index])]
            losses.append(train_one_epoch(model, batch, optimizer, scheduler)[0])
    tail = steps // 5
    return {
        "final_loss": round(fmean(losses[-tail:]), 4),  # mean of the last fifth
        "steps_to_goal": steps_to_goal(losses) or "never",
    }


def steps_to_goal(losses: list[float]) -> int | None:
    """Give the step after which the running mean is below the goal, None if it never is."""
    for end in range(WINDOW, len(losses) + 1):
        if fmean(losses[end - WINDOW : end]) < GOAL:
            return end
    return None


def pairs_table(found: Iterable[Measurement]) -> str:
    """Write for each norm and peak what each seed gained from warm-up, and when it met the goal."""
    results = {(each.arm, each.seed): each.results for each in found}
    seeds = sorted({seed for _, seed in results})
    lines = [
        f"{'norm':9} {'peak':>6}  {'seed':>4}  {'loss without':>12}  {'with':>5}  {'gain':>6}"
        f"  steps to {GOAL:g} nat"
    ]
    for norm, lr in PEAKS:
        for seed in seeds:
            names = [f"{norm}, {lr:g}, {kind}" for kind in ("no warm-up", "warm-up")]
            pair = [results[name, seed] for name in names if (name, seed) in results]
            if len(pair) < 2:
                continue
            a, b = (each["final_loss"] for each in pair)
            steps = ", ".join(f"{each['steps_to_goal']:>5}" for each in pair)
            lines.append(
                f"{norm:9} {lr:6g}  {seed:4}  {a:12.2f}  {b:5.2f}  {a - b:+6.2f}  {steps:>14}"
            )
    return "\n".join(lines)
