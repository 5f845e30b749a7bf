"""Trained weights in our model, by name: those that come along, and those of two libraries.

Role: ``load_pretrained``. Not here: another library's model made ours (``conversions``); names,
preprocessing and classes (``published``); files of weights (``reading``); our own checkpoints
(``vitedu.fitting.checkpoints``).

Nothing that is read here can execute code: downloads and files alike are opened as tensors only.
"""

import math
import pickle
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from vitedu.data.loading import is_integer
from vitedu.extras.options import build_model
from vitedu.pretrained import reading
from vitedu.pretrained.conversions import (
    convert_huggingface_weights,
    from_timm,
    from_torchvision,
)
from vitedu.pretrained.published import library_of, timm_entry, torchvision_entry
from vitedu.pretrained.reading import first_line
from vitedu.transfer import interpolate_positions
from vitedu.vit import VisionTransformer
from vitedu.vit_and_cnn import ResNet


def load_pretrained(
    name: str,
    *,
    image_size: int | None = None,
    num_classes: int | None = None,
    weights: str | Path | None = None,
) -> VisionTransformer:
    """Build our model with weights that others have trained.

    Args:
        name: of ``vitedu list --models`` (one line says what it is and how good); or of torchvision
            or timm, which must be installed, with or without that of the weights behind a dot.
        image_size: pixels; positions are interpolated to it as timm does. Default: the weights'.
        num_classes: K; another number than the weights have makes a new head of zeros, to be
            trained. Weights without a head (DINOv2) give features (B, D) where this is left out.
        weights: a file in the library's own names, for timm's models also in those of Hugging
            Face's transformers (``.safetensors``, or a torch file of tensors only), instead of a
            download; image size and classes are read from it.

    Returns:
        The model in eval mode, in float32 on the CPU. Its logits are those of the library's model.
        ``cnn_tiny_32.cifar10`` is a ``ResNet``; encoders trained without labels give features.

    Raises:
        ValueError: a name, file or model that cannot be used; the message says why.
        OSError: the download failed; the message names the cache folder and what to do.

    Example:
        >>> model = load_pretrained("vit_b_16", num_classes=5)  # doctest: +SKIP
        >>> model.config.image_size, model.config.num_classes  # doctest: +SKIP
        (224, 5)

    Reference: Dosovitskiy et al. 2020, section 3.2: another resolution, a head of zeros.
    """
    tensors = None if weights is None else reading.read_weights(weights)
    if name.endswith(reading.SHIPPED):
        description, own = reading.read_shipped(name)
        model = build_shipped(description)
        _fill(model, own if tensors is None else tensors, name)
        if tensors is None:
            print(textwrap.fill(reading.describe_shipped(name), 90, subsequent_indent="  "))
        if isinstance(model, ResNet):
            if image_size not in (None, 32) or num_classes not in (None, 10):
                raise ValueError(f"{name} is a CNN for 32 pixels and 10 classes, as it is.")
            return model.eval()  # type: ignore[return-value]
    elif library_of(name) == "torchvision":
        model = _load_torchvision(name, tensors)
    else:
        model = _load_timm(name, tensors)
    if image_size is not None:
        resize(model, image_size)
    has_head = isinstance(model.head, nn.Linear)
    if num_classes is not None and not (has_head and num_classes == model.config.num_classes):
        new_head(model, num_classes)
    return model.eval()


def resize(model: VisionTransformer, image_size: int) -> None:
    """Interpolate the positions of a model, in place, to images of another size in pixels."""
    if not is_integer(image_size, at_least=1):
        raise ValueError(
            f"images are squares, and image_size is one whole number (got {image_size!r})."
        )
    if image_size == model.config.image_size:
        return
    config = replace(model.config, image_size=image_size)  # refuses what patches do not divide
    if getattr(config, "rope", False):
        only = model.config.image_size
        raise ValueError(f"rotary positions stay as they are: {only} px (got {image_size}).")
    positions = interpolate_positions(
        model.pos_embed.detach(), config.grid_size, config.num_prefix_tokens, antialias=True
    )
    model.config, model.pos_embed = config, nn.Parameter(positions)


def new_head(model: VisionTransformer, num_classes: int) -> None:
    """Give a model a head of zeros: classes are equally probable until it has been trained."""
    model.config = replace(model.config, num_classes=num_classes)
    model.head = nn.utils.skip_init(nn.Linear, model.config.embed_dim, num_classes)
    nn.init.zeros_(model.head.weight)
    nn.init.zeros_(model.head.bias)


def class_distance(features: torch.Tensor, known: dict[str, torch.Tensor]) -> torch.Tensor:
    """Measure how far what the head reads (N, D) lies from the nearest class mean; (N,).

    After ``known["scale"]`` (D, D) the features of a class vary alike in all directions, so this is
    Mahalanobis's distance, as in Lee et al. 2018 (arXiv 1807.03888).
    """
    scale = known["scale"].float()  # rounded to half precision in its file
    return torch.cdist(features @ scale, known["means"] @ scale).amin(dim=1)


