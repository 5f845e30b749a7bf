"""What a run starts from: weights of others, or of a run.

Role: read them, rebuild their model, give it a head for other classes. Not here: the run itself
(``runs``).
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from vitedu.data import Data
from vitedu.extras.options import build_model, with_options
from vitedu.fitting.checkpoints import DESCRIPTION, load_checkpoint
from vitedu.fitting.model_file import ModelFile
from vitedu.pretrained.loading import load_pretrained, resize
from vitedu.pretrained.published import preprocessing
from vitedu.vit import VisionTransformer, ViTConfig


@dataclass(frozen=True)
class Start:
    """Weights, and what is known of them."""

    shape: dict[str, Any]  # the fields of the model's configuration
    tensors: dict[str, torch.Tensor]  # a state_dict
    data: dict[str, Any]  # mean, std and class_names of what they learned from


def load_start(name: str, weights: str | None = None, image_size: int | None = None) -> Start:
    """Read what ``--pretrained`` names: a folder of a run, or as ``load_pretrained``.

    Args:
        image_size: pixels, to which positions are interpolated; by default the weights' own.

    Raises:
        ValueError: they are no weights of a Vision Transformer, or cannot be had at this size.
        OSError: they cannot be fetched.
    """
    if (Path(name) / DESCRIPTION).is_file():
        tensors, description = load_checkpoint(Path(name))
        known = description["data"]
        model = rebuild(Start(description["model"], tensors, known), None, name)
    else:
        model = load_pretrained(name, weights=weights)
        known = vars(preprocessing(name))
    if not isinstance(model, VisionTransformer):
        raise ValueError(f"{name} is a CNN; vitedu train goes on with Vision Transformers.")
    if image_size:
        resize(model, image_size)
    return Start(asdict(model.config), model.state_dict(), known)


def match(images: Data, start: Start) -> tuple[Data, Start]:
    """Normalise images as the weights know it, and give these a head for other classes."""
    mean, std = (torch.tensor(start.data[name]) for name in ("mean", "std"))
    names, start_names = images.class_names, start.data["class_names"] or ()
    if tuple(start_names) != names or "head.weight" not in start.tensors:
        # of zeros: every class is as probable as any other until it has been trained
        head = {"head.weight": torch.zeros(len(names), start.shape["embed_dim"])}
        head["head.bias"] = torch.zeros(len(names))
        shape = start.shape | {"num_classes": len(names)}
        start = replace(start, shape=shape, tensors=start.tensors | head)
    return replace(images, mean=mean, std=std), start


def rebuild(start: Start, model_file: ModelFile | None, place: Any) -> VisionTransformer:
    """Build the model of some weights around them, or a student's file that takes them.

    Raises:
        ValueError: weights and shape do not fit; it begins with ``place``.
    """
    try:
        config = with_options(ViTConfig(), **start.shape)
        model = build_model(config)
        if model_file:
            model = model_file.module.VisionTransformer(model_file.configure(**vars(config)))
        model.load_state_dict(start.tensors)
    except (KeyError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{place}: weights and description do not fit. {reason}") from None
    return model
