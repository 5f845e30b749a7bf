"""Which optimizer and learning rate suit each network? The same care for a CNN and a ViT.

Notebook 06, 3,200 photographs. The two recipes of ``data_hunger`` are among these, chosen on
validation photographs. The rates of each optimizer go on until the best one has a worse one on
either side. Muon is for matrices, and the weights of a convolution are none.
"""

from dataclasses import replace

from vitedu.bench.experiments import Arms, Results, cut, train_and_measure
from vitedu.bench.experiments.data_hunger import build, photographs, settings
from vitedu.hardware import Profile

CANDIDATES = (
    *(("CNN", "adamw", lr) for lr in (1e-3, 3e-3, 1e-2, 3e-2)),
    *(("ViT", "adamw", lr) for lr in (3e-4, 1e-3, 3e-3, 1e-2)),
    *(("ViT", "muon", lr) for lr in (4e-3, 8e-3, 1.6e-2, 3.2e-2)),
)
ARMS: Arms = {
    f"{network}, {optimizer} {lr:g}": {"network": network, "optimizer": optimizer, "lr": lr}
    for network, optimizer, lr in CANDIDATES
}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network and measure it on validation images."""
    network, optimizer, lr = ARMS[arm].values()
    data = photographs(3_200, seed, profile)
    config = settings(network, steps=cut(600, profile, 6), images=len(data.train), seed=seed)
    config = replace(config, optimizer=optimizer, lr=lr)
    columns = "train_accuracy validation_accuracy cpu_seconds"
    return train_and_measure(build(network, seed), data, config, columns)
