"""Whole runs from the command line: ``vitedu train``.

Role: put data, preset, recipe, loop and files together, and print what came out. Not here: the loop
(``loop``), recipes (``recipes``), trained models read again (``trained``).

A run is a folder: ``config.json`` (model, data, training, outcome), ``metrics.jsonl`` (a line an
epoch), ``model.safetensors``, ``curves.png``; TensorBoard's files where that is installed; while it
is not finished, ``state.safetensors`` too. If a student's file was trained, ``my_vit.py`` is a copy
of it, which nothing runs.
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
from vitedu.fitting.checkpoints import DESCRIPTION, WEIGHTS, load_description, save_checkpoint
from vitedu.fitting.curves import draw_curves
from vitedu.fitting.distributed import join_processes, own_device, rank_and_count
from vitedu.fitting.event_files import PATTERN, EventFiles
from vitedu.fitting.history import DivergedError, History
from vitedu.fitting.loop import TrainConfig, fit, measure_test_accuracy
from vitedu.fitting.model_file import COPY, SETTINGS, ModelFile
from vitedu.fitting.recipes import recipe, thread_recipe
from vitedu.fitting.resuming import refuse_changes
from vitedu.fitting.settings import read_settings
from vitedu.hardware import check_device
from vitedu.options import ViTConfigWithOptions, build_model, preset
from vitedu.vit import VisionTransformer

METRICS, CURVES, STATE = "metrics.jsonl", "curves.png", "state.safetensors"

DATA_FIELDS = ("image_size", "in_channels", "num_classes")  # of the model, set by the data

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
    """
    fields = {name: getattr(data, name) for name in DATA_FIELDS} | (model_options or {})
    build: Callable = model_file.module.VisionTransformer if model_file else build_model
    model_config = model_file.configure(**fields) if model_file else preset(preset_name, **fields)
    torch.manual_seed(config.seed)
    model = build(model_config)
    description = {
        "preset": preset_name,
        "model_options": model_options or {},
        "model": asdict(model_config),
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
    }
    if model_file:
        description["model_file"] = COPY
    state = out / STATE if out is not None else None
    if rank_and_count()[0]:  # of the processes under torchrun the first alone writes
        out = None
    if out is not None and not (out / STATE).exists():
        save_checkpoint(out, model, description)  # a folder that cannot be written shows now
        if model_file:
            write_whole(out / COPY, model_file.text.encode())

    def write_run(history: History) -> None:
        if out is not None:
            save_checkpoint(out, model, description)
            lines = [json.dumps(asdict(row)) + "\n" for row in history.rows]
            write_whole(out / METRICS, "".join(lines).encode())

    events = EventFiles(out)

    def after_epoch(history: History) -> None:
        write_run(history)
        events.add(history.rows[-1])

    history = fit(
        model,
        data,
        config,
        show_progress=show_progress,
        on_epoch=after_epoch,
        resume=state,
        start_run=model_file.start_run if model_file else None,
    )
    events.close()
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
) -> int:
    """Run ``vitedu train``: the preset's recipe, with what the caller changed.

    Args:
        out: the folder of the run.
        data, preset_name, limit: None for the drawn shapes, the smallest preset, all images; in a
            run that goes on, for what it began with.
        settings: ``name=value`` for each field of ``TrainConfig`` that differs from the recipe, and
            of the model that differs from the preset.
        resume: go on with the unfinished run in the folder, or begin one where there is none.
        overwrite: remove the files of the run in the folder first.
        model_path: a file whose model is trained in place of a preset; its text runs.

    Returns:
        0; 1 if the loss broke, 130 if the run was interrupted.

    Raises:
        ValueError, OSError: a word that cannot be followed; the message says which.
    """
    out = Path(out)
    kinds = TrainConfig, ViTConfigWithOptions
    changes, model_options = read_settings(settings, *kinds, reserved=DATA_FIELDS)
    if model_path and preset_name:
        raise ValueError("--model and --preset both say what to train: give one of them.")
    model_file = ModelFile(model_path) if model_path else None
    preset_name = model_file.path.name if model_file else preset_name
    check_device(changes.get("device", "auto"))
    if model_file and (others := [name for name in changes if name not in SETTINGS]):
        known = ", ".join(SETTINGS)
        raise ValueError(f"the loop of a file takes {known} (got {', '.join(others)}).")
    description = open_folder(out, resume=resume, overwrite=overwrite)
    if description is None:
        data, preset_name = data or DEFAULT_DATA, preset_name or DEFAULT_PRESET
        # what can be refused is refused before the data, which may take long
        configure: Callable = model_file.configure if model_file else partial(preset, preset_name)
        configure(**model_options)
        of_file = thread_recipe(epochs=10, precision="float32")
        config = replace(of_file if model_file else recipe(preset_name), **changes)
    elif "outcome" in description and not (out / STATE).exists():
        print(f"{out} holds a run that has ended: {outcome_line(description)}")
        return 0
    else:
        check_model_file(model_file, description, out)
        old: dict[str, Any] = {"data": source_of(description, out)}
        old |= {"preset": description["preset"], "limit": description["data"]["limit"]}
        given: dict[str, Any] = {"data": data, "preset": preset_name, "limit": limit}
        now = {name: old[name] if given[name] is None else given[name] for name in old}
        data, preset_name, limit = now.values()
        betas = tuple(description["train"]["betas"])
        config = TrainConfig(**{**description["train"], "betas": betas})
        model = vars(ViTConfigWithOptions(**description["model"]))
        before = {**old, **asdict(config), **model}
        refuse_changes(before, {**before, **now, **changes, **model_options}, out)
        model_options = description["model_options"]
    processes = join_processes(own_device(config.device))
    with processes.rank_zero_first():  # a download, decoded images: once is enough
        images = load(data, limit=limit)
    if processes.rank == 0:
        print(images)
    try:
        result = train(
            images,
            preset_name,
            config,
            model_options=model_options,
            out=out,
            source=data,
            limit=limit,
            model_file=model_file,
        )
    except DivergedError as error:
        (out / STATE).unlink(missing_ok=True)  # going on would break at the same step
        print(f"vitedu: {error}", file=sys.stderr)
        return 1
    if processes.rank == 0:
        print(report(result))
        print(closing_note(out, result.history))
    return 130 if result.history.interrupted else 0


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
        files = f"written to {out}: {DESCRIPTION}, {METRICS}, {WEIGHTS}, {CURVES}"
        if EventFiles(out).is_possible:
            return f"{files}; tensorboard --logdir {out}"
        return f"{files}; with `pip install tensorboard` its files too"
    return (
        f"the model in {out} has learned up to here; --resume goes on after epoch "
        f"{len(history.rows)}, as if there had been no break"
    )


