"""Keep a model on disk, trained or half trained. Loading executes nothing.

Role: write and read the folder of a model, files of tensors, and the state with which a run that
was stopped goes on as if it had not been. A file that is written appears whole or not at all. Not
here: what belongs to a run besides (``runs``), when its state is written (``loop``).

A model is weights as safetensors and all else as JSON. A state is torch's own file, of tensors,
numbers and words alone: the weights, their running average, what the optimizers remember, the state
of the generator, the history and the settings. It needs no state of torch's own generator, which
dropout draws from: ``fit`` seeds it at the start of each epoch.

Reference: https://github.com/huggingface/safetensors, the format; a pickle, torch's default, runs
code of its author's choice when it is opened.
"""

import io
import json
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from vitedu.fitting.history import EpochResult
from vitedu.ground.files import write_whole
from vitedu.pretrained.reading import read_weights, refuse_nan

WEIGHTS, DESCRIPTION = "model.safetensors", "config.json"
FORMAT = "vitedu training state, 3"


def save_checkpoint(folder: Path, model: nn.Module, description: dict) -> None:
    """Write a model's weights and buffers, and what one must know to build it again.

    Args:
        folder: made if need be; files of the same names are replaced.
        model: any module on any device.
        description: anything that JSON can hold.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_tensors(folder / WEIGHTS, model.state_dict())
    write_whole(folder / DESCRIPTION, (json.dumps(description, indent=1) + "\n").encode())


def load_checkpoint(folder: Path) -> tuple[dict[str, torch.Tensor], dict]:
    """Read back what ``save_checkpoint`` wrote.

    Returns:
        (tensors by name, on the CPU; description).

    Raises:
        ValueError: a file is missing or damaged; the message names it.
    """
    folder = Path(folder)
    for name in (WEIGHTS, DESCRIPTION):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} is no checkpoint: it holds no {name}.")
    tensors = read_weights(folder / WEIGHTS)
    # a copy, so that nothing hangs on a file that will be replaced
    return {name: tensor.clone() for name, tensor in tensors.items()}, load_description(folder)


def load_description(folder: Path) -> dict:
    """Read the JSON of a checkpoint alone.

    Raises:
        ValueError: the file is damaged.
    """
    path = Path(folder) / DESCRIPTION
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}.") from None
    description.get("model", {}).pop("layer_scale", None)  # an option of former runs, always off
    return description


def save_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Write tensors of any device and stride as one safetensors file.

    Raises:
        ValueError: there is NaN among them; a file that is there stays as it was.
    """
    refuse_nan(tensors, f"{path} is not written")
    # a copy of each, since the format refuses tensors that share memory
    copies = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    write_whole(Path(path), save(copies))


def save_state(path: Path, run: Any) -> None:
    """Write all that a ``fitting.Run`` needs to go on after the epochs that it has finished.

    The file is replaced in one step: a run killed here leaves the state before or this one.
    """
    state = {
        "format": FORMAT,
        "settings": settings_of(run),
        "rows": [asdict(row) for row in run.history.rows],
        "generator": run.generator.get_state(),
        "parts": {name: part.state_dict() for name, part in parts_of(run).items()},
    }
    content = io.BytesIO()
    torch.save(state, content)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.getvalue())


def load_state(path: Path, run: Any) -> None:
    """Put a run that has not started where the one stood that wrote the file.

    Raises:
        ValueError: the file is damaged, or the run was set up differently: the message names each
            setting that differs, with both values.
    """
    try:
        state = torch.load(path, "cpu", weights_only=True)
        is_known = state["format"] == FORMAT
    except Exception:  # damaged files and such with code fail in many ways
        is_known = False
    if not is_known:
        raise ValueError(f"{path} holds no state of a training run of this version.")
    refuse_changes(state["settings"], settings_of(run), path)
    try:
        for name, part in parts_of(run).items():
            part.load_state_dict(state["parts"][name])
    except (KeyError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} holds the state of another model: {reason}") from None
    run.generator.set_state(state["generator"])
    run.history.rows[:] = [EpochResult(**row) for row in state["rows"]]


def parts_of(run: Any) -> dict[str, Any]:
    """Name all that has a ``state_dict``; what learns is the model, or its average follows it."""
    return {name: getattr(run, name) for name in ("model", "learner", "optimizer", "scaler")}


def settings_of(run: Any) -> dict[str, Any]:
    """Say on what the rest of a run depends beside its state."""
    return {
        **asdict(run.config),
        "device in use": run.device.type,  # a generator's state fits its own kind of device
        "precision in use": run.history.precision,
        "training images": fingerprint(run.data.train),
        "validation images": fingerprint(run.data.validation),
    }


def fingerprint(split: Any) -> str:
    """Write number and checksum of a split, such as ``"900 (1c291ca3)"``."""
    checksum = 0
    for tensor in (split.images, split.labels):
        checksum = zlib.crc32(tensor.cpu().contiguous().numpy(), checksum)
    return f"{len(split.labels)} ({checksum:08x})"


def refuse_changes(before: dict, now: dict, where: Path | str) -> None:
    """Raise a ValueError that names all that differs between two sets of settings."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if names:
        changes = ", ".join(f"{name} was {before.get(name)}, is {now.get(name)}" for name in names)
        reason = " (the learning rate of each step depends on epochs)" if "epochs" in names else ""
        raise ValueError(
            f"{where}: a run goes on with the settings it began with{reason}, and these differ: "
            f"{changes}."
        )
