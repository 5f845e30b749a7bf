"""Weights read again: to be measured, to name images, to go on from.

Role: ``vitedu eval``, ``vitedu predict``, and the model that a run starts from, with a head for
other classes. Not here: how a run is made (``runs``), published weights (``pretrained``).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vitedu.data import Data, load_data
from vitedu.data.image_folder import read_photo
from vitedu.extras.options import build_model, with_options
from vitedu.fitting.checkpoints import DESCRIPTION, load_checkpoint
from vitedu.fitting.evaluating import measure
from vitedu.fitting.model_file import ModelFile
from vitedu.ground.hardware import check_device, pick_device, pick_precision
from vitedu.pretrained import reading
from vitedu.pretrained.loading import class_distance, load_pretrained, new_head, resize
from vitedu.pretrained.published import prepare_as_trained, preprocessing, publishes_head
from vitedu.vit import VisionTransformer, ViTConfig

# a model with its weights, and mean, std and class_names of what they learned from
Start = tuple[VisionTransformer, dict[str, Any]]


def main_eval(
    *,
    checkpoint: Path,
    data: str | None = None,
    device: str = "auto",
    model_path: Path | None = None,
) -> int:
    """Run ``vitedu eval``: measure a checkpoint on the validation and test images of a data set."""
    model, description = load_run(checkpoint, device, model_path)
    info = description["data"]
    images = load_data(data or info["source"], image_size=description["model"]["image_size"])
    if list(images.class_names) != info["class_names"]:
        raise ValueError(
            f"the model knows {len(info['class_names'])} classes "
            f"({', '.join(info['class_names'])}), {images.name} has {len(images.class_names)} "
            f"({', '.join(images.class_names)})."
        )
    images = replace(images, mean=torch.tensor(info["mean"]), std=torch.tensor(info["std"]))
    where = next(model.parameters()).device
    dtype = torch.float32 if model_path else pick_precision(where)
    print(images)
    for name in ("validation", "test"):
        split = getattr(images, name)
        print(f"{name:<11}{measure(model, split, images, dtype)[1]:.1%} of {len(split):,} images")
    return 0


def main_predict(
    images: list[Path],
    *,
    checkpoint: Path | None = None,
    pretrained: str | None = None,
    weights: Path | None = None,
    model_path: Path | None = None,
    top: int = 3,
    device: str = "auto",
) -> int:
    """Run ``vitedu predict``: name the most probable classes of each image file.

    By the model of a run, or of a name of ``load_pretrained``; by default the best shipped one.
    """
    if top < 1:
        raise ValueError(f"top must be at least 1 (got {top}).")
    known: dict[str, Any] = {}
    if checkpoint:
        model, description = load_run(checkpoint, device, model_path)
        prepare = prepare_as_trained(description)
        if description["model"]["in_channels"] != 3:
            channels = description["model"]["in_channels"]
            raise ValueError(f"the model takes {channels} channels, files give 3.")
    else:
        check_device(device)
        for path in images:
            if not path.is_file():  # before the download, which may take long
                raise ValueError(f"there is no image at {path}.")
        records = reading.shipped_models()
        name = pretrained or next(each for each in records if "unlike" in records[each])
        model = load_with_head(name, weights).to(pick_device() if device == "auto" else device)
        prepare = preprocessing(name, image_size=model.config.image_size)
        known = {} if weights else records.get(name, {}).get("unlike", {})
    names = prepare.class_names or ()
    features: list[torch.Tensor] = []
    if known:
        tensors = reading.read_weights(reading.FOLDER / name / reading.FEATURES)
        model.head.register_forward_pre_hook(lambda _, given: features.append(given[0].cpu()))
    for path in images:
        pixels = read_photo(path, prepare)[None].to(next(model.parameters()).device)
        with torch.inference_mode():
            row = model(pixels)[0].softmax(dim=-1)  # (1, 3, S, S) -> (K,)
        pairs = zip(*(each.tolist() for each in row.topk(min(top, len(row)))), strict=True)
        # a file may have classes of its own
        said = [f"{names[k] if len(names) == len(row) else f'class {k}'} {p:.1%}" for p, k in pairs]
        warning = ""
        if known and class_distance(features[-1], tensors).item() > known["limit"]:
            warning = (
                ". It looks unlike all ten classes (farther from each than 19 of 20 validation "
                "images are from theirs), so do not trust these names"
            )
        print(f"{path}: {', '.join(said)}{warning}")
    if known:
        share = known["noticed"]["photographs of other things"]
        print(f"A share is no certainty. Of photographs of other things, {share:.0%} are noticed.")
    return 0


def load_with_head(name: str, weights: Path | None) -> VisionTransformer:
    """Load weights that name classes; others are refused, before a download where that is known."""
    record = reading.shipped_models().get(name)
    if record and record["labels"] and "unlike" not in record:
        raise ValueError(f"{name} is there to compare with and names no pictures.")
    has_head = record["labels"] if record else weights or publishes_head(name)
    model = load_pretrained(name, weights=weights) if has_head else None
    head = model and model.head
    is_named = isinstance(head, nn.Linear) and (record or publishes_head(name, head.out_features))
    if model is None or not is_named:
        raise ValueError(
            f"{name} has no head, so it gives features and names nothing. They are good to compare "
            "pictures by, and for a head that learns your own classes: "
            f"vitedu train --data FOLDER --pretrained {name}."
        )
    return model


def load_run(
    folder: Path, device: str = "auto", model_path: Path | None = None
) -> tuple[VisionTransformer, dict]:
    """Build the model of a run folder, with its weights, in eval mode.

    Args:
        folder: of the run.
        device: as ``pick_device`` gives it by default.
        model_path: a student's file, which has to be named for a run that trained one; it runs.

    Raises:
        ValueError: no checkpoint there, or weights that do not fit its description.
    """
    check_device(device)
    tensors, description = load_checkpoint(folder)
    if "model_file" in description and not model_path:
        copy = Path(folder) / description["model_file"]
        raise ValueError(f"{folder} trained a file; to run it or its copy, name it: --model {copy}")
    model_file = ModelFile(model_path) if model_path else None
    model = rebuild(description.get("model", {}), tensors, model_file, folder)
    return model.to(pick_device() if device == "auto" else device).eval(), description


def load_start(
    name: str,
    weights: str | None = None,
    image_size: int | None = None,
    model_file: ModelFile | None = None,
) -> Start:
    """Read what ``--pretrained`` names: a folder of a run, or as ``load_pretrained``.

    Args:
        image_size: pixels, to which positions are interpolated; by default the weights' own.
        model_file: whose model takes the weights of a run.

    Raises:
        ValueError: they are no weights of a Vision Transformer, or cannot be had at this size.
        OSError: they cannot be fetched.
    """
    if (Path(name) / DESCRIPTION).is_file():
        tensors, description = load_checkpoint(Path(name))
        model, known = rebuild(description["model"], tensors, model_file, name), description["data"]
    else:
        model = load_pretrained(name, weights=weights)
        known = vars(preprocessing(name))
        if not isinstance(model, VisionTransformer):
            raise ValueError(f"{name} is a CNN; vitedu train goes on with Vision Transformers.")
    if image_size:
        resize(model, image_size)
    return model, known


def match(images: Data, model: VisionTransformer, known: dict[str, Any]) -> Data:
    """Normalise images as a model's weights know it, and give it a head for other classes."""
    names = tuple(known["class_names"] or ())
    if names != images.class_names or isinstance(model.head, nn.Identity):
        new_head(model, images.num_classes)
    return replace(images, mean=torch.tensor(known["mean"]), std=torch.tensor(known["std"]))


def rebuild(
    shape: dict[str, Any],
    tensors: dict[str, torch.Tensor],
    model_file: ModelFile | None,
    place: Any,
) -> VisionTransformer:
    """Build the model of some weights around them, or a student's file that takes them.

    Raises:
        ValueError: weights and shape do not fit; it begins with ``place``.
    """
    try:
        config = with_options(ViTConfig(), **shape)
        if model_file:
            model = model_file.module.VisionTransformer(model_file.configure(**vars(config)))
        else:
            model = build_model(config)
        model.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{place}: weights and description do not fit. {reason}") from None
    return model