def open_folder(out: Path, *, resume: bool, overwrite: bool) -> dict | None:
    """Make the folder of a run and return the description of the one to go on with, or None.

    Raises:
        ValueError: a run is there, and nobody said what shall become of it.
    """
    out.mkdir(parents=True, exist_ok=True)
    if overwrite:
        if resume:
            raise ValueError("--resume keeps a run and --overwrite removes it: give one of them.")
        for name in (DESCRIPTION, METRICS, WEIGHTS, CURVES, STATE, COPY):
            (out / name).unlink(missing_ok=True)
        for path in out.glob(PATTERN):
            path.unlink()
    if not (out / DESCRIPTION).exists():
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


def outcome_line(description: dict) -> str:
    """Say what a run that ended has reached."""
    outcome = description.get("outcome")
    if outcome is None:
        return "it ended before its first measurement"
    return f"{outcome['epochs']} epochs, test accuracy {outcome['test_accuracy']:.1%}"


def report(result: RunResult) -> str:
    """Say in a few lines what a run reached, with all that a figure needs beside it."""
    history, data = result.history, result.data
    batch_size, count = history.config.batch_size, history.processes
    each = f", at most {-(-batch_size // count)} on each of {count} devices" * (count > 1)
    parameters = sum(parameter.numel() for parameter in result.model.parameters())
    lines = [
        f"data      {data.name}: {len(data.train):,} training, {len(data.validation):,} "
        f"validation, {len(data.test):,} test images",
        f"model     {parameters:,} parameters, seed {history.config.seed}",
        f"batch     {batch_size} images a step{each}",
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
