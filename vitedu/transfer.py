"""Notebook 09: standing on published weights.

Role: names of other libraries, another image size, learning rates by depth, low-rank adapters, the
two losses that teach images with words, and a loop for images in memory. Not here: loading
published weights (``pretrained``).

Legend: B batch, D embed_dim, L blocks, gh gw patch grid.

References: Dosovitskiy et al. 2020, section 3.2 (arXiv 2010.11929); Bao et al. 2021, "BEiT",
layer-wise learning rates (arXiv 2106.08254); Hu et al. 2021, "LoRA" (arXiv 2106.09685); Radford et
al. 2021, "CLIP" (arXiv 2103.00020); Zhai et al. 2023, "SigLIP" (arXiv 2303.15343).
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitedu.training import evaluate

# trained numbers: rank 8 beside the qkv layer of each of the 12 blocks of ViT-B/16
lora_parameters = 12 * 8 * (768 + 3 * 768)
# 64 pairs whose cosines are all 0: clip_loss; sigmoid_contrastive_loss with bias 0; with bias -10
blind_losses = (
    math.log(64),
    64 * math.log(2),
    63 * math.log1p(math.exp(-10)) + math.log1p(math.exp(10)),
)


def convert_torchvision_weights(state_dict: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Give torchvision's weights the names that this course and timm use.

    Both libraries compute the same from the same numbers; they only call them by other names.

    Args:
        state_dict: of a torchvision ViT of any size; it is left unchanged.

    Returns:
        The same tensors under our names, ready for ``VisionTransformer.load_state_dict``.

    Example:
        >>> convert_torchvision_weights({"heads.head.bias": torch.zeros(2)})
        {'head.bias': tensor([0., 0.])}

    Reference: torchvision ``models/vision_transformer.py``.
    """
    names = {
        "class_token": "cls_token",
        "encoder.pos_embedding": "pos_embed",
        "conv_proj": "patch_embed.proj",
        "encoder.layers.encoder_layer_": "blocks.",
        "ln_1": "norm1",
        "self_attention.in_proj_": "attn.qkv.",  # q, k and v stacked, in both libraries
        "self_attention.out_proj": "attn.proj",
        "ln_2": "norm2",
        "mlp.0": "mlp.fc1",
        "mlp.3": "mlp.fc2",  # 1 is the GELU, 2 its dropout
        "encoder.ln": "norm",
        "heads.head": "head",
    }
    converted = {}
    for name, tensor in state_dict.items():
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        converted[name] = tensor
    return converted


def interpolate_positions(
    pos_embed: torch.Tensor,
    new_grid_size: tuple[int, int],
    num_prefix_tokens: int = 1,
    *,
    antialias: bool = False,
) -> torch.Tensor:
    """Stretch or shrink learned positions to another grid of patches.

    A model that was trained at one image size can then be used at another: positions are the only
    parameters that know how many patches there are.

    Args:
        pos_embed: (1, prefix + N, D), its patches from a square grid.
        new_grid_size: (gh, gw), patches down and across.
        num_prefix_tokens: rows before those of the patches, which stand for no place; they are
            kept.

    Returns:
        (1, prefix + gh*gw, D); ``pos_embed`` itself where the grid is the same.

    Raises:
        ValueError: N is no square.

    Example:
        >>> interpolate_positions(torch.zeros(1, 1 + 4 * 4, 8), (6, 5)).shape
        torch.Size([1, 31, 8])

    Reference: Dosovitskiy et al. 2020, section 3.2; bicubic as in DeiT and timm.
    """
    prefix, patches = pos_embed[:, :num_prefix_tokens], pos_embed[:, num_prefix_tokens:]
    _, N, D = patches.shape
    side = math.isqrt(N)
    if side * side != N:
        raise ValueError(
            f"the positions of the patches must come from a square grid (got {N} rows beside "
            f"{num_prefix_tokens} of the prefix); change num_prefix_tokens."
        )
    if (side, side) == tuple(new_grid_size):
        return pos_embed
    grid = patches.reshape(1, side, side, D).permute(0, 3, 1, 2)  # (1, N, D) -> (1, D, side, side)
    size = tuple(new_grid_size)
    # antialias is no part of the exercise; timm sets it. It widens the kernel only when the grid
    # shrinks; when it grows, the same four cells count, with other weights (a = -0.5, not -0.75)
    grid = F.interpolate(grid, size=size, mode="bicubic", antialias=antialias)  # -> (1, D, gh, gw)
    patches = grid.flatten(2).transpose(1, 2)  # -> (1, gh*gw, D)
    return torch.cat([prefix, patches], dim=1)


