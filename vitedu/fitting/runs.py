"""Whole runs from the command line: ``vitedu train``.

Role: put data, preset, recipe, loop and files together, and print what came out. Not here: the loop
(``loop``), recipes (``recipes``), trained models read again (``saved_run``).

A run is a folder: ``config.json`` (model, data, training, outcome), ``metrics.jsonl`` (a line an
epoch), ``model.safetensors``, ``curves.png``; while it is not finished, ``state.pt`` too. If a
student's file was trained, ``my_vit.py`` is a copy of it, which nothing runs.
"""

import difflib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_type_hints

import torch

from vitedu.data import Data, load_data
from vitedu.data.horizons import horizons
from vitedu.extras.options import ViTConfigWithOptions, build_model, preset
from vitedu.fitting.checkpoints import (
    DESCRIPTION,
    WEIGHTS,
    load_description,
    refuse_changes,
    save_checkpoint,
)
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.evaluating import measure_test_accuracy
from vitedu.fitting.history import DivergedError, History
from vitedu.fitting.loop import Run
from vitedu.fitting.model_file import COPY, SETTINGS, FileRun, ModelFile
from vitedu.fitting.recipes import FINE_TUNING, recipe, thread_recipe
from vitedu.fitting.saved_run import Start, load_start, match, rebuild
from vitedu.ground.files import write_whole
from vitedu.ground.hardware import check_device
from vitedu.vit import VisionTransformer, ViTConfig

METRICS, CURVES, STATE = "metrics.jsonl", "curves.png", "state.pt"

# what a caller may say of a run, beside its settings
WORDS = "data preset limit pretrained weights image_size".split()

# fields of the model that --set leaves alone, and what says them
DATA_FIELDS = {
    "image_size": "--image-size does, one number for square images",
    "in_channels": "the images have their channels",
    "num_classes": "the data have their classes",
}

DEFAULT_DATA, DEFAULT_PRESET = "cifar10", "vit_micro_patch8_32"


def main_train(
    out: Path,
    words: dict[str, Any],
    settings: Sequence[str] = (),
    *,
    resume: bool = False,
    model_path: Path | None = None,
) -> int:
    """Run ``vitedu train``: the preset's recipe, with what the caller changed.

    Args:
        out: the folder of the run.
        words: of ``WORDS``, as the command's options of these names. What is left out or None is
            the usual, and in a run that goes on what it began with.
        settings: ``name=value`` for each field of ``TrainConfig`` that differs from the recipe, and
            of the model that differs from the preset.
        resume: go on with the unfinished run in the folder, or begin one where there is none.
        model_path: a file whose model is trained in place of a preset; its text runs.

    Returns:
        0; 1 if the loss broke, 130 if the run was interrupted.

    Raises:
        ValueError, OSError: a word that cannot be followed; the message says which. Nothing has
            been written then.
    """
    out, words = Path(out), {**dict.fromkeys(WORDS), **words}
    changes, options = read_settings(settings)
    if model_path and words["preset"]:
        raise ValueError("--model and --preset both say what to train: give one of them.")
    model_file = ModelFile(model_path) if model_path else None
    check_device(changes.get("device", "auto"))
    if model_file and (others := [name for name in changes if name not in SETTINGS]):
        choices = ", ".join(SETTINGS)
        raise ValueError(f"the loop of a file takes {choices} (got {', '.join(others)}).")
    if (out / DESCRIPTION).exists():
        description = reopen(out, resume, words, {**changes, **options}, model_file)
        if is_ended(out, description):
            print(f"{out} holds a run that has ended: {outcome_line(description)}")
            return 0
        begun: Start | ViTConfig = load_start(str(out), model_file=model_file)
    else:
        description, begun = begin(words, changes, options, model_file)
    info, size = description["data"], description["model"]["image_size"]
    images = load_data(info["source"], limit=info["limit"], image_size=size)
    if isinstance(begun, tuple):
        model, known = begun
        images = match(images, model, known)
        if model_file and "model_file" not in description:  # so far it is the package's model
            shape, tensors = asdict(model.config), model.state_dict()
            model = rebuild(shape, tensors, model_file, description["preset"])
    else:
        config = replace(begun, in_channels=images.in_channels, num_classes=images.num_classes)
        torch.manual_seed(description["train"]["seed"])
        model = model_file.module.VisionTransformer(config) if model_file else build_model(config)
    description["model"] = asdict(model.config)
    print(images)
    try:
        history = train(out, description, model, images, model_file)
    except DivergedError as error:
        (out / STATE).unlink(missing_ok=True)  # going on would break at the same step
        print(f"vitedu: {error}", file=sys.stderr)
        return 1
    print(report(out, description, model))
    return 130 if history.interrupted else 0


