"""What made the difference? From the textbook ViT, one change at a time.

The end of notebook 04. Every arm changes one thing of the arm that it starts from. These are
choices, so validation images decide. A change for the worse stays in the list.
"""

from collections.abc import Iterable
from statistics import fmean
from typing import Any

import torch

from vitedu.bench import experiments
from vitedu.bench.experiments import Arms, Measurement, Profile, Results, Settings
from vitedu.fitting import TrainConfig
from vitedu.options import build_model, preset

PRESET, EPOCHS = "vit_pico_patch4_32", 3
TEXTBOOK = "textbook: class token, AdamW 1e-3"
BEST = "Muon at 4e-3"  # where the trials start

# arm -> the one that it starts from, and what it changes there
CHANGES: dict[str, tuple[str | None, Settings]] = {
    TEXTBOOK: (None, {}),
    "mean of the patches, no class token": (TEXTBOOK, {"pool": "mean"}),
    "rotary positions": ("mean of the patches, no class token", {"rope": True}),
    "label smoothing 0.1": ("rotary positions", {"label_smoothing": 0.1}),
    "AdamW at 3e-3": ("label smoothing 0.1", {"lr": 3e-3}),
    "Muon at 3e-3": ("AdamW at 3e-3", {"optimizer": "muon"}),
    BEST: ("Muon at 3e-3", {"lr": 4e-3}),
    "QK-norm": (BEST, {"qk_norm": True}),
    "random operation on half the images": (BEST, {"policy_share": 0.5}),
    "CutMix on half the images": (BEST, {"cutmix_share": 0.5}),
    "batch 256 instead of 128": (BEST, {"batch_size": 256}),
    "batch 64 instead of 128": (BEST, {"batch_size": 64}),
    "average of the weights, 0.998": (BEST, {"ema_decay": 0.998}),
    "no crops, no mirroring": (BEST, {"crop_padding": None}),
    "learned positions alone": (BEST, {"rope": False}),
    "class token again": (BEST, {"pool": "cls"}),
}
ARMS: Arms = {}
for name, (start, changes) in CHANGES.items():
    ARMS[name] = (ARMS[start] if start else {}) | changes


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one arm, in the quick profile on few photographs, and measure it after the end."""
    data = experiments.images(profile, None, quick=(1_000, 1_000))
    changes, recipe = experiments.settings_of(arm, ARMS)
    torch.manual_seed(seed)
    model = build_model(preset(PRESET, fused=True, **changes))
    config = TrainConfig(epochs=experiments.cut(EPOCHS, profile, 1), seed=seed, **recipe)
    columns = "train_images train_loss validation_loss validation_accuracy seconds device precision"
    return experiments.train_and_measure(model, data, config, columns, show_progress=True)


def summary(runs: Iterable[Measurement]) -> list[dict[str, Any]]:
    """Average measurements over seeds, in the order of ``CHANGES``.

    Returns:
        A dict a change: change, after, seeds (how many), epochs, accuracies (of the seeds, in
        [0, 1]), accuracy (their mean), gains over the arm it starts from under the same options,
        one for each seed that both have, gain (their mean, None without any), data.
    """
    found: dict[tuple, dict[int, float]] = {}
    lines = []
    for arm, options, group in experiments.group_by_arm(runs, ARMS):
        own = {run.seed: run.results["validation_accuracy"] for run in group}
        before = found.get((CHANGES[arm][0], str(options)), {})  # a change stands behind its start
        gains = [own[seed] - before[seed] for seed in own if seed in before]
        seeds = list(own.values())
        line: Any = {
            "change": arm,
            "after": CHANGES[arm][0],
            "seeds": len(group),
            "accuracies": seeds,
        }
        line |= {"accuracy": fmean(seeds), "gains": gains, "data": options["data"]}
        line |= {"gain": fmean(gains) if gains else None, "epochs": options.get("epochs", EPOCHS)}
        lines.append(line)
        found[arm, str(options)] = own
    return lines


def ablation_table(runs: Iterable[Measurement]) -> str:
    """Write the averages, 76 columns wide; a row names the one it starts from by its number."""
    lines = ["n: seeds, ep: epochs, of: the row that it starts from; gains in points"]
    lines.append("   valid.  gain   seeds' gains  n ep of change")
    number: dict[str | None, int] = {}
    for i, line in enumerate(summary(runs), start=1):
        number[line["change"]] = i
        gains = [100 * each for each in line["gains"]]
        gain = f"{100 * line['gain']:+.1f}" if gains else ""
        between = f"{min(gains):+.1f} to {max(gains):+.1f}" if len(gains) > 1 else ""
        lines.append(
            f"{i:2} {line['accuracy']:6.1%} {gain:>5} {between:>14} {line['seeds']:2} "
            f"{line['epochs']:2} {number.get(line['after'], ''):>2} {line['change']}"
        )
    return "\n".join(lines)
