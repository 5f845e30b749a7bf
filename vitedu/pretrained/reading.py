"""Files of weights: anybody's, and those of the models that come with the package.

Role: read them, and the records of those models. Not here: building a model by name (``loading``).

Our own models lie in folders beside this file, as ``vitedu train`` wrote them; each ``config.json``
says how its model was trained. Weights are stored in half precision. What ``vitedu bench ship``
wrote, ``NAME.cifar10``, has a record of what it measured after rounding ("shipped"), and
``features.safetensors``: where photographs of the ten classes lie.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from vitedu.extras.options import with_options
from vitedu.vit import ViTConfig

FOLDER = Path(__file__).parent
SHIPPED = ".cifar10"  # how the names of models trained on photographs end
FEATURES = "features.safetensors"


def read_weights(path: str | Path) -> dict[str, torch.Tensor]:
    """Read tensors by name, on the CPU, from a file; code inside it is refused, never run.

    Args:
        path: ``.safetensors``, or a file of ``torch.save``, where the tensors may lie under
            ``"model"`` or ``"state_dict"``.

    Raises:
        ValueError: no such file, not readable, or it holds more than tensors, or NaN.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no weights file at {path}.")
    try:
        is_plain = path.suffix == ".safetensors"
        content = load_file(path) if is_plain else torch.load(path, "cpu", weights_only=True)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    except Exception as error:  # damaged files and such with code fail in many ways
        raise ValueError(
            f"{path} is not a file of tensors, or holds code, which does not run; if you trust it, "
            f"load it yourself and save its state_dict as .safetensors. ({first_line(error)})"
        ) from None
    for key in ("model", "state_dict"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(
        isinstance(tensor, torch.Tensor) for tensor in content.values()
    ):
        raise ValueError(f"{path} must hold tensors by name, a state_dict, and nothing else.")
    refuse_nan(content, f"{path} is not read")
    return content


def refuse_nan(tensors: dict[str, torch.Tensor], what: str) -> None:
    """Raise a ValueError that begins with ``what`` if any number among weights is none."""
    broken = [name for name, tensor in tensors.items() if tensor.isnan().any()]
    if broken:
        names = ", ".join(broken[:2]) + f" and {len(broken) - 2} more" * (len(broken) > 2)
        raise ValueError(f"{what}: there is NaN in {names}.")


def read_course_model(name: str) -> tuple[ViTConfig, dict[str, torch.Tensor], dict]:
    """Read weights that come with the package, as "shapes_patch4" (05, 09) or ``shipped_models``.

    Returns:
        The shape of the model, its weights, and its data's names, mean, std, sizes.
    """
    description, weights = read_shipped(name)
    return config_of(description), weights, description["data"]


def config_of(description: dict) -> ViTConfig:
    """Give the shape of a model that was trained, in the form that keeps its weights."""
    return with_options(ViTConfig(), **{**description["model"], "fused": False})


def read_shipped(name: str) -> tuple[dict, dict[str, torch.Tensor]]:
    """Read what a folder beside this file says of its model, and the weights in float32."""
    if not (FOLDER / name).is_dir():
        choices = ", ".join(shipped_models()) or "none"
        raise ValueError(f"no model {name!r} comes with the package. Choices: {choices}.")
    description = _read_description(FOLDER / name)
    weights = read_weights(FOLDER / name / "model.safetensors")
    return description, {key: value.float() for key, value in weights.items()}


def normalize(images: torch.Tensor, data: dict) -> torch.Tensor:
    """Bring uint8 images (n, 3, H, W) to what a model of ``read_course_model`` takes."""
    mean, std = (torch.tensor(data[key]).view(-1, 1, 1) for key in ("mean", "std"))
    return (images / 255 - mean) / std


def shipped_models() -> dict[str, dict]:
    """List the models trained on photographs that come along: {name: record}, the best first."""
    folders = [path for path in FOLDER.glob(f"*{SHIPPED}") if path.is_dir()]
    records = {path.name: _read_description(path)["shipped"] for path in folders}
    return dict(sorted(records.items(), key=lambda item: -item[1]["accuracy"]))


def describe_shipped(name: str) -> str:
    """Say in one line what a shipped model is and how good."""
    record = shipped_models()[name]
    trained = "trained on ten classes of 32-pixel photographs"
    named = f"{record['accuracy']:.1%} of 10,000 test images"
    if record["labels"]:
        return f"{name}: {record['about']}, {trained}; {named} are named right."
    trained = "trained without labels on 32-pixel photographs"
    return f"{name}: {record['about']}, {trained}; a linear layer on top names {named} right."


def first_line(error: Exception) -> str:
    """Give the first line of an error's message, or its type."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _read_description(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))