def layerwise_lr_groups(model: nn.Module, base_lr: float, decay: float) -> list[dict]:
    """Sort parameters into groups whose learning rate falls from the head down to the patches.

    The first blocks of a trained model hold what most pictures share; a small step keeps it.

    Args:
        model: with the names of this course: patch_embed, cls_token, pos_embed, blocks, norm, head.
        base_lr: learning rate of head and final norm.
        decay: factor from one block to the one below, such as 0.75.

    Returns:
        Groups for an optimizer, dicts with "params" and "lr": block i of L has
        ``base_lr * decay ** (L - i)``; patch embedding, class token and positions have
        ``base_lr * decay ** (L + 1)``. Every parameter stands in exactly one group.

    Example:
        >>> from vitedu.vit import PRESETS, VisionTransformer
        >>> model = VisionTransformer(PRESETS["vit_micro_patch8_32"])
        >>> groups = layerwise_lr_groups(model, 1.0, 0.5)
        >>> sorted({group["lr"] for group in groups})
        [0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0]

    Reference: Bao et al. 2021, appendix; Clark et al. 2020, "ELECTRA" (arXiv 2003.10555).
    """
    L = len(model.blocks)  # type: ignore[arg-type]
    groups: list[dict] = [
        {"params": [], "lr": base_lr * decay ** (L + 1 - depth)} for depth in range(L + 2)
    ]
    for name, parameter in model.named_parameters():
        part, *rest = name.split(".")
        if part == "blocks":
            depth = int(rest[0]) + 1
        else:
            depth = L + 1 if part in ("norm", "head") else 0
        groups[depth]["params"].append(parameter)
    return groups


class LoRALinear(nn.Module):
    """A frozen linear layer with a small one of low rank beside it, which learns.

    What fine-tuning adds to a weight matrix is often close to a matrix of low rank. Two thin
    matrices can then stand for the change.

    Args:
        linear: the trained layer; it is kept as ``linear`` and frozen.
        rank: width between the two thin matrices.
        alpha: the change is scaled by ``alpha / rank``.

    Example:
        >>> layer = LoRALinear(nn.Linear(12, 36), rank=2, alpha=4.0)
        >>> trained = sum(p.numel() for p in layer.parameters() if p.requires_grad)
        >>> layer(torch.zeros(2, 5, 12)).shape, trained
        (torch.Size([2, 5, 36]), 96)

    Reference: Hu et al. 2021, section 4.1. Departure: ``down`` starts with torch's uniform values.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.rank, self.alpha = rank, alpha
        self.linear = linear.requires_grad_(False)
        like = {"dtype": linear.weight.dtype, "device": linear.weight.device}
        self.down = nn.Linear(linear.in_features, rank, bias=False, **like)
        self.up = nn.Linear(rank, linear.out_features, bias=False, **like)
        nn.init.zeros_(self.up.weight)  # at the start the layer computes what it did before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (..., in) to (..., out)."""
        return self.linear(x) + self.alpha / self.rank * self.up(self.down(x))

    def merged(self) -> nn.Linear:
        """Give one ``nn.Linear`` that computes the same and shares no memory; this layer stays as
        it is."""
        old = self.linear
        has_bias = old.bias is not None
        like = {"dtype": old.weight.dtype, "device": old.weight.device}
        linear = nn.Linear(old.in_features, old.out_features, bias=has_bias, **like)
        with torch.no_grad():
            change = self.up.weight @ self.down.weight  # (out, rank) @ (rank, in)
            linear.weight.copy_(old.weight + self.alpha / self.rank * change)
            if has_bias:
                linear.bias.copy_(old.bias)
        return linear


