"""What made the difference: ``vitedu bench ablations``, from the textbook ViT one change at a time.

Role: the list of changes and one run of one of them; notebook 04 shows the measurements. Not here:
the loop, the figure.

Every arm changes one thing of the arm that it starts from and is measured on the validation images:
these are choices, and test images make none. A change for the worse stays in the list.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from vitedu.bench.experiments import Measurement, Results, by_arm, complete, numbers, train_to_end
from vitedu.data import Data, load_data
from vitedu.fitting import TrainConfig
from vitedu.hardware import Profile
from vitedu.options import build_model, preset

PRESET = "vit_pico_patch4_32"


@dataclass(frozen=True)
class Change:
    """One step: what it starts from and what it changes."""

    name: str  # as the table says it, and the name of the arm
    after: str | None  # the arm that it starts from
    model: dict = field(default_factory=dict)  # fields of ViTConfigWithOptions
    train: dict = field(default_factory=dict)  # fields of TrainConfig


TEXTBOOK = "textbook: class token, AdamW 1e-3"
BEST = "Muon at 4e-3"  # where the trials start
CHANGES = (
    Change(TEXTBOOK, None),
    Change("mean of the patches, no class token", TEXTBOOK, {"pool": "mean"}),
    Change("rotary positions", "mean of the patches, no class token", {"rope": True}),
    Change("label smoothing 0.1", "rotary positions", train={"label_smoothing": 0.1}),
    Change("AdamW at 3e-3", "label smoothing 0.1", train={"lr": 3e-3}),
    Change("Muon at 3e-3", "AdamW at 3e-3", train={"optimizer": "muon"}),
    Change(BEST, "Muon at 3e-3", train={"lr": 4e-3}),
    Change("QK-norm", BEST, {"qk_norm": True}),
    Change("random operation on half the images", BEST, train={"policy_share": 0.5}),
    Change("CutMix on half the images", BEST, train={"cutmix_share": 0.5}),
    Change("batch 256 instead of 128", BEST, train={"batch_size": 256}),
    Change("batch 64 instead of 128", BEST, train={"batch_size": 64}),
    Change("average of the weights, 0.998", BEST, train={"ema_decay": 0.998}),
    Change("no crops, no mirroring", BEST, train={"crop_padding": None}),
    Change("learned positions alone", BEST, {"rope": False}),
    Change("class token again", BEST, {"pool": "cls"}),
)


def settings(name: str) -> tuple[dict, dict]:
    """Collect the changes that lead to an arm: fields of ``ViTConfig`` and of ``TrainConfig``.

    Raises:
        ValueError: no such arm.

    Example:
        >>> settings("rotary positions")
        ({'pool': 'mean', 'rope': True}, {})
    """
    by_name = {change.name: change for change in CHANGES}
    if name not in by_name:
        raise ValueError(f"no change named {name!r}. Choices: {'; '.join(by_name)}.")
    change = by_name[name]
    model, train = settings(change.after) if change.after else ({}, {})
    return {**model, **change.model}, {**train, **change.train}


ARMS = {change.name: {**settings(change.name)[0], **settings(change.name)[1]} for change in CHANGES}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one arm on the images of a profile: drawn shapes to try it out, else CIFAR-10."""
    source, epochs = profile.pick(quick=("shapes", 1), laptop=("cifar10", 3), gpu=("cifar10", 3))
    return train_arm(arm, images(source), epochs=epochs, seed=seed)


@cache
def images(source: str) -> Data:
    """Load a data set once."""
    return load_data(source, limit=1000) if source == "shapes" else load_data(source)