def build_shipped(description: dict) -> Any:
    """Build the untrained model of a folder that comes along: a ViT, its head left out where no
    label taught one, or a ``ResNet``.
    """
    if "width" in description["model"]:
        return ResNet(**description["model"])
    model = build_model(reading.config_of(description))
    if not description["shipped"]["labels"]:
        model.register_module("head", nn.Identity())
    return model


def _load_torchvision(name: str, tensors: dict[str, torch.Tensor] | None) -> VisionTransformer:
    """Build torchvision's model around its weights, or around a file's, and convert it."""
    from torchvision.models import get_model

    entry = torchvision_entry(name)
    if tensors is None:
        try:
            tensors = entry.get_state_dict(progress=True, check_hash=True, weights_only=True)
        except (OSError, RuntimeError, pickle.UnpicklingError) as error:  # no network; damaged
            folder = f"{torch.hub.get_dir()}/checkpoints"
            raise _download_error(name, entry.url, folder, error) from None
    size, K = _sizes(tensors, "conv_proj.weight", "encoder.pos_embedding", "heads.head.weight")
    with torch.device("meta"):  # its random numbers would take seconds, and all are replaced
        theirs = get_model(name.partition(".")[0], image_size=size, num_classes=K)
    return from_torchvision(_fill(theirs, tensors, name))


def _load_timm(name: str, tensors: dict[str, torch.Tensor] | None) -> VisionTransformer:
    """Build timm's model around its weights, or around a file's, and convert it."""
    import timm

    entry = timm_entry(name)
    K = entry.num_classes or 0  # 0: features, no head
    if tensors is not None:
        tensors = convert_huggingface_weights(tensors)
        head = "head.weight" if "head.weight" in tensors else "norm.weight"
        size, width = _sizes(tensors, "patch_embed.proj.weight", "pos_embed", head)
        K = width if head == "head.weight" else 0
    elif not entry.has_weights:
        raise ValueError(f"timm publishes no weights for {name!r}; give a file with weights=path.")
    with torch.device("meta"):  # what is refused is refused before the download
        from_timm(timm.create_model(name, num_classes=K))
    if tensors is not None:
        tensors.pop("mask_token", None)  # of DINOv2's own file: training alone uses it
        theirs = timm.create_model(name, img_size=size, num_classes=K)
        return from_timm(_fill(theirs, tensors, name))
    from huggingface_hub import constants, get_session

    is_offline = constants.HF_HUB_OFFLINE
    try:  # without a network the hub's client would try again for 50 seconds
        get_session().head(constants.ENDPOINT, timeout=3)
    except Exception:  # it has errors of its own for everything
        is_offline = True
    try:
        with patch.object(constants, "HF_HUB_OFFLINE", is_offline):
            return from_timm(timm.create_model(name, pretrained=True, num_classes=K))
    except Exception as error:
        url, folder = f"{constants.ENDPOINT}/{entry.hf_hub_id}", constants.HF_HUB_CACHE
        raise _download_error(name, url, folder, error) from error


def _sizes(
    tensors: dict[str, torch.Tensor], patches: str, positions: str, head: str
) -> tuple[int, int]:
    """Read image size and number of classes from the shapes of a state_dict."""
    missing = [name for name in (patches, positions, head) if name not in tensors]
    if missing:
        raise ValueError(
            f"the weights have no {', '.join(missing)}; they must have the names that the library "
            f"gives them (found {', '.join(sorted(tensors)[:3]) or 'nothing'} ...)."
        )
    rows = tensors[positions].shape[1]
    side = math.isqrt(rows)  # also where a class row makes it side**2 + 1
    if rows > side**2 + 16:
        raise ValueError(f"the weights have {rows} positions, those of images that are not square.")
    return side * tensors[patches].shape[-1], tensors[head].shape[0]


def _fill(theirs: nn.Module, tensors: dict[str, torch.Tensor], name: str) -> nn.Module:
    """Put tensors into a model, as float32: files may hold half precision."""
    try:
        theirs.load_state_dict({n: each.float() for n, each in tensors.items()}, assign=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split()[:60])  # one line, of a list that may be long
        raise ValueError(f"the weights do not fit {name!r}. {reason}") from None
    return theirs


def _download_error(name: str, address: str, folder: str, error: Exception) -> OSError:
    """Say what can be done where the network is missing."""
    return OSError(
        f"the weights of {name!r} could not be fetched from {address} ({first_line(error)}). "
        "Without a network, fetch them elsewhere and give the file (weights=path, or --weights), "
        f"or copy the cache folder {folder} from a machine that has them."
    )
