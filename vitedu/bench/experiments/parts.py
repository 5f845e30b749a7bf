"""What is each part of a small ViT worth on new images? One change at a time.

Role: the arms and one run of them; notebook 03 shows the ladder of one block, notebook 04 the poolings. Not
here: the file of measurements (the package around this module), data, the loop.

Every arm learns the same drawn images for the same epochs at the same rate, and is measured on the validation
images. At a fixed number of epochs an arm that learns slowly looks worse than it is: so the accuracy on the
training images stands beside it.
"""

from collections.abc import Iterable
from statistics import fmean, stdev
from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Measurement, Results, by_arm, numbers
from vitedu.data import load_data
from vitedu.encoder import EncoderBlock
from vitedu.fitting import TrainConfig, fit
from vitedu.hardware import Profile
from vitedu.vit import VisionTransformer, preset

BASE: dict[str, Any] = {"patch_size": 8, "embed_dim": 64, "depth": 2, "num_heads": 4}
LADDER: dict[str, dict[str, Any]] = {
    "no block": {"depth": 0},
    "attention": {"depth": 1, "mlp": False, "skips": False, "norms": False},
    "attention, skip, norm": {"depth": 1, "mlp": False},
    "whole block": {"depth": 1},
}
POOLS: dict[str, dict[str, Any]] = {
    "class token": {},
    "mean of the patches": {"pool": "mean"},
    "maximum of the patches": {"pool": "max"},
}
ARMS = LADDER | POOLS


class Parts(EncoderBlock):
    """An encoder block without some of its parts.

    Args:
        mlp: whether it has an MLP.
        skips: whether each branch is added to what came in.
        norms: whether each branch starts with a norm.
    """

    def __init__(self, embed_dim, num_heads, *, mlp=True, skips=True, norms=True):
        super().__init__(embed_dim, num_heads)
        if not mlp:
            self.register_module("norm2", None)
            self.register_module("mlp", None)
        if not norms:
            self.norm1 = nn.Identity()
        self.skips = skips

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        step = self.attn(self.norm1(x))[0]
        x = x + step if self.skips else step
        if self.mlp is None:
            return x
        step = self.mlp(self.norm2(x))
        return x + step if self.skips else step


class MaxPooled(VisionTransformer):
    """The head reads the largest value of each column over the patches; there is no class token."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = self.patch_embed(images) + self.pos_embed  # (B, N, D)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).amax(dim=1))  # (B, N, D) -> (B, D) -> (B, K)


def build(arm: str, seed: int) -> VisionTransformer:
    """Make the model of an arm."""
    settings = BASE | ARMS[arm]
    block = {key: settings.pop(key) for key in ("mlp", "skips", "norms") if key in settings}
    has_max = settings.get("pool") == "max"
    settings |= {"pool": "mean"} if has_max else {}
    torch.manual_seed(seed)
    config = preset("vit_micro_patch8_32", **settings)
    model = (MaxPooled if has_max else VisionTransformer)(config)
    if block:
        blocks = [Parts(config.embed_dim, config.num_heads, **block) for _ in model.blocks]
        for new, old in zip(blocks, model.blocks, strict=True):
            new.load_state_dict(old.state_dict(), strict=False)  # the same starting weights
        model.blocks = nn.ModuleList(blocks)
    return model


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one arm and measure it on the validation images."""
    images, epochs = profile.pick(quick=(200, 1), laptop=(4000, 6), gpu=(4000, 6))
    data = load_data("shapes", limit=images)
    model = build(arm, seed)
    settings = TrainConfig(
        epochs=epochs,
        batch_size=64,
        optimizer="muon",
        lr=4e-3,
        crop_padding=2,
        precision="float32",
        seed=seed,
    )
    last = fit(model, data, settings, show_progress=False).rows[-1]
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "train_images": len(data.train),
        "train_accuracy": round(last.train_accuracy, 4),
        "validation_accuracy": round(last.validation_accuracy, 4),  # after the last epoch
    }


def mean_accuracy(found: Iterable[Measurement], arm: str) -> float:
    """Average the validation accuracy of an arm over its seeds."""
    return fmean(numbers([each for each in found if each.arm == arm], "validation_accuracy"))


def parts_table(found: Iterable[Measurement], arms: Iterable[str]) -> str:
    """Write, for each of some arms, its parameters and what its seeds reached on the validation images."""
    wanted = [each for each in found if each.arm in set(arms)]
    lines = [f"{'':24}{'parameters':>11}{'training':>10}{'validation':>12}  mean ± standard error of the seeds"]  # fmt: skip
    for arm, _, group in by_arm(wanted, ARMS):
        accuracy = numbers(group, "validation_accuracy")
        error = stdev(accuracy) / len(accuracy) ** 0.5 if len(accuracy) > 1 else float("nan")
        lines.append(
            f"{arm:24}{group[0].results['parameters']:>11,}"
            f"{fmean(numbers(group, 'train_accuracy')):>10.1%}{fmean(accuracy):>12.1%} ± {error:.1%}"
            f"  {len(accuracy)} seeds: {' '.join(f'{100 * value:.1f}' for value in accuracy)}"
        )
    return "\n".join(lines)
