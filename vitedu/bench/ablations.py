"""What made the difference: ``vitedu bench ablations``, from the textbook ViT one change at a time.

Role: the list of changes, the runs, and the rows that were kept (``ablations.jsonl`` beside this file),
which notebook 04 shows. Not here: the loop, the figure.

Every row changes one thing of the row that it starts from and is measured on the validation images:
these are choices, and test images make none. A negative row stays in the list.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from statistics import fmean

import torch

from vitedu.data import Data
from vitedu.fitting import TrainConfig, fit
from vitedu.vit import VisionTransformer, preset

PRESET = "vit_pico_patch4_32"


@dataclass(frozen=True)
class Change:
    """One step: what it starts from and what it changes."""

    name: str  # as the table says it
    after: str | None  # the row that it starts from
    model: dict = field(default_factory=dict)  # fields of ViTConfig
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
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What one run of one change measured."""

    change: str
    after: str | None
    changes: dict  # all fields that differ from the textbook: what was really run
    seed: int
    epochs: int
    data: str
    train_images: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float  # in [0, 1], after the last epoch
    seconds: float  # of training
    device: str
    precision: str
    threads: int


def settings(name: str) -> tuple[dict, dict]:
    """Collect the changes that lead to a row: fields of ``ViTConfig`` and of ``TrainConfig``.

    Raises:
        ValueError: no such row.

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


def run(change: Change, data: Data, *, epochs: int, seed: int, device: str = "auto") -> Row:
    """Train one row and measure it on the validation images."""
    model_changes, train_changes = settings(change.name)
    sizes = dict(
        image_size=data.image_size, in_channels=data.in_channels, num_classes=data.num_classes
    )
    config = TrainConfig(epochs=epochs, seed=seed, device=device)
    torch.manual_seed(seed)
    model = VisionTransformer(preset(PRESET, fused=True, **sizes, **model_changes))
    config = TrainConfig(**{**asdict(config), **train_changes})
    history = fit(model, data, config)
    if history.interrupted:
        raise KeyboardInterrupt
    last = history.rows[-1]
    return Row(
        change=change.name,
        after=change.after,
        changes={**model_changes, **train_changes},
        seed=seed,
        epochs=epochs,
        data=data.name,
        train_images=len(data.train),
        train_loss=round(last.train_loss, 4),
        validation_loss=round(last.validation_loss, 4),
        validation_accuracy=last.validation_accuracy,
        seconds=round(history.seconds, 1),
        device=history.device,
        precision=history.precision,
        threads=torch.get_num_threads(),
    )


def bench_ablations(
    data: Data, out: Path, *, epochs: int, seeds: list[int], only: list[str], device: str = "auto"
) -> list[Row]:
    """Run what is missing of the list and print the table.

    Args:
        data: the images.
        out: a file of JSON lines; each run is added when it is done, and what stands there is not run again.
        epochs: of every run.
        seeds: one run each; a seed draws starting weights, order and augmentation.
        only: parts of names to choose rows by; all if empty.
        device: where to train.

    Returns:
        All rows of the file.
    """
    chosen = [c for c in CHANGES if not only or any(word in c.name for word in only)]
    if not chosen:
        raise ValueError(
            f"no change matches {only}. Choices: {'; '.join(c.name for c in CHANGES)}."
        )
    done = {(row.change, row.seed, row.epochs, row.data) for row in read_rows(out)}
    for seed in seeds:
        for change in chosen:
            if (change.name, seed, epochs, data.name) in done:
                continue
            print(f"{change.name}, seed {seed}", flush=True)
            row = run(change, data, epochs=epochs, seed=seed, device=device)
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    rows = list(read_rows(out))
    print(table(rows))
    return rows


def read_rows(path: Path) -> Iterator[Row]:
    """Give the rows of a file of JSON lines, none if there is no file.

    Raises:
        ValueError: a row of a change that the list does not have, or has otherwise by now.
    """
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = Row(**json.loads(line))
            model, train = settings(row.change)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number} is no row of this list: {error}") from None
        if row.changes != {**model, **train}:
            raise ValueError(
                f"{path}, line {number}: {row.change!r} was measured with {row.changes}, and now "
                f"means { ({**model, **train}) }. Remove the line to measure it again."
            )
        yield row


def measured_rows() -> list[Row]:
    """Give the rows that come with the package; the command that made them stands in its README."""
    with resources.as_file(resources.files("vitedu.bench") / "ablations.jsonl") as path:
        return list(read_rows(path))


def summary(rows: list[Row]) -> list[dict]:
    """Average rows over seeds, in the order of ``CHANGES``.

    A gain is a mean of differences, each between two runs of one seed.

    Returns:
        A dict a change: name, after, seeds (how many), epochs, accuracy (mean, in [0, 1]), low and high
        over the seeds, gain over the row it starts from in the same epochs and gains, the difference
        for each seed that both have (None and empty where that is missing), seconds.
    """
    found: dict[tuple[str, int], dict[int, Row]] = {}
    for row in rows:
        found.setdefault((row.change, row.epochs), {})[row.seed] = row
    lines = []
    for epochs in sorted({epochs for _, epochs in found}):
        for change in CHANGES:
            group = found.get((change.name, epochs))
            if not group:
                continue
            start = found.get((change.after, epochs), {})
            accuracy = {seed: row.validation_accuracy for seed, row in group.items()}
            gains = [
                accuracy[seed] - start[seed].validation_accuracy
                for seed in accuracy
                if seed in start
            ]
            lines.append(
                {
                    "change": change.name,
                    "after": change.after,
                    "seeds": len(group),
                    "epochs": epochs,
                    "accuracy": fmean(accuracy.values()),
                    "low": min(accuracy.values()),
                    "high": max(accuracy.values()),
                    "gain": fmean(gains) if gains else None,
                    "gains": gains,
                    "seconds": fmean(row.seconds for row in group.values()),
                }
            )
    return lines


def table(rows: list[Row]) -> str:
    """Write the averages as text, with the least and the largest gain where there are several seeds."""
    lines = [
        "validation  gain      of seeds        seeds  epochs  change                                  after",
        "----------  --------  --------------  -----  ------  --------------------------------------  -----",
    ]
    for line in summary(rows):
        gain = "" if line["gain"] is None else f"{100 * line['gain']:+.1f} pt"
        gains = [100 * each for each in line["gains"]]
        between = f"{min(gains):+.1f} to {max(gains):+.1f}" if len(gains) > 1 else ""
        lines.append(
            f"{line['accuracy']:10.1%}  {gain:>8}  {between:>14}  {line['seeds']:5d}  "
            f"{line['epochs']:6d}  {line['change']:<38}  {line['after'] or ''}".rstrip()
        )
    return "\n".join(lines)