def read_pair(text: str) -> tuple[float, float]:
    """Read two numbers with a comma between them."""
    first, second = text.strip("()").split(",")
    return float(first), float(second)


# the type of a field -> what it is called, how it is read
TYPES: dict[Any, tuple[str, Callable[[str], Any]]] = {
    bool: ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
    int: ("a whole number", int),
    int | None: (
        "a whole number or none",
        lambda text: None if text.lower() == "none" else int(text),
    ),
    float: ("a number", float),
    str: ("a word", str),
    tuple[float, float]: ("2 numbers with a comma between them", read_pair),
}


def read_settings(texts: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read settings as fields of ``TrainConfig`` and of ``ViTConfigWithOptions``.

    Args:
        texts: each ``name=value``; true, false and none as such, a tuple as ``0.9,0.95``. Nothing
            is evaluated.

    Returns:
        Values by name, of the one and of the other; they have no common field.

    Raises:
        ValueError: a setting without "=", an unknown name (the message has the nearest and all
            others), a name given twice, or a value that is not of the field's type.

    Example:
        >>> read_settings(["betas=0.9,0.99", "crop_padding=none", "rope=true"])
        ({'betas': (0.9, 0.99), 'crop_padding': None}, {'rope': True})
    """
    of_model = get_type_hints(ViTConfigWithOptions)
    types = {**get_type_hints(TrainConfig), **of_model}
    names = [name for name in types if name not in DATA_FIELDS]
    values: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    for setting in texts:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise ValueError(f"a setting is written name=value (got {setting!r}).")
        if name in DATA_FIELDS:
            raise ValueError(f"--set does not set {name}: {DATA_FIELDS[name]}.")
        if name not in names:
            nearest = difflib.get_close_matches(name, names, n=1)
            guess = f" Did you mean {nearest[0]}?" if nearest else ""
            raise ValueError(f"no setting is named {name!r}.{guess} There are {', '.join(names)}.")
        fields = values[name in of_model]
        if name in fields:
            raise ValueError(f"{name} is set twice.")
        what, read = TYPES[types[name]]
        try:
            fields[name] = read(text.strip())
        except (KeyError, ValueError):
            raise ValueError(f"{name} must be {what} (got {text.strip()!r}).") from None
    return values


def begin(
    words: dict, changes: dict, options: dict, model_file: ModelFile | None
) -> tuple[dict[str, Any], Start | ViTConfig]:
    """Decide what a new run is, and refuse what can be refused before the images are read.

    Returns:
        What its ``config.json`` can say yet; the weights that it starts from, or a shape.
    """
    size, start = words["image_size"], None
    sizes = {"image_size": size} if size else {}
    if words["weights"] and not words["pretrained"]:
        raise ValueError("--weights goes with --pretrained, which names their model.")
    if words["pretrained"]:
        if words["preset"] or options:
            other = "--preset" if words["preset"] else f"--set {', '.join(options)}"
            raise ValueError(f"the weights of --pretrained have a shape of their own, not {other}.")
        name, usual = words["pretrained"], FINE_TUNING
        start = load_start(name, words["weights"], size)
        config = start[0].config
        if model_file:
            usual = replace(usual, precision="float32")
    elif model_file:
        name, usual = model_file.path.name, thread_recipe(epochs=10, precision="float32")
        config = model_file.configure(**options, **sizes)
    else:
        name = words["preset"] or DEFAULT_PRESET
        usual, own = recipe(name), preset(name).image_size
        if words["preset"] and size not in (None, own):
            raise ValueError(
                f"--preset {name} takes {own} px and --image-size says {size}: leave one out. "
                "Weights (--pretrained) take other sizes: their positions are interpolated."
            )
        config = preset(name, **options, **sizes)
    description = {
        "preset": name,
        "model": asdict(config),
        "data": {"source": words["data"] or DEFAULT_DATA, "limit": words["limit"]},
        "train": asdict(replace(usual, **changes)),
    }
    if start:
        description |= {name: words[name] for name in ("pretrained", "weights")}
    return description, start or config


def reopen(
    out: Path, resume: bool, words: dict, changes: dict, model_file: ModelFile | None
) -> dict[str, Any]:
    """Read the description of the run in a folder, and refuse to make it another run.

    Raises:
        ValueError: nobody said that it shall go on, or words would change what it is.
    """
    description, is_stopped = load_description(out), (out / STATE).exists()
    if not resume:
        what = f"already ({outcome_line(description)}):"
        if is_stopped:
            what = "that is not finished: --resume goes on with it;"
        raise ValueError(f"{out} holds a run {what} remove the folder, or name another --out.")
    is_run = {"preset", "model", "train"} <= set(description)
    if not is_run or "source" not in description.get("data", {}):
        raise ValueError(f"{out / DESCRIPTION} does not describe a run of vitedu train.")
    if (out / "state.safetensors").exists():
        raise ValueError(f"the run in {out} was stopped in an older version: it can end it.")
    place = f"the run in {out}"
    if is_ended(out, description):
        place += f" has ended with {outcome_line(description)}, and its state is gone "
        place += f"(--pretrained {out} --out OTHER starts from its weights)"
    elif bool(model_file) != ("model_file" in description):
        there = f"a file, of which {out / COPY} is a copy: name one with --model, which runs it"
        raise ValueError(
            f"{place} trains {'a preset: leave --model out' if model_file else there}."
        )
    elif model_file and model_file.text != (out / COPY).read_text(encoding="utf-8"):
        raise ValueError(f"{model_file.path} is not what the run began with: {out / COPY} is.")
    info, shape = description["data"], description["model"]
    before = {name: description.get(name) for name in ("preset", "pretrained", "weights")}
    before |= {"data": info["source"], "limit": info["limit"], "image_size": shape["image_size"]}
    before |= asdict(TrainConfig(**description["train"])) | asdict(ViTConfigWithOptions(**shape))
    given = {name: value for name, value in words.items() if value is not None}
    refuse_changes(before, {**before, **given, **changes}, place)
    return description


def is_ended(out: Path, description: dict) -> bool:
    """Tell whether nothing is left to learn in the run of a folder."""
    return "outcome" in description and not (out / STATE).exists()


def train(
    out: Path,
    description: dict[str, Any],
    model: VisionTransformer,
    data: Data,
    model_file: ModelFile | None = None,
) -> History:
    """Train a model in place, measure it once on the test images, and write the run.

    An unfinished run in the folder goes on. The description becomes that of the trained model.
    """
    info, config, state = description["data"], TrainConfig(**description["train"]), out / STATE
    info |= {"name": data.name, "class_names": list(data.class_names)}
    info |= {"mean": data.mean.tolist(), "std": data.std.tolist()}
    description.pop("outcome", None)
    if model_file:
        description["model_file"] = COPY

    def write_run(history: History) -> None:
        save_checkpoint(out, model, description)
        lines = [json.dumps(asdict(row)) + "\n" for row in history.rows]
        write_whole(out / METRICS, "".join(lines).encode())

    # a run that is refused here has not made its folder
    run = (
        FileRun(model_file.module, model, data, config) if model_file else Run(model, data, config)
    )
    if not state.exists():
        save_checkpoint(out, model, description)
        if model_file:
            write_whole(out / COPY, model_file.text.encode())
    history = run.all_epochs(on_epoch=write_run, resume=state)
    description["outcome"] = {
        "device": history.device,
        "precision": history.precision,
        "interrupted": history.interrupted,
        "epochs": len(history.rows),
        "seconds": history.seconds,
        "test_accuracy": measure_test_accuracy(model, data, getattr(torch, history.precision)),
    }
    write_run(history)  # an interruption left more than the last epoch did
    if history.rows:
        from vitedu.plots.training import show_curves  # matplotlib: only where it is shown

        levels: Any = {"chance": 1 / data.num_classes, "horizons": horizons(data.name)}
        show_curves(history.column, **levels).savefig(out / CURVES, dpi=120)
    if not history.interrupted:
        state.unlink()  # from here on the run is finished
    return history


def outcome_line(description: dict) -> str:
    """Say what a run that ended has reached."""
    outcome = description.get("outcome")
    if outcome is None:
        return "it ended before its first measurement"
    return f"{outcome['epochs']} epochs, test accuracy {outcome['test_accuracy']:.1%}"


def report(out: Path, description: dict, model: VisionTransformer) -> str:
    """Say in a few lines what a run reached, and where it is or how it goes on."""
    outcome, sizes = description["outcome"], [0, 0]  # of weights that stayed, and that learned
    for parameter in model.parameters():
        sizes[parameter.requires_grad] += parameter.numel()
    frozen = f", {sizes[1]:,} of them learned" * (sizes[0] > 0)
    machine = f"{outcome['device']}, {outcome['precision']}, {torch.get_num_threads()} CPU threads"
    done = f"{outcome['epochs']} of {description['train']['epochs']} epochs"
    end = f"written to {out}: {DESCRIPTION}, {METRICS}, {WEIGHTS}, {CURVES}"
    if outcome["interrupted"]:
        end = f"interrupted: {done} finished; the model in {out} has learned up to here; --resume "
        end += f"goes on after epoch {outcome['epochs']}, as if there had been no break"
    return (
        f"model     {sum(sizes):,} parameters{frozen}, seed {description['train']['seed']}\n"
        f"machine   {machine}\n"
        f"time      {outcome['seconds']:.1f} s for {done}\n"
        f"accuracy  {outcome['test_accuracy']:.1%} test\n{end}"
    )
