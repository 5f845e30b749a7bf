"""Train the shipped models that ``vitedu train`` does not know: ``vitedu bench pretrain NAME``.

Role: a small residual network with labels, and two encoders without: a masked autoencoder and
self-distillation, notebook 07's own parts. All learn from the 45,000 training photographs and write
the folder of a run, for ``vitedu bench ship``. Not here: measuring and shipping (``shipping``).

References: He et al. 2022, masked autoencoders (arXiv 2111.06377); Caron et al. 2021, DINO (arXiv
2104.14294). Departures: Muon; DINO has two views of full size and no small ones.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vitedu.data import Data, load_data
from vitedu.extras.options import build_model, preset
from vitedu.fitting.augmentation import brightness, contrast, saturation
from vitedu.fitting.checkpoints import save_checkpoint
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.evaluating import autocast
from vitedu.fitting.loop import Run
from vitedu.less_data import (
    MaskedAutoencoder,
    PrototypeHead,
    dino_loss,
    masked_patch_loss,
    random_resized_crop,
)
from vitedu.patches import patchify
from vitedu.training import random_crop_flip
from vitedu.vit_and_cnn import ResNet

CNN, MASKED, DINO = "cnn_tiny_32", "vit_pico_masked_patch4_32", "vit_pico_dino_patch4_32"
# of vit_tiny_patch4_32 as it is shipped, but for the optimizer: Muon is for matrices
CNN_RECIPE = TrainConfig(
    epochs=40, lr=2e-3, label_smoothing=0.1, policy_share=0.5, cutmix_share=0.5, clean_epochs=5
)
LABEL_FREE = TrainConfig(optimizer="muon", lr=3e-3, batch_size=256, weight_decay=0.05)
EPOCHS = {CNN: 40, MASKED: 100, DINO: 60}
RATIO, PROTOTYPES = 0.75, 256
MOMENTUM, CENTER_MOMENTUM = 0.99, 0.9


def pretrain(name: str, out: Path, *, epochs: int | None = None, data: Data | None = None) -> None:
    """Train a model of ``EPOCHS``, or go on with the unfinished run in the folder ``out``.

    Raises:
        ValueError: an unknown name, or a run of another model or length in the folder.
    """
    if name not in EPOCHS:
        raise ValueError(f"no model {name!r} to pre-train. Choices: {', '.join(EPOCHS)}.")
    data, epochs = data or load_data(), EPOCHS[name] if epochs is None else epochs
    shape = {"width": 32} if name == CNN else asdict(preset("vit_pico_patch4_32"))
    config = replace(CNN_RECIPE if name == CNN else LABEL_FREE, epochs=epochs)
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(config.seed)
    learner: Any = ResNet(**shape) if name == CNN else Masked() if name == MASKED else Distilled()
    kind = Run if name == CNN else WithoutLabels
    if kind(learner, data, config).all_epochs(resume=out / "state.pt").interrupted:
        return
    model = learner
    if name != CNN:
        model = learner.model.encoder if name == MASKED else learner.teacher[0]
        model.register_module("head", nn.Identity())
    known: Any = {"name": data.name, "class_names": list(data.class_names)}
    known |= {"mean": data.mean.tolist(), "std": data.std.tolist()}
    description = {"preset": name, "model": shape, "data": known, "train": asdict(config)}
    description["outcome"] = {"interrupted": False, "epochs": epochs}
    save_checkpoint(out, model, description)
    print(f"written to {out}; vitedu bench ship {out} measures it")


class WithoutLabels(Run):
    """A run whose model says itself what its guesses about images cost; nothing is validated."""

    def step(self, batch: torch.Tensor, lr: float, step_of_run: int):
        """Learn from the images at ``batch`` (B,); give their price, and 0 right answers."""
        learner: Any = self.learner
        with autocast(self.device, self.dtype):
            loss = learner.loss(self.images[batch], self.data.normalize, self.generator)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learner.parameters(), self.config.clip_norm)
        self.optimizer.step()
        if isinstance(learner, Distilled):
            learner.follow(step_of_run / self.total_steps)
        return loss.detach(), torch.zeros_like(batch[0])

    def validate(self) -> tuple[float, float]:
        """Give zeros, for the table."""
        return 0.0, 0.0


class Masked(nn.Module):
    """What learns to guess hidden patches."""

    def __init__(self):
        super().__init__()
        self.model = MaskedAutoencoder(build_model(preset("vit_pico_patch4_32")))

    def loss(self, images: torch.Tensor, normalize: Callable, draws: torch.Generator):
        """Give the price of guesses about uint8 images (B, 3, S, S), each patch normalised."""
        images = normalize(random_crop_flip(images, 4, draws))
        target = patchify(images, 4)
        middle, spread = target.mean(dim=-1, keepdim=True), target.std(dim=-1, keepdim=True)
        target = (target - middle) / (spread + 0.1)
        noise = torch.rand(target.shape[:2], generator=draws, device=draws.device)
        prediction, mask = self.model(images, RATIO, noise)
        return masked_patch_loss(prediction.float(), target, mask)


class Distilled(nn.Module):
    """What learns to answer for one view as its running average does for another."""

    center: torch.Tensor

    def __init__(self):
        super().__init__()
        backbone = build_model(preset("vit_pico_patch4_32", fused=True))
        backbone.register_module("head", nn.Identity())
        self.model = nn.Sequential(backbone, PrototypeHead(backbone.config.embed_dim, PROTOTYPES))
        self.teacher: Any = copy.deepcopy(self.model).requires_grad_(False)
        self.register_buffer("center", torch.zeros(PROTOTYPES))

    def loss(self, images: torch.Tensor, normalize: Callable, draws: torch.Generator):
        """Give the price of the answers for two views of uint8 images (B, 3, S, S)."""
        both = torch.cat([photo_view(images.float(), draws) for _ in range(2)])
        views = normalize(both.round().to(torch.uint8))
        with torch.no_grad():
            answers = self.teacher(views).float()
        others = answers.roll(len(images), 0)  # of the other view
        loss = dino_loss(self.model(views).float(), others, self.center)
        self.center.lerp_(answers.mean(dim=0), 1 - CENTER_MOMENTUM)
        return loss

    @torch.no_grad()
    def follow(self, progress: float) -> None:
        """Let the teacher follow, ever more slowly."""
        momentum = 1 - (1 - MOMENTUM) * (1 + math.cos(math.pi * progress)) / 2
        for slow, fast in zip(self.teacher.parameters(), self.model.parameters(), strict=True):
            slow.lerp_(fast, 1 - momentum)


def photo_view(images: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
    """Give a random view of every photograph (B, 3, S, S), values 0 to 255: a window of it, some
    mirrored, in other light and colours, one in five in grey.
    """
    images = random_resized_crop(images, 0.25, draws)
    B = len(images)
    amounts = torch.rand(5, B, 1, 1, 1, generator=draws, device=draws.device)
    images = torch.where(amounts[0] < 0.5, images.flip(-1), images)
    for change, amount in zip((brightness, contrast, saturation), amounts[1:], strict=False):
        images = change(images, 0.45 * (2 * amount - 1)).clamp(0, 255)
    return torch.where(amounts[4] < 0.2, images.mean(dim=1, keepdim=True), images)
