"""What does each part of a trainer add? From a constant rate to Muon, one change at a time.

Notebook 04: ``vit_pico_patch4_32``, 45,000 photographs, one epoch or two, validation accuracy:
``vitedu bench experiments climb --seeds 0 1 2``. The rates of each recipe go on until the best one
has a worse one on either side.
"""

from collections.abc import Sequence

import torch

from vitedu.bench.experiments import Arms, Measurement, Profile, by_arm, images, train_and_measure
from vitedu.data import Data
from vitedu.extras.options import build_model, preset
from vitedu.fitting import TrainConfig
from vitedu.fitting.evaluating import predict

PRESET = "vit_pico_patch4_32"
COMMON = {"epochs": 1, "batch_size": 64, "weight_decay": 0.1, "crop_padding": None}
CROPS, FLAT = {"crop_padding": 1}, {"warmup_share": 0.0}
ADAMW, MUON = (0.00025, 0.0005, 0.001, 0.002, 0.004), (0.001, 0.002, 0.004, 0.008, 0.016)
CONSTANT, SCHEDULE = "AdamW, constant rate", "AdamW, schedule, crops"
BEST = "Muon, schedule, crops"
RATES: dict[str, Arms] = {  # recipe -> its arms, one a rate
    CONSTANT: {f"{CONSTANT}, {lr:g}": {"lr": lr, "final_lr": lr, **FLAT} for lr in ADAMW[:4]},
    SCHEDULE: {f"{SCHEDULE}, {lr:g}": {"lr": lr, **CROPS} for lr in ADAMW[1:]},
    BEST: {f"{BEST}, {lr:g}": {"lr": lr, "optimizer": "muon", **CROPS} for lr in MUON},
}
ARMS: Arms = {name: COMMON | own for arms in RATES.values() for name, own in arms.items()}
ARMS["AdamW, schedule, 0.001"] = COMMON | {"lr": 0.001}
for start in (f"{SCHEDULE}, 0.001", f"{BEST}, 0.004"):
    ARMS[f"{start}, two epochs"] = ARMS[start] | {"epochs": 2}
STEPS = {  # each adds one thing to the one above it
    "constant rate": f"{CONSTANT}, 0.001",
    "+ schedule": "AdamW, schedule, 0.001",
    "+ crops": f"{SCHEDULE}, 0.001",
    "+ Muon": f"{BEST}, 0.001",
    "+ its own rate": f"{BEST}, 0.004",
    "+ second epoch": f"{BEST}, 0.004, two epochs",
}
TRACED = STEPS["+ its own rate"], 0  # the run that the notebook begins with


def run(arm: str, seed: int, profile: Profile) -> dict:
    """Train one arm and measure it; of the traced run keep the losses and sixteen answers."""
    data, is_traced = images(profile, None, (320, 100)), (arm, seed) == TRACED
    losses: list[float] = []
    torch.manual_seed(seed)
    model, config = build_model(preset(PRESET, fused=True)), TrainConfig(seed=seed, **ARMS[arm])
    columns = "validation_accuracy train_accuracy precision seconds"
    columns += " validation_loss" * is_traced
    results = train_and_measure(model, data, config, columns, on_step=losses.append)
    if is_traced:
        answers = predict(model, data.validation.images[:16], data).argmax(dim=1).tolist()
        results |= {"losses": [round(each, 2) for each in losses], "answers": answers}
    return results


def by_rate(rows: Sequence[Measurement], recipe: str) -> dict[float, list[float]]:
    """Give rate -> validation accuracies in %, a seed each."""
    found = by_arm(rows, "validation_accuracy", 100)
    return {ARMS[arm]["lr"]: found[arm] for arm in found if arm in RATES[recipe]}


def steps(rows: Sequence[Measurement]) -> dict[str, list[float]]:
    """Give what each step of the climb adds -> validation accuracies in [0, 1], a seed each."""
    found = by_arm(rows, "validation_accuracy")
    return {what: found.get(arm, []) for what, arm in STEPS.items()}


def traced_moment(rows: Sequence[Measurement], data: Data) -> dict:
    """Give the end of the traced run as ``plots.training.show_moment`` takes it."""
    found = next(row.results for row in rows if (row.arm, row.seed) == TRACED)
    losses, first = found["losses"], slice(16)
    moment: dict = {"losses": losses, "steps": len(losses)}
    moment |= {"validation": [(len(losses), found["validation_loss"])]}
    moment["images"] = data.validation.images[first]
    for what, numbers in (("truth", data.validation.labels[first]), ("answers", found["answers"])):
        moment[what] = [data.class_names[k] for k in numbers]
    return moment
