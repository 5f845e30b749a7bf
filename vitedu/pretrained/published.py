"""What torchvision and timm state about the weights they publish; nothing is downloaded.

Role: tell which library publishes a name, how a picture must be prepared for it
(``preprocessing``), and what its classes are called. Not here: the weights (``loading``).

Names are those of the libraries, ``architecture`` or ``architecture.weights``: torchvision's
``vit_b_16``, ``vit_b_16.IMAGENET1K_SWAG_E2E_V1``; timm's ``vit_tiny_patch16_224``,
``vit_base_patch16_224.orig_in21k_ft_in1k``. Each set of weights has a licence of its own:
torchvision's SWAG weights, for one, are for non-commercial use only.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import torch

from vitedu.data.image_folder import to_square, upright_rgb
from vitedu.pretrained.reading import SHIPPED, normalize, read_shipped, shipped_models


def library_of(name: str) -> str:
    """Say which library a name belongs to, ``"torchvision"`` or ``"timm"``.

    Raises:
        ValueError: neither; the message names choices.
    """
    from torchvision.models import list_models

    architecture, names = name.partition(".")[0], list_models(include="vit_*")
    if architecture in names:
        return "torchvision"
    known = [*names, *shipped_models()]
    if find_spec("timm"):
        import timm

        if timm.is_model(name):
            return "timm"
        known += timm.list_models("*vit*")
    nearest = difflib.get_close_matches(architecture, known)
    guess = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    raise ValueError(
        f"there is no model {name!r}.{guess} torchvision has {', '.join(names)}; after "
        "pip install timm, timm.list_models('vit_*') lists others."
    )


def publishes_head(name: str, num_outputs: int | None = None) -> bool:
    """Tell whether a head names classes: the published one, or one of ``num_outputs`` in a file.

    CLIP publishes a head that makes features; a file may hold the same, or have another in place.
    """
    if library_of(name) == "torchvision":
        return True
    from timm.data import infer_imagenet_subset

    entry = timm_entry(name)
    return bool(infer_imagenet_subset(entry.to_dict())) or num_outputs not in (
        None,
        entry.num_classes,
    )


@dataclass(frozen=True)
class Preprocessing:
    """How the authors of some weights prepare a picture, and what they call their classes.

    Calling it makes a PIL image a tensor (3, S, S), by the library's own transform.
    """

    image_size: int  # S, pixels: the square in the middle that the model sees
    mean: Sequence[float]  # (3,) subtracted, on a scale of 0 to 1
    std: Sequence[float]  # (3,) then divided by
    class_names: tuple[str, ...] | None  # in the order of the logits; None where none are published
    transform: Callable  # a PIL image -> (3, S, S) float32
    is_ours: bool = False  # its transform makes a picture upright, as the file is decoded

    def __call__(self, image) -> torch.Tensor:
        """Make a PIL image, upright and in RGB, a tensor (3, S, S)."""
        return self.transform(image if self.is_ours else upright_rgb(image))


def preprocessing(name: str, *, image_size: int | None = None) -> Preprocessing:
    """Look up how pictures must be prepared for published weights; nothing is downloaded.

    Args:
        name: as for ``load_pretrained``.
        image_size: where the model was loaded for another size; the resizing keeps its proportion.

    Example:
        >>> prepare = preprocessing("vit_b_16")
        >>> prepare.image_size, prepare.mean, prepare.class_names[0]
        (224, (0.485, 0.456, 0.406), 'tench')
    """
    if name.endswith(SHIPPED):
        return prepare_as_trained(read_shipped(name)[0], image_size)
    if library_of(name) == "torchvision":
        entry = torchvision_entry(name)
        transform = entry.transforms()
        if image_size is not None:
            share = image_size / transform.crop_size[0]
            transform.resize_size = [round(transform.resize_size[0] * share)]
            transform.crop_size = [image_size]
        return Preprocessing(
            image_size=transform.crop_size[0],
            mean=tuple(transform.mean),
            std=tuple(transform.std),
            class_names=tuple(entry.meta["categories"]),
            transform=transform,
        )

    from timm.data import ImageNetInfo, create_transform, infer_imagenet_subset, resolve_data_config

    published = timm_entry(name).to_dict()
    size = {} if image_size is None else {"input_size": (3, image_size, image_size)}
    config = resolve_data_config(size, pretrained_cfg=published)
    subset = infer_imagenet_subset(published)
    return Preprocessing(
        image_size=config["input_size"][-1],
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        class_names=tuple(ImageNetInfo(subset).label_descriptions()) if subset else None,
        transform=create_transform(**config),
    )


def prepare_as_trained(description: dict, image_size: int | None = None) -> Preprocessing:
    """Give the preprocessing of a model that was trained here, from its ``config.json``."""
    data, side = description["data"], image_size or description["model"].get("image_size", 32)
    has_names = "shipped" not in description or description["shipped"]["labels"]
    names = tuple(data["class_names"]) if has_names else None

    def prepare(image):
        return normalize(torch.tensor(to_square(image, side)).permute(2, 0, 1), data)

    return Preprocessing(side, data["mean"], data["std"], names, prepare, is_ours=True)


def torchvision_entry(name: str):
    """Find what torchvision states about the weights of a name: address, transform, categories."""
    from torchvision.models import get_model_weights

    architecture, _, tag = name.partition(".")
    entries = get_model_weights(architecture)
    if tag and tag not in entries.__members__:
        raise ValueError(
            f"torchvision has no weights {tag!r} for {architecture}. "
            f"Choices: {', '.join(f'{architecture}.{entry.name}' for entry in entries)}."
        )
    return entries[tag or "DEFAULT"]


def timm_entry(name: str):
    """Find what timm states about the weights of a name: address, statistics, classes."""
    import timm

    architecture = name.partition(".")[0]
    try:
        entry = timm.get_pretrained_cfg(name)
    except RuntimeError:
        entry = None
    if entry is None:
        raise ValueError(
            f"timm has no weights {name!r}. Choices: "
            f"{', '.join(timm.list_pretrained(f'{architecture}.*')) or 'none for this model'}."
        )
    return entry
