"""Whole runs from the command line: ``vitedu train``, ``vitedu eval``, ``vitedu predict``.

Role: put data, preset, loop and files together, and print what came out. Not here: the loop
(``fitting``), timing side by side (``benchmarks``), reading of the words (``__main__``).

A run is a folder: ``config.json`` (model, data, training, outcome), ``metrics.jsonl`` (a line an
epoch), ``model.safetensors``, ``curves.png``.
"""

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from vitedu.checkpoints import load_checkpoint, save_checkpoint
from vitedu.data import Data, load_data
from vitedu.fitting import (
    DivergedError,
    History,
    TrainConfig,
    fit,
    measure_test_accuracy,
    predict,
)
from vitedu.hardware import pick_device, pick_precision
from vitedu.image_folder import decode
from vitedu.vit import VisionTransformer, ViTConfig, preset

RECIPES: dict[str, TrainConfig] = {
    # the course's run on the drawn shapes; what it costs and reaches: vitedu bench laptop
    "vit_micro_patch8_32": TrainConfig(epochs=10, batch_size=64, lr=2e-3, crop_padding=2),
    # for CIFAR-10
    "vit_tiny_patch4_32": TrainConfig(epochs=25, batch_size=128, lr=1e-3, label_smoothing=0.1),
}


def recipe(name: str) -> TrainConfig:
    """Return how to train a preset; those that are too large for this course get the defaults."""
    return RECIPES.get(name, TrainConfig())


@dataclass(frozen=True)
class RunResult:
    """What ``train`` hands back."""

    model: VisionTransformer
    data: Data
    history: History
    test_accuracy: float  # in [0, 1], of the weights after the last epoch


def train(
    data: Data,
    preset_name: str,
    config: TrainConfig,
    *,
    out: Path | None = None,
    source: str | None = None,
    show_progress: bool = True,
) -> RunResult:
    """Build a preset for a data set, train it, measure it once on the test images, write the run.

    Args:
        data: the images.
        preset_name: a key of ``vitedu.vit.PRESETS``; image size, channels and classes follow the data.
        config: how to train. Its seed also draws the starting weights.
        out: the folder of the run, or None to write nothing.
        source: where the data came from, kept in ``config.json``.
        show_progress: whether to show the bar.
    """
    model_config = preset(
        preset_name,
        image_size=data.image_size,
        in_channels=data.in_channels,
        num_classes=data.num_classes,
    )
    torch.manual_seed(config.seed)
    model = VisionTransformer(model_config)
    description = {
        "preset": preset_name,
        "model": asdict(model_config),
        "data": {
            "name": data.name,
            "source": source or data.name,
            "class_names": list(data.class_names),
            "mean": data.mean.tolist(),
            "std": data.std.tolist(),
            "sizes": [len(data.train), len(data.validation), len(data.test)],
        },
        "train": asdict(config),
    }
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "metrics.jsonl").write_text("")
        save_checkpoint(out, model, description)  # a folder that can not be written shows now

    def keep(history: History) -> None:
        if out is not None:
            with (out / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(asdict(history.rows[-1])) + "\n")
            save_checkpoint(out, model, description)

    history = fit(model, data, config, show_progress=show_progress, on_epoch=keep)
    accuracy = measure_test_accuracy(model, data, getattr(torch, history.precision))
    description["outcome"] = {
        "device": history.device,
        "precision": history.precision,
        "interrupted": history.interrupted,
        "epochs": len(history.rows),
        "seconds": history.seconds,
        "test_accuracy": accuracy,
    }
    if out is not None:
        save_checkpoint(out, model, description)
        if history.rows:
            draw_curves(history, data.num_classes).savefig(out / "curves.png", dpi=120)
    return RunResult(model, data, history, accuracy)


def draw_curves(history: History, num_classes: int):
    """Return the figure of loss and accuracy by epoch."""
    from vitedu.plots.training import show_curves

    columns = ("train_loss", "validation_loss", "train_accuracy", "validation_accuracy")
    return show_curves(*map(history.column, columns), chance=1 / num_classes)


def main_train(
    *,
    data: str,
    preset_name: str,
    out: Path,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    seed: int = 0,
    limit: int | None = None,
    device: str = "auto",
    precision: str = "auto",
) -> int:
    """Run ``vitedu train``: the preset's recipe, with what the caller changed.

    Returns:
        0; 1 if the loss broke, 130 if the run was interrupted.

    Raises:
        ValueError, OSError: a word that can not be followed; the message says which.
    """
    check_device(device)
    changes = {"epochs": epochs, "batch_size": batch_size, "lr": lr}
    changes = {name: value for name, value in changes.items() if value is not None}
    config = replace(recipe(preset_name), seed=seed, device=device, precision=precision, **changes)
    preset(preset_name)  # what can be refused is refused before the data, which may take long
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    images = load(data, limit=limit)
    print(images)
    try:
        result = train(images, preset_name, config, out=out, source=data)
    except DivergedError as error:
        print(f"vitedu: {error}", file=sys.stderr)
        return 1
    print(report(result))
    print(f"written to {out}: config.json, metrics.jsonl, model.safetensors, curves.png")
    return 130 if result.history.interrupted else 0


