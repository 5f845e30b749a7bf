"""Which of two equally good networks suffers more? Occlusion, noise, blur, shuffled patches,
shifts, another contrast.

Role: the disturbances and one run of section "robust" of notebook 06. Networks and recipes:
``data_hunger``.

A network that starts higher falls further for that reason alone, so both are stopped early. The CNN
is trained on all drawn shapes until its validation accuracy first reaches 85 %. It passes the goal
by some points, because it learns much in an epoch. So the ViT is trained until it is as good as the
CNN of the same seed was then.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.bench.experiments import Results
from vitedu.bench.experiments.data_hunger import NETWORKS, build, settings, shapes
from vitedu.data import Data
from vitedu.fitting import fit
from vitedu.fitting.loop import predict
from vitedu.hardware import Profile
from vitedu.vit_and_cnn import shuffle_patches

GOAL = 0.85
ARMS: dict[str, dict[str, Any]] = {name: {"network": name, "goal": GOAL} for name in NETWORKS}
PATCH = 8  # 4 x 4 patches


def generator_for(what: str) -> torch.Generator:
    """Give the same draws for every network."""
    return torch.Generator().manual_seed(sum(what.encode()))


def occlude(images: torch.Tensor, cells: int) -> torch.Tensor:
    """Black out so many of the 16 patches of each image, drawn for each image by itself."""
    B = len(images)
    order = torch.rand(B, 16, generator=generator_for("occlude")).argsort(dim=1)
    hidden = (order < cells).reshape(B, 1, 4, 4)
    return images.masked_fill(hidden.repeat_interleave(PATCH, 2).repeat_interleave(PATCH, 3), 0)


def add_noise(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Add normal noise of this standard deviation, on a scale of 0 to 1."""
    noise = torch.randn(images.shape, generator=generator_for("noise"))
    return (images.float() + 255 * strength * noise).clamp(0, 255).round().byte()


def blur(images: torch.Tensor) -> torch.Tensor:
    """Replace every pixel by the mean of the 3 x 3 pixels around it."""
    padded = F.pad(images.float(), (1, 1, 1, 1), mode="replicate")
    return F.avg_pool2d(padded, 3, stride=1).round().byte()


def shuffle(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    """Put the patches of all images in one other order."""
    order = torch.randperm((32 // patch_size) ** 2, generator=generator_for("shuffle"))
    return shuffle_patches(images, patch_size, order)


DISTURBANCES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as they are": lambda images: images,
    "2 of 16 patches black": lambda images: occlude(images, 2),
    "4 of 16 patches black": lambda images: occlude(images, 4),
    "8 of 16 patches black": lambda images: occlude(images, 8),
    "noise 0.1": lambda images: add_noise(images, 0.1),
    "noise 0.2": lambda images: add_noise(images, 0.2),
    "blurred, 3 x 3": blur,
    "shuffled, patches of 16 px": lambda images: shuffle(images, 16),
    "shuffled, patches of 8 px": lambda images: shuffle(images, 8),
    "rolled by 2 px": lambda images: images.roll((2, 2), dims=(-2, -1)),
    "half the contrast": lambda images: images // 2 + 64,  # a shift of domain
    "colours inverted": lambda images: 255 - images,  # a larger one
}


def accuracy_under(model: nn.Module, data: Data) -> dict[str, float]:
    """Measure a network on test images under every disturbance."""
    labels = data.test.labels
    found = {}
    for name, disturb in DISTURBANCES.items():
        answers = predict(model, disturb(data.test.images), data).argmax(dim=1).cpu()
        found[name] = (answers == labels).float().mean().item()
    return found


def train_to_goal(
    network: str, seed: int, data: Data, steps: int, goal: float
) -> tuple[nn.Module, float, int]:
    """Train until validation reaches the goal, or to the end; give model, accuracy, epochs."""
    model = build(network, seed)

    def stop_at_goal(history):
        if history.rows[-1].validation_accuracy >= goal:
            raise KeyboardInterrupt  # how a run is ended: fit keeps what was learned

    config = settings(network, steps=steps, images=len(data.train), seed=seed)
    history = fit(model, data, config, show_progress=False, on_epoch=stop_at_goal)
    return model, history.rows[-1].validation_accuracy, len(history.rows)


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network to the goal and measure it under every disturbance."""
    data = shapes(*profile.pick(quick=(400, 200), laptop=(3_200, None), gpu=(3_200, None)))
    started = time.process_time()
    steps = profile.pick(quick=6, laptop=1_500, gpu=1_500)
    model, reached, epochs = train_to_goal("CNN", seed, data, steps, GOAL)
    if arm == "ViT":
        model, reached, epochs = train_to_goal("ViT", seed, data, steps, goal=reached)
    found = {name: round(value, 4) for name, value in accuracy_under(model, data).items()}
    seconds = round(time.process_time() - started, 1)
    return {"validation_accuracy": reached, "epochs": epochs, **found, "cpu_seconds": seconds}
