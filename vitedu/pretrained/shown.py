"""Weights to show at the end of notebook 03: published ones, or a small model that comes along.

Role: ``weights_to_show``, ``read_own`` and the images for it. Not here: how published weights
become ours (``loading``), figures (``plots``).

Our own models lie in folders beside this file, as ``vitedu train`` wrote them; each ``config.json``
says how its model was trained. Weights are stored in half precision.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import torch

from vitedu.data import load_data
from vitedu.data.photograph import load_photograph
from vitedu.options import with_options
from vitedu.pretrained.loading import load_pretrained, read_weights
from vitedu.pretrained.published import preprocessing
from vitedu.vit import ViTConfig

UNSEEN = 1  # a seed of drawn shapes that the stand-in was not trained on


@dataclass(frozen=True)
class Shown:
    """Weights for a model of our names, pictures to try them on, and what they are."""

    source: str  # one sentence: whose weights, and why these
    config: ViTConfig
    weights: dict[str, torch.Tensor]  # a state_dict
    pictures: list[torch.Tensor]  # (C, H, W) uint8 each, to look at
    images: torch.Tensor  # (n, C, S, S) float32, as the model takes them
    class_names: tuple[str, ...]


def weights_to_show(photos: Iterable[str | Path] = (), *, download: bool = True) -> Shown:
    """Fetch the smallest published ViT at hand; without it, take the course's own small model.

    Args:
        photos: image files of the caller, shown after matplotlib's photograph.
        download: whether the network may be asked.

    Raises:
        ValueError: there is no image at one of the paths.
    """
    paths = [Path(photo).expanduser() for photo in photos]
    for path in paths:
        if not path.is_file():
            raise ValueError(f"there is no image at {path}; correct the path in my_photos.")
    if not download:
        return stand_in("This profile downloads nothing.")
    name = "vit_tiny_patch16_224" if find_spec("timm") else "vit_b_16"
    try:
        model = load_pretrained(name)
    except OSError as error:
        return stand_in(str(error).partition(". Without")[0] + ".")
    return published(name, model, paths)


def published(name: str, model, paths: list[Path]) -> Shown:
    """Prepare photographs for published weights."""
    from PIL import Image
    from torchvision.transforms.functional import pil_to_tensor

    prepare = preprocessing(name, image_size=model.config.image_size)
    photos = [Image.fromarray(load_photograph(384)), *map(Image.open, paths)]
    images = torch.stack([prepare(photo) for photo in photos])
    pictures = [pil_to_tensor(photo.convert("RGB").resize((224, 224))) for photo in photos]
    return Shown(
        f"published weights: {name}",
        model.config,
        model.state_dict(),
        pictures,
        images,
        tuple(prepare.class_names or ()),
    )


def stand_in(reason: str) -> Shown:
    """Give the course's own model and drawn shapes that it was not trained on."""
    config, weights, known = read_own("stand_in")
    data = load_data("shapes", seed=UNSEEN, limit=10)
    pictures = data.test.images[:6]
    return Shown(
        f"a stand-in: a small model of the course, trained on drawn shapes. {reason}",
        config,
        weights,
        list(pictures),
        normalized(pictures, known),
        tuple(known["class_names"]),
    )


def normalized(images: torch.Tensor, known: dict) -> torch.Tensor:
    """Bring uint8 images (n, 3, H, W) to what one of our own models takes; see ``read_own``."""
    mean, std = (torch.tensor(known[key]).view(-1, 1, 1) for key in ("mean", "std"))
    return (images / 255 - mean) / std


def read_own(name: str) -> tuple[ViTConfig, dict[str, torch.Tensor], dict]:
    """Read weights that come with the package.

    Args:
        name: of a folder beside this file: "stand_in" (notebook 03), "looked_into" (05) or
            "no_labels" (07; it has no head).

    Returns:
        The shape of the model, its weights, and its data's names, mean, std, sizes.
    """
    with resources.as_file(resources.files("vitedu.pretrained") / name) as folder:
        weights = read_weights(folder / "model.safetensors")
        description = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = with_options(ViTConfig(), **{**description["model"], "fused": False})
    return config, {key: value.float() for key, value in weights.items()}, description["data"]
