"""Does a teacher help a ViT that has 400 labels? Two heads, four sources for the second one.

For 07_less_data_more. Half of a batch teaches the class head from labels. The other half
teaches the distillation head: labels, or answers of a small CNN that learned from the same images.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import torch
import torch.nn.functional as F
from torch import Tensor

from vitedu.bench.experiments import Arms, Profile, Results, cut, look_up, train_and_measure
from vitedu.bench.experiments.less_data import CONFIG, FEW, few_photographs, photographs
from vitedu.fitting.loop import TrainConfig, measure_test_accuracy
from vitedu.less_data import DistilledViT, descend, distillation_loss
from vitedu.training import random_crop_flip, warmup_cosine
from vitedu.vit_and_cnn import SmallCNN

ARMS: Arms = {
    "labels": {"teacher": False, "other": False},
    "teacher, same photographs": {"teacher": True, "other": False},
    "teacher, soft answers": {"teacher": True, "other": False, "temperature": 3.0},
    "teacher, other photographs": {"teacher": True, "other": True},
}
HALF, STEPS = 32, 1_000  # images of a batch for each head


def run(arm: str, seed: int, profile: Profile, loss_of: Callable = distillation_loss) -> Results:
    """Train a student, measure it and its teacher; ``loss_of`` is its loss for hard answers."""
    few, settings = few_photographs(seed, profile), look_up(arm, ARMS)
    teacher = train_teacher(seed, profile)
    images, labels = few.train.images, few.train.labels
    # of all photographs nobody reads the labels
    source = photographs(profile).train.images if settings["other"] else images
    if temperature := settings.get("temperature"):
        loss_of = partial(soft_distillation_loss, temperature=temperature)
    torch.manual_seed(seed)
    student = DistilledViT(replace(CONFIG, pool="cls", num_registers=1)).train()
    optimizer = torch.optim.AdamW(student.parameters(), lr=2e-3, weight_decay=0.05)
    draws, steps = torch.Generator().manual_seed(seed), cut(STEPS, profile, 2)
    for step in range(steps):
        mine = torch.randint(len(images), (HALF,), generator=draws)
        theirs = torch.randint(len(source), (HALF,), generator=draws)
        both = torch.cat([images[mine], source[theirs]])
        both = few.normalize(random_crop_flip(both, 4, draws))
        with torch.no_grad():
            answers = teacher(both[HALF:])
        if not settings["teacher"]:
            answers = F.one_hot(labels[theirs], few.num_classes).float()
        by_class, by_distillation = student(both)
        loss = loss_of(by_class[:HALF], by_distillation[HALF:], answers, labels[mine])
        descend(optimizer, loss, warmup_cosine(step, steps, steps // 10, 2e-3))
    learned = {"test_accuracy": student.eval(), "teacher, test_accuracy": teacher}
    return {name: round(measure_test_accuracy(one, few), 4) for name, one in learned.items()}


def soft_distillation_loss(
    cls_logits: Tensor, dist_logits: Tensor, answers: Tensor, labels: Tensor, temperature: float
) -> Tensor:
    """Learn from the teacher's probabilities, all of them, where ``distillation_loss`` takes one.

    Reference: Hinton et al. 2015, section 2: both softened, the gradient brought back by T**2.
    """
    student = (dist_logits / temperature).log_softmax(dim=-1)
    teacher = (answers / temperature).log_softmax(dim=-1)
    apart = F.kl_div(student, teacher, reduction="batchmean", log_target=True)
    return 0.5 * F.cross_entropy(cls_logits, labels) + 0.5 * temperature**2 * apart


@cache
def train_teacher(seed: int, profile: Profile) -> SmallCNN:
    """Train the teacher, once for all arms of a seed."""
    torch.manual_seed(seed)
    teacher = SmallCNN(width=16)
    config = TrainConfig(epochs=cut(30, profile, 1), lr=3e-3, seed=seed, **FEW)
    train_and_measure(teacher, few_photographs(seed, profile), config, "", validation_images=10)
    return teacher.eval()
