"""Whole runs from the command line: ``vitedu train``.

Role: put data, preset, recipe, loop and files together, and print what came out. Not here: the loop
(``loop``), recipes (``recipes``), trained models read again (``trained``).

A run is a folder: ``config.json`` (model, data, training, outcome), ``metrics.jsonl`` (a line an
epoch), ``model.safetensors``, ``curves.png``; while it is not finished, ``state.safetensors`` too.
If a student's file was trained, ``my_vit.py`` is a copy of it, which nothing runs.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from vitedu.data import Data, cifar10, load_data
from vitedu.files import write_whole
from vitedu.fitting.checkpoints import (
    DESCRIPTION,
    WEIGHTS,
    load_checkpoint,
    load_description,
    save_checkpoint,
)
from vitedu.fitting.curves import draw_curves
from vitedu.fitting.history import DivergedError, History
from vitedu.fitting.loop import TrainConfig, fit, measure_test_accuracy
from vitedu.fitting.model_file import COPY, SETTINGS, ModelFile
from vitedu.fitting.optimizers import freeze
from vitedu.fitting.recipes import FINE_TUNING, recipe, thread_recipe
from vitedu.fitting.resuming import refuse_changes
from vitedu.fitting.settings import read_settings
from vitedu.fitting.starting import Start, load_start, match, rebuild
from vitedu.hardware import check_device
from vitedu.options import ViTConfigWithOptions, build_model, preset
from vitedu.pretrained.conversions import PublishedConfig
from vitedu.vit import VisionTransformer

METRICS, CURVES, STATE = "metrics.jsonl", "curves.png", "state.safetensors"

# fields of the model that --set leaves alone, and what says them
DATA_FIELDS = {
    "image_size": "--image-size does, one number for square images",
    "in_channels": "the images have their channels",
    "num_classes": "the data have their classes",
}

DEFAULT_DATA, DEFAULT_PRESET = "cifar10", "vit_micro_patch8_32"


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
    model_options: dict | None = None,
    out: Path | None = None,
    source: str | None = None,
    limit: int | None = None,
    show_progress: bool = True,
    model_file: ModelFile | None = None,
    start: Start | None = None,
) -> RunResult:
    """Build a preset for a data set, train it, measure it once on the test images, write the run.

    Args:
        data: the images.
        preset_name: of ``vitedu.options.preset``; size, channels and classes follow the data.
        config: how to train. Its seed also draws the starting weights.
        model_options: fields that differ from those of the preset, such as ``rope=True``.
        out: the folder of the run, or None to write nothing. An unfinished run in it goes on.
        source: where the data came from, kept in ``config.json``.
        limit: to how many training images they were cut, kept likewise.
        show_progress: whether to show the bar.
        model_file: whose model is trained in place of a preset, by its own loop.
        start: weights to train on, whose shape replaces that of the preset.
    """
    if start:
        shape = start.shape
        model = rebuild(start, model_file, preset_name)
    else:
        fields = {name: getattr(data, name) for name in DATA_FIELDS} | (model_options or {})
        new: Callable = model_file.module.VisionTransformer if model_file else build_model
        made = model_file.configure(**fields) if model_file else preset(preset_name, **fields)
        shape = asdict(made)
        torch.manual_seed(config.seed)
        model = new(made)
    freeze(model, config.freeze)  # refuses too many blocks before anything is written
    description = {
        "preset": preset_name,
        "model_options": model_options or {},
        "model": shape,
        "data": {
            "name": data.name,
            "source": source or data.name,
            "limit": limit,
            "class_names": list(data.class_names),
            "mean": data.mean.tolist(),
            "std": data.std.tolist(),
            "sizes": [len(data.train), len(data.validation), len(data.test)],
        },
        "train": asdict(config),
        **(start.named if start else {}),
    }
    if model_file:
        description["model_file"] = COPY
    state = out / STATE if out is not None else None
    if out is not None and not (out / STATE).exists():
        save_checkpoint(out, model, description)  # a folder that cannot be written shows now
        if model_file:
            write_whole(out / COPY, model_file.text.encode())

    def write_run(history: History) -> None:
        if out is not None:
            save_checkpoint(out, model, description)
            lines = [json.dumps(asdict(row)) + "\n" for row in history.rows]
            write_whole(out / METRICS, "".join(lines).encode())

    history = fit(
        model,
        data,
        config,
        show_progress=show_progress,
        on_epoch=write_run,
        resume=state,
        start_run=model_file.start_run if model_file else None,
    )
    write_run(history)  # an interruption left more than the last epoch did
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
            draw_curves(history, data.num_classes, data.name).savefig(out / CURVES, dpi=120)
        if not history.interrupted:
            (out / STATE).unlink()  # from here on the run is finished
    return RunResult(model, data, history, accuracy)


def main_train(
    *,
    out: Path,
    data: str | None = None,
    preset_name: str | None = None,
    limit: int | None = None,
    settings: Sequence[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    model_path: Path | None = None,
    pretrained: str | None = None,
    weights: Path | None = None,
    image_size: int | None = None,
) -> int:
    """Run ``vitedu train``: the preset's recipe, with what the caller changed.

    Args:
        out: the folder of the run.
        data, preset_name, limit: None for the photographs, the smallest preset, all images; in a
            run that goes on, for what it began with.
        settings: ``name=value`` for each field of ``TrainConfig`` that differs from the recipe, and
            of the model that differs from the preset.
        resume: go on with the unfinished run in the folder, or begin one where there is none.
        overwrite: remove the files of the run in the folder first.
        model_path: a file whose model is trained in place of a preset; its text runs.
        pretrained: a name of ``load_pretrained``, or the folder of a run, to start from.
        weights: as ``load_pretrained`` takes them.
        image_size: pixels; by default those of the preset or of the weights.

    Returns:
        0; 1 if the loss broke, 130 if the run was interrupted.

    Raises:
        ValueError, OSError: a word that cannot be followed; the message says which. Nothing has
            been written then.
    """
    out = Path(out)
    given: dict[str, Any] = {"data": data, "preset": preset_name, "limit": limit}
    given |= {"image_size": image_size, "pretrained": pretrained}
    given["weights"] = str(weights) if weights else None
    kinds = TrainConfig, ViTConfigWithOptions
    changes, model_options = read_settings(settings, *kinds, reserved=DATA_FIELDS)
    if model_path and preset_name:
        raise ValueError("--model and --preset both say what to train: give one of them.")
    model_file = ModelFile(model_path) if model_path else None
    check_device(changes.get("device", "auto"))
    if model_file and (others := [name for name in changes if name not in SETTINGS]):
        known = ", ".join(SETTINGS)
        raise ValueError(f"the loop of a file takes {known} (got {', '.join(others)}).")
    description = open_folder(out, resume=resume, overwrite=overwrite)
    plan = begin if description is None else partial(go_on, out, description)
    words, config, model_options, start = plan(given, changes, model_options, model_file)
    if description and is_ended(out, description):
        print(f"{out} holds a run that has ended: {outcome_line(description)}")
        return 0
    images = load(words["data"], limit=words["limit"], image_size=words["image_size"])
    if start:
        images, start = match(images, start)
    print(images)
    if overwrite:
        remove_run(out)
    absent = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        result = train(
            images,
            words["preset"],
            config,
            model_options=model_options,
            out=out,
            source=words["data"],
            limit=words["limit"],
            model_file=model_file,
            start=start,
        )
    except DivergedError as error:
        (out / STATE).unlink(missing_ok=True)  # going on would break at the same step
        print(f"vitedu: {error}", file=sys.stderr)
        return 1
    except ValueError:
        if out in absent and not (out / STATE).exists():
            remove_run(out)  # refused before its first step
            for folder in filter(Path.exists, absent):
                folder.rmdir()
        raise
    print(report(result))
    print(closing_note(out, result.history))
    return 130 if result.history.interrupted else 0


# what was given or is the default; the recipe; options of the model; what to start from
Plan = tuple[dict[str, Any], TrainConfig, dict, Start | None]


def begin(given: dict, changes: dict, model_options: dict, model_file: ModelFile | None) -> Plan:
    """Decide what a new run is, and refuse what can be refused before the images are read."""
    words = {**given, "data": given["data"] or DEFAULT_DATA}
    size, start = given["image_size"], None
    if given["weights"] and not given["pretrained"]:
        raise ValueError("--weights goes with --pretrained, which names their model.")
    if given["pretrained"]:
        if given["preset"] or model_options:
            other = "--preset" if given["preset"] else f"--set {', '.join(model_options)}"
            raise ValueError(f"the weights of --pretrained have a shape of their own, not {other}.")
        start = load_start(given["pretrained"], given["weights"], size)
        name, size, usual = given["pretrained"], start.shape["image_size"], FINE_TUNING
        if model_file:
            usual = replace(usual, precision="float32")
            rebuild(start, model_file, name)
    else:
        name = model_file.path.name if model_file else given["preset"] or DEFAULT_PRESET
        usual = recipe(name)
        if model_file:
            usual = thread_recipe(epochs=10, precision="float32")
        elif given["preset"]:
            own = preset(name).image_size
            if size not in (None, own):
                raise ValueError(
                    f"--preset {name} takes {own} px and --image-size says {size}: leave one out. "
                    "Weights (--pretrained) take other sizes: their positions are interpolated."
                )
            size = own
        configure: Callable = model_file.configure if model_file else partial(preset, name)
        configure(**model_options, **({"image_size": size} if size else {}))
    words |= {"preset": name, "image_size": size}
    return words, replace(usual, **changes), model_options, start


def go_on(
    out: Path,
    description: dict,
    given: dict,
    changes: dict,
    model_options: dict,
    model_file: ModelFile | None,
) -> Plan:
    """Read what the run in a folder is, and refuse words that would change it."""
    info, shape = description["data"], description["model"]
    named = {name: description.get(name) for name in ("pretrained", "weights")}
    old: dict[str, Any] = {"data": source_of(description, out), "preset": description["preset"]}
    old |= {"limit": info["limit"], "image_size": shape["image_size"], **named}
    words = {name: old[name] if given[name] is None else given[name] for name in old}
    betas = tuple(description["train"]["betas"])
    config = TrainConfig(**{**description["train"], "betas": betas})
    before = {**old, **asdict(config), **asdict(PublishedConfig(**shape))}
    place = f"the run in {out}"
    if is_ended(out, description):
        place += f" has ended with {outcome_line(description)}, and its state is gone "
        place += f"(--pretrained {out} --out OTHER starts from its weights)"
    else:
        check_model_file(model_file, description, out)
    refuse_changes(before, {**before, **words, **changes, **model_options}, place)
    start = Start(shape, load_checkpoint(out)[0], info, named if named["pretrained"] else {})
    return words, config, description["model_options"], start


def is_ended(out: Path, description: dict) -> bool:
    """Tell whether nothing is left to learn in the run of a folder."""
    return "outcome" in description and not (out / STATE).exists()


def check_model_file(model_file: ModelFile | None, description: dict, out: Path) -> None:
    """Refuse to go on with another model than that which the run in a folder trains."""
    if bool(model_file) != ("model_file" in description):
        there = f"a file, of which {out / COPY} is a copy: name one with --model, which runs it"
        whose = "a preset: leave --model out" if model_file else there
        raise ValueError(f"the run in {out} trains {whose}.")
    if model_file and model_file.text != (out / COPY).read_text(encoding="utf-8"):
        raise ValueError(f"{model_file.path} is not what the run began with: {out / COPY} is.")


def source_of(description: dict, folder: Path) -> str:
    """Say where the images of a run came from; "cifar10" was a download before it was shipped."""
    info = description["data"]
    if info["source"] != "cifar10" or info.get("mean") == torch.tensor(cifar10.MEAN).tolist():
        return info["source"]
    print(f"{folder} learned from CIFAR-10 as published, now cifar10-original, not its JPEG copy.")
    return "cifar10-original"


def closing_note(out: Path, history: History) -> str:
    """Say what is in the folder of a run, and how an interrupted one goes on."""
    if not history.interrupted:
        return f"written to {out}: {DESCRIPTION}, {METRICS}, {WEIGHTS}, {CURVES}"
    return (
        f"the model in {out} has learned up to here; --resume goes on after epoch "
        f"{len(history.rows)}, as if there had been no break"
    )


def open_folder(out: Path, *, resume: bool, overwrite: bool) -> dict | None:
    """Return the description of the run to go on with in a folder, or None.

    Raises:
        ValueError: a run is there, and nobody said what shall become of it.
    """
    if overwrite and resume:
        raise ValueError("--resume keeps a run and --overwrite removes it: give one of them.")
    if overwrite or not (out / DESCRIPTION).exists():
        return None
    description = load_description(out)
    if not resume and (out / STATE).exists():
        raise ValueError(
            f"{out} holds a run that is not finished: --resume goes on with it, --overwrite begins "
            "anew, another --out leaves it alone."
        )
    if not resume:
        raise ValueError(
            f"{out} holds a run already ({outcome_line(description)}): name another --out, or "
            "--overwrite it."
        )
    if not {"preset", "model", "model_options", "data", "train"} <= set(description):
        raise ValueError(f"{out / DESCRIPTION} does not describe a run of vitedu train.")
    return description


def remove_run(out: Path) -> None:
    """Remove the files of a run, and none besides."""
    for name in (DESCRIPTION, METRICS, WEIGHTS, CURVES, STATE, COPY):
        (out / name).unlink(missing_ok=True)


def outcome_line(description: dict) -> str:
    """Say what a run that ended has reached."""
    outcome = description.get("outcome")
    if outcome is None:
        return "it ended before its first measurement"
    return f"{outcome['epochs']} epochs, test accuracy {outcome['test_accuracy']:.1%}"


def report(result: RunResult) -> str:
    """Say in a few lines what a run reached, with all that a figure needs beside it."""
    history, data = result.history, result.data
    parameters, learning = (
        sum(part.numel() for part in result.model.parameters() if part.requires_grad or is_any)
        for is_any in (True, False)
    )
    frozen = f", {learning:,} of them learned" * (learning < parameters)
    lines = [
        f"data      {data.name}: {len(data.train):,} training, {len(data.validation):,} "
        f"validation, {len(data.test):,} test images",
        f"model     {parameters:,} parameters{frozen}, seed {history.config.seed}",
        f"batch     {history.config.batch_size} images a step",
        f"machine   {history.device}, {history.precision}, {torch.get_num_threads()} CPU threads",
    ]
    if history.rows:
        last = history.rows[-1]
        speed = sum(history.column("images_per_second")) / len(history.rows)
        lines += [
            f"time      {history.seconds:.1f} s for {len(history.rows)} epochs, {speed:.0f} "
            "images/s",
            f"accuracy  {last.train_accuracy:.1%} training, {last.validation_accuracy:.1%} "
            f"validation, {result.test_accuracy:.1%} test (last epoch)",
        ]
    else:
        lines.append(f"accuracy  {result.test_accuracy:.1%} test, before the first epoch was over")
    if history.interrupted:
        lines.append(f"interrupted: {len(history.rows)} of {history.config.epochs} epochs finished")
    return "\n".join(lines)


def load(source: str, **options) -> Data:
    """Load data; missing files are a mistake of the surroundings, not of the code."""
    try:
        return load_data(source, **options)
    except RuntimeError as error:
        raise OSError(str(error)) from None
