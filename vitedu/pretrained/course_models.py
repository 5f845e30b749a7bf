"""The weights with pictures that notebook 09 ends with.

Role: ``prepare_demo``: published weights, or our own model in their place. Not here: how published
weights become ours (``loading``), the files of the small models (``reading``), figures (``plots``).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from PIL import Image

from vitedu.data import load_data
from vitedu.data.image_folder import to_square
from vitedu.data.photograph import load_photograph
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
    name = "vit_tiny_patch16_224" if find_spec("timm") else "vit_b_16"
    model, reason = None, "This profile downloads nothing."
    if download:
        try:
            model = load_pretrained(name)
        except OSError as error:
            reason = str(error).partition(". Without")[0] + "."
    if model:
        source, config, weights = f"published weights: {name}", model.config, model.state_dict()
        photographs = [Image.fromarray(load_photograph(384))]
    else:
        name, data = STAND_IN, load_data(limit=10, held_out=10)
        source = f"a stand-in: {name}, which the course trained. {reason}"
        config, weights, _ = read_course_model(name, data)
        arrays = data.test.images[:6].permute(0, 2, 3, 1).numpy()  # (6, C, H, W) -> (6, H, W, C)
        photographs = [*map(Image.fromarray, arrays)]
    photographs += map(Image.open, paths)
    S = config.image_size
    prepare = preprocessing(name, image_size=S)
    images = torch.stack([prepare(photograph) for photograph in photographs])
    pictures = [torch.tensor(to_square(each, S)).permute(2, 0, 1) for each in photographs]
    return Demo(source, config, weights, pictures, images, tuple(prepare.class_names or ()))
