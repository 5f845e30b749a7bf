"""Which patch size wins at equal steps, and which at equal seconds?

"Which patch size?" of notebook 06; recipe and data of ``data_hunger``. Each run has a rate
that falls to zero at its own end, so the arms of equal seconds are runs of their own. Their epochs
were chosen to take about as long as twelve with patches of 8 px; the rows say how long.
"""

from functools import partial

from vitedu.bench.experiments import Arms, training
from vitedu.bench.experiments.data_hunger import COMMON, RECIPES, build, photographs

ARMS: Arms = {
    f"{patch_size} px, {epochs} epochs": {"patch_size": patch_size, "epochs": epochs}
    for patch_size, epochs in ((16, 12), (8, 12), (4, 12), (16, 16), (4, 5))
}
QUESTIONS = {  # name -> the arms that answer it
    "equal steps": ("16 px, 12 epochs", "8 px, 12 epochs", "4 px, 12 epochs"),
    "equal time": ("16 px, 16 epochs", "8 px, 12 epochs", "4 px, 5 epochs"),
}
run = training(
    ARMS,
    lambda arm, seed: build("ViT", seed, fused=True, patch_size=ARMS[arm]["patch_size"]),
    data=partial(photographs, 3_200),
    precision="float32",
    **COMMON,
    **RECIPES["ViT"],
)
