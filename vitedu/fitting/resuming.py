"""A run that was stopped goes on as if it had not been: its state, in one file.

Role: ``save_state`` after an epoch, ``load_state`` into a run that was set up alike. Not here: when
to do which (``loop``), the folder of a run (``runs``).

The file is safetensors: the weights, their running average, what the optimizers remember and the
state of the generator as tensors; the history and the settings as JSON in its header. Loading
executes nothing. It needs no state of torch's own generator, which dropout draws from: ``fit``
seeds it at the start of each epoch.
"""

import json
import zlib
from dataclasses import asdict
from pathlib import Path

from vitedu.fitting.checkpoints import load_tensors, save_tensors
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.history import EpochResult

FORMAT = "vitedu training state, 1"


def save_state(path: Path, run) -> None:
    """Write all that a ``fitting.Run`` needs to go on after the epochs that it has finished.

    Args:
        path: replaced in one step, so that a run killed here leaves the state before or this one.
        run: between two epochs.
    """
    tensors = {"generator": run.generator.get_state()}
    for part, module in modules_of(run).items():
        tensors |= {f"{part}.{name}": tensor for name, tensor in module.state_dict().items()}
    for i, optimizer in enumerate(optimizers_of(run)):
        for index, values in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{i}.{index}.{name}": value for name, value in values.items()}
    note = {
        "format": FORMAT,
        "settings": settings_of(run),
        "rows": [asdict(row) for row in run.history.rows],
        "scaler": run.scaler.state_dict(),
    }
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_tensors(path, tensors, json.dumps(note))


def load_state(path: Path, run) -> None:
    """Put a run where the one that wrote the file stood.

    Args:
        path: written by ``save_state``.
        run: set up, not yet started.

    Raises:
        ValueError: the file is damaged, or the run was set up differently: the message names each
            setting that differs, with both values.
    """
    tensors, text = load_tensors(path)
    if not text.startswith(json.dumps({"format": FORMAT})[:-1]):
        raise ValueError(f"{path} holds no state of a training run of this version.")
    note = json.loads(text)
    # what former versions did not have was as it is by default
    refuse_changes({**asdict(TrainConfig()), **note["settings"]}, settings_of(run), path)

    parts: dict[str, dict] = {}
    for key, tensor in tensors.items():
        part, _, name = key.partition(".")
        parts.setdefault(part, {})[name] = tensor
    try:
        for part, module in modules_of(run).items():
            module.load_state_dict(parts[part])
    except (KeyError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} holds the state of another model: {reason}") from None
    for i, optimizer in enumerate(optimizers_of(run)):
        state: dict[int, dict] = {}
        for key, tensor in parts.get("optimizer", {}).items():
            number, index, name = key.split(".", 2)
            if int(number) == i:
                state.setdefault(int(index), {})[name] = tensor
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    run.generator.set_state(parts["generator"][""])
    run.scaler.load_state_dict(note["scaler"])
    run.history.rows[:] = [EpochResult(**row) for row in note["rows"]]


def modules_of(run) -> dict:
    """Name the modules whose weights differ: what learns, and its average if one is kept."""
    return {"learner": run.learner, **({"average": run.model} if run.has_average else {})}


def optimizers_of(run) -> tuple:
    """Name torch's optimizers behind the one that the run steps."""
    return getattr(run.optimizer, "optimizers", (run.optimizer,))


def settings_of(run) -> dict:
    """Say, in what JSON can hold, on what the rest of a run depends beside its state."""
    settings = {
        **asdict(run.config),
        "device in use": run.device.type,  # a generator's state fits its own kind of device
        "precision in use": run.history.precision,
        "training images": fingerprint(run.data.train),
        "validation images": fingerprint(run.data.validation),
    }
    return json.loads(json.dumps(settings))


def fingerprint(split) -> str:
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
