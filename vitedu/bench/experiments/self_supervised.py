"""Features that nobody labelled: two losses on drawn shapes, beside pixels and an untrained model.

The end of section 9 of notebook 07. "contrast" asks which view of a batch belongs to the same
image: CLIP's loss between two views, close to SimCLR (Chen et al. 2020, arXiv 2002.05709). Features
of grey images are judged by the ten nearest labelled images, few and many, and by a linear probe.
"""

import copy
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from vitedu import less_data
from vitedu.bench.experiments import Arms, Results, cut, shapes
from vitedu.bench.experiments.less_data import CONFIG, few_shapes
from vitedu.data import Data
from vitedu.hardware import Profile
from vitedu.inside import nearest_accuracy, probe_accuracy
from vitedu.less_data import PrototypeHead, descend, dino_loss, grey_view, pixels_of, read_all
from vitedu.options import build_model
from vitedu.training import warmup_cosine
from vitedu.transfer import clip_loss

ARMS: Arms = {
    "pixels": {},
    "an untrained model": {"loss": "DINO", "steps": 0},
    "DINO": {"loss": "DINO", "steps": 1_000},
    "contrast": {"loss": "contrast", "steps": 1_000},
}
FEW, MANY = 100, 2_000  # labelled images that may be looked at
PROTOTYPES, BATCH, MOMENTUM = 64, 64, 0.99


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Learn without labels, and judge the features."""
    data, test = shapes(profile, 4_000, quick=(400, None)), few_shapes(400).test
    read: Callable[[torch.Tensor], torch.Tensor] = pixels_of
    if ARMS[arm]:
        steps = cut(ARMS[arm]["steps"], profile, 2)
        read = learn(data, ARMS[arm]["loss"], steps, seed)
    labels, results = data.train.labels[:MANY], {}
    both = data.train.images[:MANY], test.images
    learnt, new = (read_all(read, images, data.name) for images in both)
    for count in (FEW, len(labels)):
        features = learnt[:count], labels[:count], new, test.labels
        results[f"nearest, {count:,} labels"] = round(nearest_accuracy(*features), 4)
    return results | {"probe": round(probe_accuracy(*features), 4)}


def learn(data: Data, loss: str, steps: int, seed: int) -> nn.Module:
    """Train on pairs of views of the training images; give the model's running average.

    The loss is "DINO", where the average is the teacher, or "contrast", where it teaches nobody.
    0 steps give the untrained model.
    """
    torch.manual_seed(seed)
    backbone = build_model(replace(CONFIG, pool="cls", fused=True))
    backbone.register_module("head", nn.Identity())
    head = PrototypeHead(CONFIG.embed_dim, PROTOTYPES)
    student = nn.Sequential(backbone, head if loss == "DINO" else head.mlp)
    average = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters(), weight_decay=0.04)
    images = less_data.standardise(data.train.images, data.name)
    draws = torch.Generator().manual_seed(seed)
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
