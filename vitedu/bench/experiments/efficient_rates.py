"""Does one learning rate for all treat the models of ``efficient`` alike? Four with larger rates.

"Was the care equal?" in 08_efficient_more. Rates are compared by validation images.
"""

from vitedu.bench.experiments import Arms, Results, train_and_measure
from vitedu.bench.experiments.efficient import build, data_and_recipe
from vitedu.hardware import Profile

MODELS = ("global attention", "random features", "MLP-Mixer", "ConvNeXt")
ARMS: Arms = {
    f"{model}, {lr:g}": {"model": model, "lr": lr}
    for model in MODELS
    for lr in (4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2)
}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure it on validation images."""
    model = build(ARMS[arm]["model"], seed)
    data, config = data_and_recipe(seed, profile, lr=ARMS[arm]["lr"])
    columns = "train_accuracy validation_accuracy cpu_seconds"
    return train_and_measure(model, data, config, columns, validation_images=100)
