"""Does one learning rate for all treat the models of ``efficient`` alike? Four with larger rates.

"Was the care equal?" in 08_efficient_more. Rates are compared by validation images.
"""

from vitedu.bench.experiments import Arms, training
from vitedu.bench.experiments.efficient import RECIPE, build

MODELS = ("global attention", "random features", "MLP-Mixer", "ConvNeXt")
ARMS: Arms = {
    f"{model}, {lr:g}": {"model": model, "lr": lr}
    for model in MODELS
    for lr in (4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2)
}
run = training(
    ARMS,
    lambda arm, seed: build(ARMS[arm]["model"], seed),
    "train_accuracy validation_accuracy cpu_seconds",
    **RECIPE,
)
