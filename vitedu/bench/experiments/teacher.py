"""Does a teacher help a ViT that has 400 labels? Two heads, three sources for the second one.

Section 7 of notebook 07. Half of a batch teaches the class head from labels. The other half teaches
the distillation head: labels, or the answers of a small CNN that learned from the same 400 images.
"""

from dataclasses import replace
from functools import cache

import torch
import torch.nn.functional as F

from vitedu.bench.experiments import Arms, Results, cut, shapes, train_and_measure
from vitedu.bench.experiments.less_data import CONFIG, FEW, few_shapes
from vitedu.fitting.loop import TrainConfig, logits_of, measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.less_data import DistilledViT, descend, distillation_loss
from vitedu.training import random_crop_flip, warmup_cosine
from vitedu.vit_and_cnn import SmallCNN

ARMS: Arms = {
    "labels": {"teacher": False, "more": False, "steps": 250},
    "teacher, same images": {"teacher": True, "more": False, "steps": 250},
    "teacher, more images": {"teacher": True, "more": True, "steps": 250},
    "labels, 1,000 steps": {"teacher": False, "more": False, "steps": 1_000},
    "teacher, more images, 1,000 steps": {"teacher": True, "more": True, "steps": 1_000},
}
HALF = 32  # images of a batch for each head


def run(arm: str, seed: int, profile: Profile, loss_of=distillation_loss) -> Results:
    """Train a student, measure it and its teacher; ``loss_of`` is its distillation loss."""
    few, teacher = few_shapes(cut(400, profile, 100)), train_teacher(seed, profile)
    source = images = few.train.images
    labels = few.train.labels
    if ARMS[arm]["more"]:  # images whose labels nobody reads; the labelled ones come first
        count = profile.pick(quick=300, laptop=4_000, gpu=10_000)
        source = shapes(profile, count, quick=(300, 200)).train.images[len(images) :]
    torch.manual_seed(seed)
    student = DistilledViT(replace(CONFIG, pool="cls", num_registers=1)).train()
    optimizer = torch.optim.AdamW(student.parameters(), lr=2e-3, weight_decay=0.05)
    draws, steps = torch.Generator().manual_seed(seed), cut(ARMS[arm]["steps"], profile, 2)
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
    teacher_answers = logits_of(teacher, images, few, torch.float32).argmax(dim=1)
    results = {
        "test_accuracy": measure_test_accuracy(student.eval(), few),
        "teacher, test_accuracy": measure_test_accuracy(teacher, few),
        "teacher against label": (teacher_answers != labels).double().mean().item(),
    }
    return {name: round(value, 4) for name, value in results.items()}


@cache
def train_teacher(seed: int, profile: Profile) -> SmallCNN:
    """Train the teacher, once for all arms of a seed."""
    torch.manual_seed(seed)
    teacher = SmallCNN(width=16)
    config = TrainConfig(epochs=cut(30, profile, 1), lr=3e-3, seed=seed, **FEW)
    few = few_shapes(cut(400, profile, 100))
    train_and_measure(teacher, few, config, "", validation_images=10)
    return teacher.eval()
