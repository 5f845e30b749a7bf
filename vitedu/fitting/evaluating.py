"""What a model says of uint8 images: logits, probabilities, loss and accuracy, nothing changed.

Role: ``predict``, ``measure_test_accuracy``, and what the loop measures with. Not here: training.

Legend: N images, C H W image, K classes.

Reference: Micikevicius et al. 2017, mixed precision (arXiv 1710.03740).
"""

from typing import Any

import torch
from torch import nn

from vitedu.training import cross_entropy

EVALUATION_BATCH = 500  # images; without gradients a larger batch fits


def predict(
    model: nn.Module, images: torch.Tensor, data: Any, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Give the probability of every class for every image.

    Args:
        model: maps float images to logits (N, K). The mode of every submodule is restored.
        images: (N, C, H, W) uint8, on any device.
        data: has ``mean`` and ``std``, those of the training images.
        dtype: in which matrix products run.

    Returns:
        (N, K) float32 on the CPU; rows sum to 1.
    """
    return logits_of(model, images, data, dtype).softmax(dim=-1).cpu()


def measure_test_accuracy(model: nn.Module, data: Any, dtype: torch.dtype = torch.float32) -> float:
    """Measure the accuracy on the test split, in [0, 1]; once, when all choices are made."""
    return measure(model, data.test, data, dtype)[1]


def measure(
    model: nn.Module, split: Any, data: Any, dtype: torch.dtype = torch.float32
) -> tuple[float, float]:
    """Return (mean loss, accuracy in [0, 1]) of a model on a split, without changing it."""
    logits = logits_of(model, split.images, data, dtype)
    labels = split.labels.to(logits.device)
    correct = (logits.argmax(dim=-1) == labels).sum().item()
    return cross_entropy(logits, labels).item(), correct / len(labels)


@torch.no_grad()
def logits_of(
    model: nn.Module, images: torch.Tensor, data: Any, dtype: torch.dtype
) -> torch.Tensor:
    """Run uint8 images (N, C, H, W) through a model in eval mode; (N, K) float32 on its device."""
    device = next(model.parameters()).device
    shift, scale = scaling(data, device)
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with autocast(device, dtype):
            logits = [
                model(chunk.to(device).float() * scale + shift).float()
                for chunk in images.split(EVALUATION_BATCH)
            ]
    finally:
        for module, training in modes.items():
            module.training = training
    return torch.cat(logits)


def scaling(data: Any, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (shift, scale), each (C, 1, 1): ``images * scale + shift`` has mean 0 and deviation 1.

    Made once a run, since a copy to the device in every step would wait for it.
    """
    mean = torch.as_tensor(data.mean, dtype=torch.float32).view(-1, 1, 1)
    std = torch.as_tensor(data.std, dtype=torch.float32).view(-1, 1, 1)
    return (-mean / std).to(device), (1 / (255 * std)).to(device)


def autocast(device: torch.device, dtype: torch.dtype):
    """Return a context in which matrix products run in ``dtype``."""
    return torch.autocast(device.type, dtype=dtype, enabled=dtype is not torch.float32)