def report(result: RunResult) -> str:
    """Say in a few lines what a run reached, with all that a figure needs beside it."""
    history, data = result.history, result.data
    parameters = sum(parameter.numel() for parameter in result.model.parameters())
    lines = [
        f"data      {data.name}: {len(data.train):,} training, {len(data.validation):,} validation, "
        f"{len(data.test):,} test images",
        f"model     {parameters:,} parameters, seed {history.config.seed}",
        f"machine   {history.device}, {history.precision}, {torch.get_num_threads()} CPU threads",
    ]
    if history.rows:
        last = history.rows[-1]
        speed = sum(history.column("images_per_second")) / len(history.rows)
        lines += [
            f"time      {history.seconds:.1f} s for {len(history.rows)} epochs, {speed:.0f} images/s",
            f"accuracy  {last.train_accuracy:.1%} training, {last.validation_accuracy:.1%} "
            f"validation, {result.test_accuracy:.1%} test (last epoch)",
        ]
    else:
        lines.append(f"accuracy  {result.test_accuracy:.1%} test, before the first epoch was over")
    if history.interrupted:
        lines.append(f"interrupted: {len(history.rows)} of {history.config.epochs} epochs finished")
    return "\n".join(lines)


def main_eval(*, checkpoint: Path, data: str | None = None, device: str = "auto") -> int:
    """Run ``vitedu eval``: measure a checkpoint on the validation and test images of a data set."""
    model, description = load_run(checkpoint, device)
    known = description["data"]
    images = load(data or known["source"], image_size=model.config.image_size)
    if list(images.class_names) != known["class_names"]:
        raise ValueError(
            f"the model knows {len(known['class_names'])} classes ({', '.join(known['class_names'])}), "
            f"{images.name} has {len(images.class_names)} ({', '.join(images.class_names)})."
        )
    images = replace(images, mean=torch.tensor(known["mean"]), std=torch.tensor(known["std"]))
    dtype = pick_precision(next(model.parameters()).device)
    print(images)
    for name in ("validation", "test"):
        split = getattr(images, name)
        accuracy = measure_test_accuracy(model, replace(images, test=split), dtype)
        print(f"{name:<11}{accuracy:.1%} of {len(split):,} images")
    return 0


def main_predict(
    *, checkpoint: Path, images: list[Path], top: int = 3, device: str = "auto"
) -> int:
    """Run ``vitedu predict``: name the most probable classes of each image file."""
    if top < 1:
        raise ValueError(f"top must be at least 1 (got {top}).")
    model, description = load_run(checkpoint, device)
    if model.config.in_channels != 3:
        raise ValueError(f"the model takes {model.config.in_channels} channels, files give 3.")
    known = description["data"]
    decoded = []
    for path in map(Path, images):
        if not path.is_file():
            raise ValueError(f"there is no image at {path}.")
        try:
            decoded.append(decode(path, model.config.image_size))
        except Exception as error:  # decoders fail in many ways on a damaged file
            raise ValueError(f"{path} can not be read as an image: {error}.") from None
    pixels = torch.from_numpy(np.stack(decoded)).permute(0, 3, 1, 2)  # (N, S, S, 3) -> (N, 3, S, S)
    statistics = Statistics(torch.tensor(known["mean"]), torch.tensor(known["std"]))
    probabilities = predict(model, pixels, statistics)  # (N, K)
    for path, row in zip(images, probabilities, strict=True):
        values, classes = row.topk(min(top, len(row)))
        guesses = ", ".join(
            f"{known['class_names'][k]} {p:.1%}"
            for p, k in zip(values.tolist(), classes.tolist(), strict=True)
        )
        print(f"{path}: {guesses}")
    return 0


@dataclass(frozen=True)
class Statistics:
    """What ``predict`` needs of a data set."""

    mean: torch.Tensor  # (C,) of the training pixels, on a scale of 0 to 1
    std: torch.Tensor  # (C,)


def load(source: str, **options) -> Data:
    """Load data; a failed download is a mistake of the surroundings, not of the code."""
    try:
        return load_data(source, **options)
    except RuntimeError as error:
        raise OSError(str(error)) from None


def load_run(folder: Path, device: str = "auto") -> tuple[VisionTransformer, dict]:
    """Build the model of a run folder, with its weights, in eval mode.

    Raises:
        ValueError: no checkpoint there, or weights that do not fit its description.
    """
    check_device(device)
    tensors, description = load_checkpoint(folder)
    try:
        model = VisionTransformer(ViTConfig(**description["model"]))
        model.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError) as error:
        raise ValueError(
            f"{folder}: weights and description do not fit. {str(error).splitlines()[0]}"
        ) from None
    return model.to(pick_device() if device == "auto" else device).eval(), description


def check_device(name: str) -> None:
    """Refuse a device that torch does not know or this machine does not have."""
    if name == "auto":
        return
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA asserts
        reason = str(error).split(". ")[0].splitlines()[0]
        raise ValueError(
            f"device {name!r} can not be used here. Choices: auto, cpu, cuda, mps. ({reason})"
        ) from None
