"""A trained model read again: ``vitedu eval``, ``vitedu predict``.

Role: from the folder of a run to accuracies and names of classes. Not here: how a run is made
(``runs``), published weights (``pretrained``).
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from vitedu.data.image_folder import read_photo, to_square
from vitedu.fitting.checkpoints import load_checkpoint
from vitedu.fitting.evaluating import measure_test_accuracy, predict
from vitedu.fitting.model_file import ModelFile
from vitedu.fitting.runs import load, source_of
from vitedu.fitting.starting import Start, rebuild
from vitedu.hardware import check_device, pick_device, pick_precision
from vitedu.pretrained.loading import name_classes
from vitedu.vit import VisionTransformer


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
    source = source_of(description, checkpoint)
    images = load(data or source, image_size=description["model"]["image_size"])
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
        accuracy = measure_test_accuracy(model, replace(images, test=split), dtype)
        print(f"{name:<11}{accuracy:.1%} of {len(split):,} images")
    return 0


def main_predict(
    *,
    checkpoint: Path,
    images: list[Path],
    top: int = 3,
    device: str = "auto",
    model_path: Path | None = None,
) -> int:
    """Run ``vitedu predict``: name the most probable classes of each image file."""
    if top < 1:
        raise ValueError(f"top must be at least 1 (got {top}).")
    model, description = load_run(checkpoint, device, model_path)
    shape, info = description["model"], description["data"]
    if shape["in_channels"] != 3:
        raise ValueError(f"the model takes {shape['in_channels']} channels, files give 3.")
    prepare = partial(to_square, image_size=shape["image_size"])
    arrays = [read_photo(path, prepare) for path in images]
    pixels = torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2)  # (N, S, S, 3) -> (N, 3, S, S)
    probabilities = predict(model, pixels, SimpleNamespace(**info))  # (N, K)
    for path, row in zip(images, probabilities, strict=True):
        print(f"{path}: {name_classes(row, info['class_names'], top)}")
    return 0


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
    start = Start(description.get("model", {}), tensors, {}, {})
    model = rebuild(start, model_file, folder)
    return model.to(pick_device() if device == "auto" else device).eval(), description
