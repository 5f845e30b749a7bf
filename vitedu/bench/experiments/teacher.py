"""Does a teacher help a ViT that has 400 labels? Two heads, and three sources for what the second
one learns.

Role: the arms and one run of section 7 of notebook 07. Not here: the student and its loss
(``vitedu.less_data``).

All arms take the same number of steps with the same number of images. Half of a batch teaches the
class head from labels. They differ in what the other half teaches the distillation head: labels, or
the answers of a small CNN that has learned from the same 400 images.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F

from vitedu.bench.experiments import Results, train_to_end
from vitedu.bench.experiments.less_data import CONFIG, few_shapes
from vitedu.data import Data, load_data
from vitedu.fitting import TrainConfig
from vitedu.fitting.loop import logits_of, measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.less_data import DistilledViT, descend, distillation_loss
from vitedu.training import random_crop_flip, warmup_cosine
from vitedu.vit_and_cnn import SmallCNN

ARMS: dict[str, dict[str, Any]] = {
    "labels": {"teacher": False, "more": False, "steps": 250},
    "teacher, same images": {"teacher": True, "more": False, "steps": 250},
    "teacher, more images": {"teacher": True, "more": True, "steps": 250},
    "labels, 1,000 steps": {"teacher": False, "more": False, "steps": 1_000},
    "teacher, more images, 1,000 steps": {"teacher": True, "more": True, "steps": 1_000},
}
HALF = 32  # images of a batch for each head


def run(
    arm: str, seed: int, profile: Profile, loss_of: Callable[..., torch.Tensor] = distillation_loss
) -> Results:
    """Train a student, measure it and its teacher; ``loss_of`` is its distillation loss."""
    few, teacher = labelled(profile), teacher_of(seed, profile)
    images, labels = few.train.images, few.train.labels
    source = others(*profile.pick(quick=(300, 200), laptop=(4_000, None), gpu=(10_000, None)))
    source = source[len(images) :] if ARMS[arm]["more"] else images
    torch.manual_seed(seed)
    student = DistilledViT(replace(CONFIG, pool="cls", num_registers=1)).train()
    optimizer = torch.optim.AdamW(student.parameters(), lr=2e-3, weight_decay=0.05)
    draws = torch.Generator().manual_seed(seed)
    steps = min(ARMS[arm]["steps"], profile.pick(quick=2, laptop=10**6, gpu=10**6))
    for step in range(steps):
        mine = torch.randint(len(images), (HALF,), generator=draws)
        theirs = torch.randint(len(source), (HALF,), generator=draws)
        both = torch.cat([images[mine], source[theirs]])
        both = few.normalize(random_crop_flip(both, 4, draws))
        if ARMS[arm]["teacher"]:
            with torch.no_grad():
                answers = teacher(both[HALF:])
        else:
            answers = F.one_hot(labels[theirs], few.num_classes).float()
        by_class, by_distillation = student(both)
        loss = loss_of(by_class[:HALF], by_distillation[HALF:], answers, labels[mine])
        descend(optimizer, loss, warmup_cosine(step, steps, steps // 10, 2e-3))
    said = logits_of(teacher, images, few, torch.float32).argmax(dim=1)
    return {
        "test_accuracy": round(measure_test_accuracy(student.eval(), few), 4),
        "teacher, test_accuracy": round(measure_test_accuracy(teacher, few), 4),
        "teacher against label": round((said != labels).double().mean().item(), 4),
    }


def labelled(profile: Profile) -> Data:
    """The images with labels."""
    return few_shapes(profile.pick(quick=100, laptop=400, gpu=400))


@cache
def teacher_of(seed: int, profile: Profile) -> SmallCNN:
    """Train the teacher, once for all arms of a seed."""
    torch.manual_seed(seed)
    teacher = SmallCNN(width=16)
    epochs = profile.pick(quick=1, laptop=30, gpu=30)
    config = TrainConfig(epochs=epochs, batch_size=50, lr=3e-3, precision="float32", seed=seed)
    train_to_end(teacher, labelled(profile), config, validation_images=10)
    return teacher.cpu().eval()


@cache
def others(limit: int, held_out: int | None) -> torch.Tensor:
    """Draw training images (n, 3, H, W) whose labels nobody reads; the labelled ones first."""
    return load_data("shapes", limit=limit, held_out=held_out).train.images
