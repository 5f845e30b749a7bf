"""Keep a trained model on disk: a folder with weights and what one must know to read them.

Role: write and read that folder, and files of tensors. A file that is written appears whole or not
at all, and loading executes nothing. Not here: what belongs to a run besides (``runs``), the state
with which a stopped run goes on (``loop``).

Reference: https://github.com/huggingface/safetensors, the format; a pickle, torch's default, runs
code of its author's choice when it is opened.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import save
from torch import nn

from vitedu.ground.files import write_whole
from vitedu.pretrained.reading import read_weights, refuse_nan

WEIGHTS, DESCRIPTION = "model.safetensors", "config.json"


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
    tensors = read_weights(Path(folder) / WEIGHTS)
    # a copy, so that nothing hangs on a file that will be replaced
    return {name: tensor.clone() for name, tensor in tensors.items()}, load_description(folder)


def load_description(folder: Path) -> dict:
    """Read the JSON of a checkpoint alone.

    Raises:
        ValueError: the file is missing or damaged.
    """
    path = Path(folder) / DESCRIPTION
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}.") from None
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
