"""Does one learning rate for all treat the models of ``efficient`` alike? Four of them with larger
rates.

Role: the candidates and one run of "Was the care equal?" in section 12 of notebook 08; models, data
and length are those of ``efficient``.
"""

import time
from typing import Any

import torch

from vitedu.bench.experiments import Results, efficient
from vitedu.fitting.loop import measure
from vitedu.hardware import Profile

MODELS = ("global attention", "random features", "MLP-Mixer", "ConvNeXt")
ARMS: dict[str, dict[str, Any]] = {
    f"{model}, {lr:g}": {"model": model, "lr": lr}
    for model in MODELS
    for lr in (4e-3, 8e-3, 1.6e-2, 3.2e-2)
}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure it on validation images, by which rates are compared."""
    name, lr = ARMS[arm].values()
    model, started = efficient.build(name, seed), time.process_time()
    data, train_accuracy = efficient.learn(model, seed, profile, lr)
    model = model.cpu()
    accuracy = measure(model, data.validation, data, torch.device("cpu"), torch.float32)[1]
    return {
        "train_accuracy": round(train_accuracy, 4),
        "validation_accuracy": accuracy,
        "cpu_seconds": round(time.process_time() - started, 1),
    }
