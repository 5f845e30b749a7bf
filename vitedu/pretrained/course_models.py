"""The weights with pictures that notebook 09 ends with.

Role: ``prepare_demo``: published weights, or our own model in their place. Not here: how published
weights become ours (``loading``), the files of the small models (``reading``), figures (``plots``).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from vitedu.data import load_data
from vitedu.data.photograph import load_photograph, square_photograph
from vitedu.pretrained.loading import load_pretrained
from vitedu.pretrained.published import preprocessing
from vitedu.pretrained.reading import read_course_model
from vitedu.vit import ViTConfig

STAND_IN = "vit_tiny_patch4_32.cifar10"  # where no published weights can be had


@dataclass(frozen=True)
class Demo:
    """Weights for a model of our names, pictures to try them on, and what they are."""

    source: str  # one sentence: whose weights, and why these
    config: ViTConfig
    weights: dict[str, torch.Tensor]  # a state_dict
    pictures: list[torch.Tensor]  # (C, H, W) uint8 each, to look at
    images: torch.Tensor  # (n, C, S, S) float32, as the model takes them
    class_names: tuple[str, ...]


def prepare_demo(photos: Iterable[str | Path] = (), *, download: bool = True) -> Demo:
    """Fetch the smallest published ViT at hand; without it, take the course's own model.

    Args:
        photos: image files of the caller, to stand after matplotlib's photograph.
        download: whether the network may be asked.

    Raises:
        ValueError: there is no image at one of the paths.
    """
    paths = [Path(photo).expanduser() for photo in photos]
    for path in paths:
        if not path.is_file():
            raise ValueError(f"there is no image at {path}; correct the path in my_photos.")
    if not download:
        return stand_in_demo("This profile downloads nothing.", paths)
    name = "vit_tiny_patch16_224" if find_spec("timm") else "vit_b_16"
    try:
        model = load_pretrained(name)
    except OSError as error:
        return stand_in_demo(str(error).partition(". Without")[0] + ".", paths)
    return published_demo(name, model, paths)


def published_demo(name: str, model, paths: list[Path]) -> Demo:
    """Prepare photographs for published weights."""
    from PIL import Image
    from torchvision.transforms.functional import pil_to_tensor

    prepare = preprocessing(name, image_size=model.config.image_size)
    photos = [Image.fromarray(load_photograph(384)), *map(Image.open, paths)]
    images = torch.stack([prepare(photo) for photo in photos])
    pictures = [pil_to_tensor(photo.convert("RGB").resize((224, 224))) for photo in photos]
    return Demo(
        f"published weights: {name}",
        model.config,
        model.state_dict(),
        pictures,
        images,
        tuple(prepare.class_names or ()),
    )


def stand_in_demo(reason: str, paths: list[Path]) -> Demo:
    """Take the course's own model, and test photographs before those of the caller."""
    photographs = load_data(limit=10, held_out=10)
    config, weights, _ = read_course_model(STAND_IN, photographs)
    own = [torch.from_numpy(square_photograph(path, config.image_size)) for path in paths]
    pictures = [*photographs.test.images[:6], *own]
    return Demo(
        f"a stand-in: {STAND_IN}, which the course trained. {reason}",
        config,
        weights,
        pictures,
        photographs.normalize(torch.stack(pictures)),
        photographs.class_names,
    )
