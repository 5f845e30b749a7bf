"""Right answers to 7.4 dino_loss, and what becomes of its mutants."""

import torch
import torch.nn.functional as F


def by_cross_entropy(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    with torch.no_grad():
        target = F.softmax((teacher_logits - center[None]) / teacher_temperature, dim=1)
    return F.cross_entropy(student_logits / student_temperature, target)


def by_loop(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    losses = []
    for s, t in zip(student_logits / student_temperature, teacher_logits.detach(), strict=True):
        t = (t - center.detach()) / teacher_temperature
        p = torch.exp(t - t.max()) / torch.exp(t - t.max()).sum()
        losses.append(torch.logsumexp(s, 0) - (p * s).sum())
    return torch.stack(losses).mean()


def by_einsum(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    target = torch.softmax((teacher_logits.detach() - center.detach()) / teacher_temperature, -1)
    log_p = F.log_softmax(student_logits / student_temperature, -1)
    return -torch.einsum("bk,bk->", target, log_p) / len(log_p)


def by_divergence(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    log_target = ((teacher_logits - center) / teacher_temperature).log_softmax(1).detach()
    log_p = (student_logits / student_temperature).log_softmax(1)
    distance = F.kl_div(log_p, log_target, reduction="batchmean", log_target=True)
    return distance - (log_target.exp() * log_target).sum(1).mean()


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(student_logits) == 1",
    "student_logits.shape[0] == student_logits.shape[1]",
)
