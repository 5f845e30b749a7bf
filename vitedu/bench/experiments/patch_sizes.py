"""Which patch size wins at equal steps, and which at equal seconds?

Role: one run of "patch size" in section 9 of notebook 06; networks and recipe are those of
``data_hunger``.

One ViT with patches of 16, 8 or 4 pixels learns from the same drawn shapes. Each run has a learning
rate that falls to zero at its own end: to stop a long run early would be unfair to it. So the arms
of equal seconds are runs of their own. Their epochs were chosen so that they take about as long as
twelve with patches of 8 px; the rows say how long.
"""

import time
from dataclasses import replace
from typing import Any

import torch

from vitedu.bench.experiments import Results, train_to_end
from vitedu.bench.experiments.data_hunger import CONFIG, settings, shapes
from vitedu.fitting.loop import measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.options import build_model

ARMS: dict[str, dict[str, Any]] = {
    "16 px, 12 epochs": {"patch_size": 16, "epochs": 12},
    "8 px, 12 epochs": {"patch_size": 8, "epochs": 12},
    "4 px, 12 epochs": {"patch_size": 4, "epochs": 12},
    "16 px, 16 epochs": {"patch_size": 16, "epochs": 16},
    "4 px, 5 epochs": {"patch_size": 4, "epochs": 5},
}

QUESTIONS = {  # name -> the arms that answer it
    "equal steps": ("16 px, 12 epochs", "8 px, 12 epochs", "4 px, 12 epochs"),
    "equal time": ("16 px, 16 epochs", "8 px, 12 epochs", "4 px, 5 epochs"),
}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model; give its accuracies and the seconds of the processor."""
    patch_size, epochs = ARMS[arm].values()
    data = shapes(*profile.pick(quick=(200, 200), laptop=(3_200, None), gpu=(3_200, None)))
    torch.manual_seed(seed)
    model = build_model(replace(CONFIG, fused=True, patch_size=patch_size))
    config = settings("ViT", steps=1, images=len(data.train), seed=seed)
    epochs = profile.pick(quick=1, laptop=epochs, gpu=epochs)
    config = replace(config, epochs=epochs, precision="float32")
    started = time.process_time()
    history = train_to_end(model, data, config, validation_images=100)
    seconds = time.process_time() - started
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "train_accuracy": round(history.rows[-1].train_accuracy, 4),
        "test_accuracy": measure_test_accuracy(model, data),
        "cpu_seconds": round(seconds, 1),
    }