def train_arm(arm: str, data: Data, *, epochs: int, seed: int, device: str = "auto") -> Results:
    """Train one arm and measure it on the validation images."""
    model_changes, train_changes = settings(arm)
    sizes = dict(
        image_size=data.image_size, in_channels=data.in_channels, num_classes=data.num_classes
    )
    config = TrainConfig(epochs=epochs, seed=seed, device=device)
    torch.manual_seed(seed)
    model = build_model(preset(PRESET, fused=True, **sizes, **model_changes))
    config = TrainConfig(**{**asdict(config), **train_changes})
    history = train_to_end(model, data, config, show_progress=True)
    last = history.rows[-1]
    return {
        "train_images": len(data.train),
        "train_loss": round(last.train_loss, 4),
        "validation_loss": round(last.validation_loss, 4),
        "validation_accuracy": last.validation_accuracy,  # in [0, 1], after the last epoch
        "seconds": round(history.seconds, 1),  # of training
        "device": history.device,
        "precision": history.precision,
    }


def bench_ablations(
    data: Data, out: Path, *, epochs: int, seeds: list[int], only: list[str], device: str = "auto"
) -> list[Measurement]:
    """Run what is missing of the list on images of one's own choice, and print the table.

    Args:
        data: the images.
        out: a file of JSON lines; each run is added when it is done, and what stands there is not
        run again.
        epochs: of every run.
        seeds: one run each; a seed draws starting weights, order and augmentation.
        only: parts of names to choose arms by; all if empty.
        device: where to train.

    Returns:
        All measurements of the file.
    """

    def run_one(arm: str, seed: int) -> Results:
        return train_arm(arm, data, epochs=epochs, seed=seed, device=device)

    options = {"data": data.name, "epochs": epochs}
    found = complete("ablations", ARMS, run_one, out, seeds=seeds, only=only, options=options)
    print(ablation_table(found))
    return found


def summary(found: Iterable[Measurement]) -> list[dict[str, Any]]:
    """Average measurements over seeds, in the order of ``CHANGES``.

    A gain is a mean of differences, each between two runs of one seed.

    Returns:
        A dict a change: change, after, seeds (how many), epochs, accuracy (mean, in [0, 1]), low
        and high over the seeds, gain over the arm it starts from under the same options and gains,
        the difference for each seed that both have (None and empty where that is missing), seconds.
    """
    groups = by_arm(found, ARMS)
    after = {change.name: change.after for change in CHANGES}
    lines = []
    for arm, options, group in groups:
        before = [g for name, its, g in groups if name == after[arm] and its == options]
        start = accuracies(before[0]) if before else {}
        accuracy = accuracies(group)
        gains = [accuracy[seed] - start[seed] for seed in accuracy if seed in start]
        lines.append(
            {
                "change": arm,
                "after": after[arm],
                "seeds": len(group),
                "epochs": options.get("epochs"),
                "accuracy": fmean(accuracy.values()),
                "low": min(accuracy.values()),
                "high": max(accuracy.values()),
                "gain": fmean(gains) if gains else None,
                "gains": gains,
                "seconds": fmean(numbers(group, "seconds")),
            }
        )
    return lines


def accuracies(group: list[Measurement]) -> dict[int, float]:
    """Give seed -> validation accuracy."""
    values = numbers(group, "validation_accuracy")
    return {each.seed: value for each, value in zip(group, values, strict=True)}


def ablation_table(found: Iterable[Measurement]) -> str:
    """Write the averages, 76 columns wide; a row names the one it starts from by its number."""
    lines = [
        "n: seeds, ep: epochs, of: the row that it starts from; gains in points",
        "   valid.  gain   seeds' gains  n ep of change",
    ]
    averages = summary(found)
    number = {line["change"]: i for i, line in enumerate(averages, start=1)}
    for i, line in enumerate(averages, start=1):
        gain = "" if line["gain"] is None else f"{100 * line['gain']:+.1f}"
        gains = [100 * each for each in line["gains"]]
        between = f"{min(gains):+.1f} to {max(gains):+.1f}" if len(gains) > 1 else ""
        lines.append(
            f"{i:2} {line['accuracy']:6.1%} {gain:>5} {between:>14} {line['seeds']:2} "
            f"{line['epochs']:2} {number.get(line['after'], ''):>2} {line['change']}"
        )
    return "\n".join(lines)
