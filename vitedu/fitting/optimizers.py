"""What moves the weights: AdamW, Muon beside AdamW, and the running average.

Role: ``make_optimizer`` and ``update_average``. Not here: learning rates and clipping (``loop``),
which parameters decay (``training``).

References: Loshchilov and Hutter 2019, AdamW (arXiv 1711.05101); Jordan et al. 2024, Muon,
https://kellerjordan.github.io/posts/muon/; Liu et al. 2025, the size of its updates (arXiv
2502.16982); Karras et al. 2023, section 3, on averaging weights (arXiv 2312.02696).
"""

import torch
from torch import nn

from vitedu.fitting.config import TrainConfig
from vitedu.training import weight_decay_groups


class Together:
    """Several optimizers that look like one: a gradient scaler lets all of them step, or none.

    One that stepped alone on a float16 overflow would take the gradients that the overflow spoilt.
    """

    def __init__(self, *optimizers: torch.optim.Optimizer):
        self.optimizers = optimizers

    @property
    def param_groups(self) -> list[dict]:
        """The groups of all, those of the first in front; setting a group's lr reaches its owner."""
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self) -> None:
        """Update all parameters."""
        for optimizer in self.optimizers:
            optimizer.step()


def make_optimizer(model: nn.Module, config: TrainConfig, device: torch.device):
    """Make what steps a model: AdamW for all of it, or Muon for its inner matrices and AdamW for the rest.

    Muon gives every direction of a matrix's update the same length. It is for matrices that map
    features to features; the last one, which maps them to classes, stays with AdamW. Its updates are
    scaled to the size of AdamW's, so that one learning rate serves both.

    Raises:
        ValueError: Muon is asked for, and torch is too old or the model has no inner matrix.
    """
    fused = device.type in ("cpu", "cuda")
    groups = weight_decay_groups(model, config.weight_decay)
    if config.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=config.lr, betas=config.betas, fused=fused)
    if not hasattr(torch.optim, "Muon"):
        raise ValueError(
            f"optimizer='muon' needs torch 2.9 or newer (this is {torch.__version__}); "
            "use optimizer='adamw'."
        )
    matrices = [parameter for parameter in groups[0]["params"] if parameter.ndim == 2][:-1]
    if not matrices:
        raise ValueError(
            "optimizer='muon' needs matrices besides the last (got none); use optimizer='adamw'."
        )
    inner = {id(parameter) for parameter in matrices}
    groups[0]["params"] = [p for p in groups[0]["params"] if id(p) not in inner]
    muon = torch.optim.Muon(
        matrices, lr=config.lr, weight_decay=config.weight_decay, adjust_lr_fn="match_rms_adamw"
    )
    adamw = torch.optim.AdamW(groups, lr=config.lr, betas=config.betas, fused=fused)
    return Together(muon, adamw)


@torch.no_grad()
def update_average(averaged: nn.Module, model: nn.Module, decay: float, step: int) -> None:
    """Move the averaged weights towards the model's, faster at first, while the average is young."""
    decay = min(decay, (1 + step) / (10 + step))
    for mean, now in zip(averaged.parameters(), model.parameters(), strict=True):
        mean.lerp_(now, 1 - decay)
    for kept, new in zip(averaged.buffers(), model.buffers(), strict=True):
        kept.copy_(new)
