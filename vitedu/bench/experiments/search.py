"""Which width, depth, number of heads and patch size, at equal cost? A small search, repeated with
other seeds.

Role: the candidates and one run of the stretch section "A small search" of notebook 08; data,
recipe and length are those of ``data_hunger``.

All candidates need about 2.4 million multiply-accumulates an image. A search trains each one once
and chooses by validation accuracy. All seeds of all candidates show what such a choice is worth.
"""

import time
from dataclasses import replace
from typing import Any

import torch

from vitedu.bench.experiments import Results, train_to_end
from vitedu.bench.experiments.data_hunger import CONFIG, settings, shapes
from vitedu.bench.experiments.efficient import macs
from vitedu.fitting.loop import measure, measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.options import build_model
from vitedu.vit import VisionTransformer

ARMS: dict[str, dict[str, Any]] = {
    "width 64, depth 4, 4 heads": {},
    "the same with 1 head": {"num_heads": 1},
    "the same with 8 heads": {"num_heads": 8},
    "the same with drop-path 0.1": {"drop_path_rate": 0.1},
    "wide: width 88, depth 2": {"embed_dim": 88, "depth": 2},
    "deep: width 44, depth 8": {"embed_dim": 44, "depth": 8},
    "patches of 16 px, width 128": {"patch_size": 16, "embed_dim": 128},
    "patches of 4 px, width 32, depth 3": {"patch_size": 4, "embed_dim": 32, "depth": 3},
}


def build(arm: str, seed: int) -> VisionTransformer:
    """Make the untrained model of an arm; the seed draws its weights."""
    torch.manual_seed(seed)
    return build_model(replace(CONFIG, fused=True, **ARMS[arm]))


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model; give its accuracy on validation images, to choose by, and on test images."""
    data = shapes(*profile.pick(quick=(200, 200), laptop=(3_200, None), gpu=(3_200, None)))
    steps = profile.pick(quick=6, laptop=600, gpu=600)
    model, started = build(arm, seed), time.process_time()
    config = settings("ViT", steps=steps, images=len(data.train), seed=seed)
    config = replace(config, lr=4e-3)  # as when the rows were measured; ``rates`` has a better one
    history = train_to_end(model, data, config, validation_images=100)
    model, cpu = model.cpu(), torch.device("cpu")
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "mega_macs": round(macs(model), 3),
        "train_accuracy": round(history.rows[-1].train_accuracy, 4),
        "validation_accuracy": measure(model, data.validation, data, cpu, torch.float32)[1],
        "test_accuracy": measure_test_accuracy(model, data),
        "cpu_seconds": round(time.process_time() - started, 1),
        "precision": history.precision,
    }
