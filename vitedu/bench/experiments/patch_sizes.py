"""Which patch size wins at equal steps, and which at equal seconds?

Role: one run of section "patch size" of notebook 06. Recipe: ``data_hunger``. Not here: the file of measurements (the
package around this module).

One ViT with patches of 16, 8 or 4 pixels on all drawn shapes. Seconds are those of the processor, which other work on
the machine does not change; a run is measured after every epoch.
"""

import time
from dataclasses import replace
from typing import Any

import torch

from vitedu.bench.experiments import Results
from vitedu.bench.experiments.data_hunger import CONFIG, settings, shapes
from vitedu.fitting import fit
from vitedu.hardware import Profile
from vitedu.vit import VisionTransformer

SIZES = (16, 8, 4)
ARMS: dict[str, dict[str, Any]] = {f"patch size {size}": {"patch_size": size} for size in SIZES}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model; give validation accuracy and seconds of the processor after every epoch."""
    data = shapes(profile.pick(quick=400, laptop=3_200, gpu=3_200))
    torch.manual_seed(seed)
    model = VisionTransformer(replace(CONFIG, **ARMS[arm]))
    steps = profile.pick(quick=12, laptop=600, gpu=600)
    config = settings("ViT", steps=steps, images=len(data.train), seed=seed)
    found: dict[str, Any] = {"parameters": sum(p.numel() for p in model.parameters())}
    started = time.process_time()

    def note(history):
        row = history.rows[-1]
        found[f"epoch {row.epoch}, accuracy"] = round(row.validation_accuracy, 4)
        found[f"epoch {row.epoch}, seconds"] = round(time.process_time() - started, 2)
        found["train_accuracy"] = round(row.train_accuracy, 4)

    fit(model, data, config, show_progress=False, on_epoch=note)
    return found
