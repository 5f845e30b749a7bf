"""Keep a trained model on disk: weights as safetensors, all else as JSON. Loading executes nothing.

Role: write and read one folder. Not here: what the description means, building the model (``runs``).

Reference: https://github.com/huggingface/safetensors, the format; a pickle, torch's default, runs code
of its author's choice when it is opened.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

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
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    # a copy of each, since the format refuses tensors that share memory
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()},
              folder / WEIGHTS)  # fmt: skip
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


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
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / DESCRIPTION} is no JSON: {error}.") from None
    try:
        return load_file(folder / WEIGHTS), description
    except SafetensorError as error:
        raise ValueError(f"{folder / WEIGHTS} can not be read: {error}.") from None
