"""Which size, and which of the newer parts, for a small ViT and 2,000 images? One field at a time.

Role: the arms and one run of the sweep at the end of notebook 04. Not here: the options themselves
(``vitedu.vit``, ``vitedu.fast``), the file of measurements (the package around this module).

Every arm changes one field of the same small model and trains it for the same number of steps. Steps of
different models take different times, so each run has its CPU seconds.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from statistics import fmean
from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Measurement, Results, by_arm, numbers
from vitedu.data import Data, load_data
from vitedu.fitting import TrainConfig, fit
from vitedu.fitting.loop import measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.vit import VisionTransformer, ViTConfig

CONFIG = ViTConfig(patch_size=8, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2)
START = "P = 8, width 64, depth 4, 4 heads"
ARMS: dict[str, dict[str, Any]] = {
    START: {},
    "P = 16": {"patch_size": 16},
    "P = 4": {"patch_size": 4},
    "width 32": {"embed_dim": 32},
    "width 128": {"embed_dim": 128},
    "depth 2": {"depth": 2},
    "depth 8": {"depth": 8},
    "1 head": {"num_heads": 1},
    "16 heads": {"num_heads": 16},
    "drop-path 0.1": {"drop_path_rate": 0.1},
    "LayerScale": {"layer_scale": True},
    "SwiGLU": {"mlp": "swiglu"},
    "RMSNorm": {"rms_norm": True},
    "4 registers": {"num_registers": 4},
}


def build(arm: str, seed: int, data: Data) -> VisionTransformer:
    """Make the untrained model of an arm."""
    options = dict(ARMS[arm])
    has_rms_norm = options.pop("rms_norm", False)
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"num_classes": data.num_classes, "in_channels": data.in_channels}
    model = VisionTransformer(replace(CONFIG, **sizes, **options))
    if has_rms_norm:  # no mean is subtracted and no bias is added
        for part in list(model.modules()):
            for name, child in part.named_children():
                if isinstance(child, nn.LayerNorm):
                    part.register_module(name, nn.RMSNorm(model.config.embed_dim, eps=1e-6))
    return model


@cache
def images(limit: int) -> Data:
    """Draw the images once."""
    return load_data("shapes", limit=limit)


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model on few images and measure it on training and test images."""
    data = images(profile.pick(quick=200, laptop=2_000, gpu=2_000))
    model, started = build(arm, seed, data), time.process_time()
    config = TrainConfig(
        epochs=profile.pick(quick=1, laptop=10, gpu=10),
        batch_size=64,
        optimizer="muon",
        lr=4e-3,
        crop_padding=2,
        precision="float32",
        seed=seed,
    )
    history = fit(model, data, config, show_progress=False)
    if history.interrupted:
        raise KeyboardInterrupt
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "train_accuracy": round(history.rows[-1].train_accuracy, 4),
        "test_accuracy": measure_test_accuracy(model.cpu(), data, torch.float32),
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def size_table(found: Iterable[Measurement]) -> str:
    """Write each arm beside the start: its accuracies, and the difference of every seed that both have."""
    groups = {arm: group for arm, _, group in by_arm(found, ARMS)}
    start = {each.seed: each.results["test_accuracy"] for each in groups[START]}
    lines = [
        f"{'one field changed':<34} {'parameters':>10} {'train':>6} {'test':>6} {'time':>6}  points, each seed"
    ]
    for arm, group in groups.items():
        means = {name: fmean(numbers(group, name)) for name in group[0].results}
        gains = [each.results["test_accuracy"] - start[each.seed] for each in group]
        points = "" if arm == START else "  ".join(f"{100 * gain:+5.1f}" for gain in gains)
        ratio = means["cpu_seconds"] / fmean(numbers(groups[START], "cpu_seconds"))
        lines.append(
            f"{arm:<34} {means['parameters']:10,.0f} {means['train_accuracy']:6.1%} "
            f"{means['test_accuracy']:6.1%} {ratio:5.1f}x  {points}"
        )
    return "\n".join(lines)