def clip_loss(
    image_features: torch.Tensor, text_features: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Ask every image for its own text among those of the batch, and every text for its image.

    Args:
        image_features: (B, D); row i belongs to row i of the texts. Their lengths are free: the
            loss normalises them.
        text_features: (B, D).
        temperature: what the cosines are divided by; small values ask for a clear winner.

    Returns:
        0-d: the mean of two cross-entropies over the (B, B) table of cosines, one over its rows and
        one over its columns.

    Example:
        >>> clip_loss(torch.eye(4), torch.ones(4, 4), temperature=0.07)  # all texts alike: log 4
        tensor(1.3863)

    Reference: Radford et al. 2021, figure 3.
    """
    image, text = F.normalize(image_features, dim=-1), F.normalize(text_features, dim=-1)
    logits = image @ text.T / temperature  # (B, D) @ (D, B): row i is image i with every text
    labels = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def sigmoid_contrastive_loss(
    image_features: torch.Tensor, text_features: torch.Tensor, scale: float, bias: float
) -> torch.Tensor:
    """Ask of every pair of image and text by itself whether the two belong together.

    No softmax over the batch is needed, so the table of pairs can be computed piece by piece.

    Args:
        image_features: (B, D); row i belongs to row i of the texts. Their lengths are free: the
            loss normalises them.
        text_features: (B, D).
        scale: what the cosines are multiplied by.
        bias: what is added to each; below zero, since most pairs do not belong together.

    Returns:
        0-d: minus the sum of ``logsigmoid(±logit)`` over all B*B pairs, plus where image and text
        belong together and minus elsewhere, divided by B. Finite for logits of 1e4.

    Example:
        >>> sigmoid_contrastive_loss(torch.eye(4), torch.eye(4), scale=0.0, bias=0.0)  # 4 log 2
        tensor(2.7726)

    Reference: Zhai et al. 2023, algorithm 1.
    """
    image, text = F.normalize(image_features, dim=-1), F.normalize(text_features, dim=-1)
    logits = scale * image @ text.T + bias  # (B, B)
    signs = 2 * torch.eye(len(logits), dtype=logits.dtype, device=logits.device) - 1
    return -F.logsigmoid(signs * logits).sum() / len(logits)


def fit_to(
    model: nn.Module, x: Tensor, labels: Tensor, learning: Any, lr: float, steps: int, batch: int
) -> None:
    """Train on images in memory, with AdamW, a short warm-up and a rate that falls in a line to 0.

    Args:
        model: trained in place; it is in eval mode afterwards.
        x, labels: images (n, C, H, W), as the model takes them, and (n,).
        learning: parameters, or groups of them with learning rates; ``lr`` is that of the others.
        steps, batch: how many, and images in each, drawn anew; all of them where there are no more.
    """
    optimizer = torch.optim.AdamW(learning, lr=lr, weight_decay=0.05)
    rate = torch.optim.lr_scheduler.LambdaLR
    schedule = rate(optimizer, lambda k: min(1, (k + 1) / 15) * (1 - k / steps))
    model.train()
    for _ in range(steps):
        some = torch.randint(len(x), (batch,)) if batch < len(x) else slice(None)
        optimizer.zero_grad()
        F.cross_entropy(model(x[some]), labels[some]).backward()
        optimizer.step()
        schedule.step()
    model.eval()


def accuracy_of(model: nn.Module, x: torch.Tensor, labels: torch.Tensor) -> float:
    """Give the share of right answers for images (n, C, H, W)."""
    return evaluate(model, zip(x.split(250), labels.split(250), strict=True))[1]
