"""Keep a trained model on disk: weights as safetensors, all else as JSON. Loading executes nothing.

Role: write and read one folder, and files of tensors; a file that is written appears whole or not
at all. Not here: building the model (``runs``), half a run (``resuming``).

Reference: https://github.com/huggingface/safetensors, the format; a pickle, torch's default, runs
code of its author's choice when it is opened.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from vitedu.ground.files import write_whole
from vitedu.pretrained.reading import refuse_nan

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
    folder = Path(folder)
    for name in (WEIGHTS, DESCRIPTION):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} is no checkpoint: it holds no {name}.")
    return load_tensors(folder / WEIGHTS)[0], load_description(folder)


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


def save_tensors(path: Path, tensors: dict[str, torch.Tensor], note: str = "") -> None:
    """Write tensors of any device and stride, and a text beside them, as one safetensors file.

    Raises:
        ValueError: there is NaN among them; a file that is there stays as it was.
    """
    refuse_nan(tensors, f"{path} is not written")
    # a copy of each, since the format refuses tensors that share memory
    copies = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    write_whole(Path(path), save(copies, metadata={"note": note}))


def load_tensors(path: Path) -> tuple[dict[str, torch.Tensor], str]:
    """Read back (tensors, on the CPU; text).

    Raises:
        ValueError: the file is no whole safetensors file, or holds NaN.
    """
    try:
        with safe_open(path, framework="pt") as file:
            # a copy, so that nothing hangs on a file that will be replaced
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
            note = (file.metadata() or {}).get("note", "")
    except SafetensorError as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    refuse_nan(tensors, f"{path} is not read")
    return tensors, note
