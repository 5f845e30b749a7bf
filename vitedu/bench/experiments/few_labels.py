"""Sixty labels of a new task: how far does each way to go on from trained weights get?

Role: the five ways of section 3 of notebook 09 and one run of each. Not here: adapters and learning
rates by depth themselves (``vitedu.transfer``).

The shipped model knows bright shapes on a dark ground. The new task is the same shapes dark on
bright, like the negative of a film. Each seed draws 60 images of its own, six of a class. The
learning rates were chosen on other drawings: two were tried for each way that starts from the
weights, one from scratch.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.bench.experiments import Results
from vitedu.data.shapes import SHAPES, draw_shapes
from vitedu.hardware import Profile
from vitedu.options import build_model
from vitedu.pretrained.shown import read_own
from vitedu.transfer import LoRALinear, layerwise_lr_groups
from vitedu.vit import VisionTransformer

ARMS: dict[str, dict[str, Any]] = {
    "from scratch": {"lr": 1e-3},
    "head only": {"lr": 3e-2},
    "full": {"lr": 1e-3},
    "layer-wise": {"lr": 2e-3, "decay": 0.6},
    "LoRA": {"lr": 3e-3, "rank": 4, "layers": ["attn.qkv", "mlp.fc1"]},
}
SEED = 100  # of the drawings of seed 0; the shipped model was trained on those of another number


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train in one way and measure it on negatives that were not trained on."""
    _, accuracy, learned = adapt(arm, seed, profile)
    return {"parameters": learned, "test_accuracy": round(accuracy, 4)}


def adapt(
    way: str,
    seed: int,
    profile: Profile,
    *,
    count: int = 60,
    rank: int = ARMS["LoRA"]["rank"],
    layers: Sequence[str] = ARMS["LoRA"]["layers"],
    lora: Callable[..., nn.Module] = LoRALinear,
    groups_of: Callable[..., list[dict]] = layerwise_lr_groups,
) -> tuple[VisionTransformer, float, int]:
    """Train on a few negatives in one way.

    Args:
        way: a name of ``ARMS``.
        seed: of drawings and weights.
        profile: of the size of the run.
        count: labelled images, at most 60.
        rank: of the adapters.
        layers: which linear layers of a block get one, such as "attn.qkv".
        lora: a student's own class in the place of ours.
        groups_of: a student's own function in the place of ours.

    Returns:
        The model in eval mode, its accuracy on test images, and how many parameters learned.
    """
    config, weights, _ = read_own("stand_in")
    images, labels = negatives(60, SEED + seed)
    torch.manual_seed(seed)
    model = build_model(config)
    if way != "from scratch":
        model.load_state_dict(weights)
    if way in ("LoRA", "head only"):
        model.requires_grad_(False)
    if way == "LoRA":
        for block in model.blocks:
            for path in layers:
                parent, _, name = path.rpartition(".")
                owner = block.get_submodule(parent)
                setattr(owner, name, lora(getattr(owner, name), rank, alpha=rank))
    model.head = nn.Linear(config.embed_dim, len(SHAPES))
    nn.init.zeros_(model.head.weight)
    learning: Any = [p for p in model.parameters() if p.requires_grad]
    learned = sum(p.numel() for p in learning)
    if way == "layer-wise":
        learning = groups_of(model, ARMS[way]["lr"], ARMS[way]["decay"])
    steps = profile.pick(quick=4, laptop=150, gpu=150)
    fit_to(model, images[:count], labels[:count], learning, ARMS[way]["lr"], steps)
    return model, accuracy_of(model, *tested(profile)), learned


def tested(profile: Profile) -> tuple[torch.Tensor, torch.Tensor]:
    """The negatives that all ways are tested on, and their labels."""
    return negatives(profile.pick(quick=100, laptop=1_000, gpu=2_000), SEED, stream=2)


@cache
def negatives(count: int, seed: int, stream: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw shapes, dark on bright, as the shipped model takes them (n, 3, 32, 32); labels (n,)."""
    known = read_own("stand_in")[2]
    mean, std = (torch.tensor(known[key]).view(-1, 1, 1) for key in ("mean", "std"))
    images, labels, _ = map(torch.from_numpy, draw_shapes(count, seed=seed, stream=stream))
    return ((255 - images) / 255 - mean) / std, labels


def fit_to(
    model: nn.Module,
    x: torch.Tensor,
    labels: torch.Tensor,
    learning: Any,
    lr: float,
    steps: int,
    batch: int = 64,
) -> None:
    """Train on images in memory: AdamW, a short warm-up, then down to zero in a line.

    Args:
        model: trained in place; it is in eval mode afterwards.
        x: (n, C, H, W), as the model takes them.
        labels: (n,).
        learning: parameters, or groups of them with learning rates.
        lr: of what has no learning rate of its own.
        steps: how many.
        batch: images a step, drawn anew for each; all of them where there are no more.
    """
    optimizer = torch.optim.AdamW(learning, lr=lr, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda k: min(1, (k + 1) / 15) * (1 - k / steps)
    )
    model.train()
    for _ in range(steps):
        some = torch.randint(len(x), (batch,)) if batch < len(x) else slice(None)
        loss = F.cross_entropy(model(x[some]), labels[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()


def accuracy_of(model: nn.Module, x: torch.Tensor, labels: torch.Tensor) -> float:
    """Give the share of right answers for images (n, C, H, W), in eval mode."""
    model.eval()
    with torch.no_grad():
        answers = torch.cat([model(some).argmax(dim=1) for some in x.split(250)])
    return (answers == labels).double().mean().item()
