"""What moves the weights: AdamW, Muon beside AdamW, and the running average.

Role: ``make_optimizer``, its ``MuonAndAdamW``, and ``update_average``. Not here: learning rates and
clipping (``loop``), which parameters decay (``training``).

References: Loshchilov and Hutter 2019, AdamW (arXiv 1711.05101); Jordan et al. 2024, Muon,
https://kellerjordan.github.io/posts/muon/; Liu et al. 2025, the size of its updates (arXiv
2502.16982); Karras et al. 2023, section 3, on averaging weights (arXiv 2312.02696).
"""

from typing import Any

import torch
from torch import nn

from vitedu.fitting.config import TrainConfig
from vitedu.ground.hardware import pick_precision
from vitedu.training import orthogonalise, weight_decay_groups
from vitedu.transfer import layerwise_lr_groups

MUON_MOMENTUM = 0.95


class MuonAndAdamW(torch.optim.AdamW):
    """Muon for the groups that say ``"muon": True``, and AdamW for the others.

    Muon steps matrices so that every direction of an update has about the same length. It equals
    ``torch.optim.Muon`` with Nesterov momentum and ``adjust_lr_fn="match_rms_adamw"``, which
    multiplies in bfloat16 on every device. A CPU without bfloat16 emulates these products: a step
    of the course's model spent 70 % of its time there. So the type is one that is fast.

    Args:
        groups: of parameters; Muon's hold matrices alone.
        dtype: in which Muon's updates are multiplied.
        **settings: as AdamW takes them; one learning rate serves both.
    """

    def __init__(self, groups: list[dict], dtype: torch.dtype, **settings: Any):
        super().__init__(groups, **settings)
        self.dtype = dtype
        # a gradient scaler asks first whether a number has overflown: all groups step, or none
        self._step_supports_amp_scaling = False

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient; Muon's have none afterwards."""
        for group in self.param_groups:
            if not group.get("muon"):
                continue
            matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
            gradients = []  # with Nesterov's look ahead
            for matrix in matrices:
                state = self.state[matrix]
                if not state:  # AdamW looks for a step in each state that is read from a file
                    state["step"] = torch.zeros(())
                    state["momentum_buffer"] = torch.zeros_like(matrix.grad)
                mean = state["momentum_buffer"].lerp_(matrix.grad, 1 - MUON_MOMENTUM)
                gradients.append(matrix.grad.lerp(mean, MUON_MOMENTUM).to(self.dtype))
            for matrix, update in zip(matrices, orthogonalise_all(gradients), strict=True):
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
                # an even update has entries of 1 / sqrt(longer side); AdamW's are about 0.2
                matrix.add_(update, alpha=-0.2 * max(matrix.shape) ** 0.5 * group["lr"])
                matrix.grad = None  # so AdamW passes it over
        super().step()


def orthogonalise_all(matrices: list[torch.Tensor]) -> list[torch.Tensor]:
    """Orthogonalise each; a GPU takes all of one shape at once, which saves hundreds of calls."""
    if not matrices or not matrices[0].is_cuda:
        return [orthogonalise(matrix) for matrix in matrices]
    alike: dict[torch.Size, list[int]] = {}
    for i, matrix in enumerate(matrices):
        alike.setdefault(matrix.shape, []).append(i)
    results = list(matrices)
    for places in alike.values():
        stack = torch.vmap(orthogonalise)(torch.stack([matrices[i] for i in places]))
        for i, result in zip(places, stack, strict=True):
            results[i] = result
    return results


def make_optimizer(
    model: nn.Module, config: TrainConfig, device: torch.device
) -> torch.optim.Optimizer:
    """Make what steps a model: AdamW for all, or Muon for inner matrices and AdamW for the rest.

    Muon is for matrices that map features to features; the last one, which maps them to classes,
    stays with AdamW.

    Raises:
        ValueError: Muon is asked for, and the model has no inner matrix.
    """
    settings: Any = {"lr": config.lr, "betas": config.betas}
    settings["fused"] = device.type in ("cpu", "cuda")
    groups = weight_decay_groups(model, config.weight_decay)
    if config.optimizer == "adamw":
        return torch.optim.AdamW(by_depth(model, config.layer_decay, groups), **settings)
    matrices = [p for p in groups[0]["params"] if p.ndim == 2 and p.requires_grad][:-1]
    if not matrices:
        raise ValueError(
            "optimizer='muon' needs matrices besides the last (got none); use optimizer='adamw'."
        )
    inner = {id(parameter) for parameter in matrices}
    groups[0]["params"] = [p for p in groups[0]["params"] if id(p) not in inner]
    groups.insert(0, {**groups[0], "params": matrices, "muon": True})
    is_fast = pick_precision(device) is torch.bfloat16
    dtype = torch.bfloat16 if is_fast else torch.float32
    return MuonAndAdamW(by_depth(model, config.layer_decay, groups), dtype, **settings)


def by_depth(model: nn.Module, decay: float, groups: list[dict]) -> list[dict]:
    """Split groups of parameters by depth; ``lr_share`` is the share of the learning rate."""
    if decay == 1:
        return groups
    share = {
        id(part): layer["lr"]
        for layer in layerwise_lr_groups(model, 1.0, decay)
        for part in layer["params"]
    }
    return [
        {**group, "params": [p for p in group["params"] if share[id(p)] == each], "lr_share": each}
        for group in groups
        for each in sorted({share[id(part)] for part in group["params"]})
    ]


def freeze(model: nn.Module, count: int) -> None:
    """Stop the first blocks of a ViT from learning, and what stands before them; 0 stops nothing.

    Raises:
        ValueError: it has fewer blocks.
    """
    blocks: Any = getattr(model, "blocks", ())
    if count > len(blocks):
        raise ValueError(f"freeze counts blocks, and there are {len(blocks)} (got {count}).")
    for name, part in model.named_parameters() if count else ():
        if not name.startswith(("blocks.", "norm.", "attn_pool.", "head.")):
            part.requires_grad_(False)
    for block in blocks[:count]:
        block.requires_grad_(False)


@torch.no_grad()
def update_average(averaged: nn.Module, model: nn.Module, decay: float, step: int) -> None:
    """Move the averaged weights towards the model's, faster while the average is young."""
    decay = min(decay, (1 + step) / (10 + step))
    torch._foreach_lerp_(list(averaged.parameters()), list(model.parameters()), 1 - decay)
    for buffer, new in zip(averaged.buffers(), model.buffers(), strict=True):
        buffer.copy_(new)
