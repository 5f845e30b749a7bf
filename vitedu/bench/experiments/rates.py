"""Which optimizer and which learning rate suit each network? The same care for a small CNN and a
small ViT.

Role: the candidates and one run of "equal care" in section 1 of notebook 06; networks and data are
those of ``data_hunger``, whose two recipes are among these candidates. Muon is for matrices, and
the weights of a convolution are none: the CNN has AdamW alone.
"""

import time
from dataclasses import replace
from typing import Any

from vitedu.bench.experiments import Results, train_to_end
from vitedu.bench.experiments.data_hunger import build, settings, shapes
from vitedu.hardware import Profile

CANDIDATES = (
    *(("CNN", "adamw", lr) for lr in (1e-3, 3e-3, 1e-2)),
    *(("ViT", "adamw", lr) for lr in (1e-3, 3e-3)),
    *(("ViT", "muon", lr) for lr in (2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2)),
)
ARMS: dict[str, dict[str, Any]] = {
    f"{network}, {optimizer} {lr:g}": {"network": network, "optimizer": optimizer, "lr": lr}
    for network, optimizer, lr in CANDIDATES
}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network and measure it on validation images, by which recipes are chosen."""
    network, optimizer, lr = ARMS[arm].values()
    data = shapes(*profile.pick(quick=(200, 200), laptop=(3_200, None), gpu=(3_200, None)))
    steps = profile.pick(quick=6, laptop=600, gpu=600)
    config = settings(network, steps=steps, images=len(data.train), seed=seed)
    model, started = build(network, seed), time.process_time()
    history = train_to_end(model, data, replace(config, optimizer=optimizer, lr=lr))
    return {
        "train_accuracy": round(history.rows[-1].train_accuracy, 4),
        "validation_accuracy": history.rows[-1].validation_accuracy,
        "cpu_seconds": round(time.process_time() - started, 1),
    }
