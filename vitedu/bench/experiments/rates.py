"""Which optimizer and learning rate suit each network? The same care for a CNN and a ViT.

Notebook 06, 3,200 photographs. The two recipes of ``data_hunger`` are among these, chosen on
validation photographs. The rates of each optimizer go on until the best one has a worse one on
either side. Muon is for matrices, and the weights of a convolution are none.
"""

from functools import partial

from vitedu.bench.experiments import Arms, training
from vitedu.bench.experiments.data_hunger import COMMON, build, photographs

CANDIDATES = (
    *(("CNN", "adamw", lr) for lr in (1e-3, 3e-3, 1e-2, 3e-2)),
    *(("ViT", "adamw", lr) for lr in (3e-4, 1e-3, 3e-3, 1e-2)),
    *(("ViT", "muon", lr) for lr in (4e-3, 8e-3, 1.6e-2, 3.2e-2)),
)
ARMS: Arms = {
    f"{network}, {optimizer} {lr:g}": {"network": network, "optimizer": optimizer, "lr": lr}
    for network, optimizer, lr in CANDIDATES
}
run = training(
    ARMS,
    lambda arm, seed: build(ARMS[arm]["network"], seed),
    "train_accuracy validation_accuracy cpu_seconds",
    data=partial(photographs, 3_200),
    validation=None,
    epochs=12,
    **COMMON,
)
