"""Features that nobody labelled: what two losses learn on drawn shapes, beside pixels and an
untrained model.

Role: the arms and one run of the end of section 9 of notebook 07. Not here: the loss and the views
(``vitedu.less_data``, ``vitedu.transfer``), the collapse (the notebook trains it itself).

"contrast" asks which view of a batch belongs to the same image: CLIP's loss between two views
instead of image and text, close to SimCLR (Chen et al. 2020, arXiv 2002.05709). Every arm reads the
same grey images. Its features are judged by the ten nearest of few and of many labelled images, and
by a linear probe on the many. Labels are used to judge and never to learn.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Results
from vitedu.bench.experiments.less_data import CONFIG, few_shapes
from vitedu.data import load_data
from vitedu.hardware import Profile
from vitedu.inside import nearest_accuracy, probe_accuracy
from vitedu.less_data import PrototypeHead, descend, dino_loss, grey_view
from vitedu.options import build_model
from vitedu.training import warmup_cosine
from vitedu.transfer import clip_loss
from vitedu.vit import VisionTransformer

ARMS: dict[str, dict[str, Any]] = {
    "pixels": {},
    "an untrained model": {"loss": "DINO", "steps": 0},
    "DINO": {"loss": "DINO", "steps": 1_000},
    "contrast": {"loss": "contrast", "steps": 1_000},
}
FEW, MANY = 100, 2_000  # labelled images that may be looked at
PROTOTYPES, BATCH, MOMENTUM = 64, 64, 0.99


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Learn without labels, and judge the features."""
    data = load_data("shapes", limit=profile.pick(quick=400, laptop=4_000, gpu=4_000))
    test, labels = few_shapes(400).test, data.train.labels[:MANY]
    read: Callable[[torch.Tensor], torch.Tensor] = pixels_of
    results: Results = {}
    if ARMS[arm]:
        steps = min(ARMS[arm]["steps"], profile.pick(quick=2, laptop=10**6, gpu=10**6))
        read = learn(data.train.images, ARMS[arm]["loss"], steps, seed)
    learnt, new = (read_all(read, images) for images in (data.train.images[:MANY], test.images))
    for count in (FEW, len(labels)):
        known = learnt[:count], labels[:count], new, test.labels
        results[f"nearest, {count:,} labels"] = round(nearest_accuracy(*known), 4)
    return results | {"probe": round(probe_accuracy(*known), 4)}


def standard(images: torch.Tensor) -> torch.Tensor:
    """Bring uint8 images (n, 3, H, W) to about mean 0 and deviation 1."""
    return (images.float() / 255 - 0.2) / 0.17


def pixels_of(images: torch.Tensor) -> torch.Tensor:
    """Give one channel as features: (n, 3, H, W) -> (n, H*W)."""
    return images[:, 0].flatten(1)


@torch.no_grad()
def read_all(read: Callable[[torch.Tensor], torch.Tensor], images: torch.Tensor) -> torch.Tensor:
    """Give the features (n, D) of uint8 images in grey, seen in a view that changes nothing."""
    grey = standard(images).mean(dim=1, keepdim=True).expand(-1, 3, -1, -1)
    return torch.cat([read(part) for part in grey.split(250)])


def network(seed: int) -> tuple[VisionTransformer, PrototypeHead]:
    """Make the untrained model without a head, and the head with prototypes."""
    torch.manual_seed(seed)
    backbone = build_model(replace(CONFIG, pool="cls", fused=True))
    backbone.head = nn.Identity()  # type: ignore[assignment]
    return backbone, PrototypeHead(CONFIG.embed_dim, PROTOTYPES)


def learn(images: torch.Tensor, loss: str, steps: int, seed: int) -> nn.Module:
    """Train on pairs of views of uint8 images (n, 3, H, W); give the model's running average.

    Args:
        images: of which no label is used.
        loss: "DINO", where the average is the teacher, or "contrast", where it teaches nobody.
        steps: of optimisation; 0 gives the untrained model.
        seed: of weights, images and views.
    """
    backbone, head = network(seed)
    student = nn.Sequential(backbone, head if loss == "DINO" else head.mlp)
    average = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters(), weight_decay=0.04)
    images, draws = standard(images), torch.Generator().manual_seed(seed)
    center = torch.zeros(PROTOTYPES)
    for step in range(steps):
        some = images[torch.randint(len(images), (BATCH,), generator=draws)]
        views = torch.cat([grey_view(some, draws), grey_view(some, draws)])
        if loss == "DINO":
            with torch.no_grad():
                answers = average(views)
            price = dino_loss(student(views), answers.roll(BATCH, 0), center)  # the other views'
            center = 0.9 * center + 0.1 * answers.mean(dim=0)
        else:
            one, other = student(views).split(BATCH)
            price = clip_loss(one, other, temperature=0.2)
        descend(optimizer, price, warmup_cosine(step, steps, steps // 10, 2e-3))
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), student.parameters(), strict=True):
                slow.lerp_(fast, 1 - MOMENTUM)
    return average[0].eval()
