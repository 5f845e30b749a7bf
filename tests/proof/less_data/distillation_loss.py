"""Right answers to 7.8 distillation_loss, and what becomes of its mutants."""

import torch
import torch.nn.functional as F


def by_log_softmax(cls_logits, dist_logits, teacher_logits, labels):
    rows = torch.arange(len(labels), device=labels.device)
    own = cls_logits.log_softmax(dim=1)[rows, labels]
    copied = dist_logits.log_softmax(dim=1)[rows, teacher_logits.max(dim=1).indices]
    return -(own + copied).mean() / 2


def by_loop(cls_logits, dist_logits, teacher_logits, labels):
    total = 0
    for c, d, t, label in zip(cls_logits, dist_logits, teacher_logits, labels, strict=True):
        total = total + torch.logsumexp(c, 0) - c[label] + torch.logsumexp(d, 0) - d[t.argmax()]
    return total / (2 * len(labels))


def stacked(cls_logits, dist_logits, teacher_logits, labels):
    with torch.no_grad():
        said = torch.argmax(teacher_logits, 1)
    return F.cross_entropy(torch.cat([cls_logits, dist_logits]), torch.cat([labels, said]))


def by_one_hot(cls_logits, dist_logits, teacher_logits, labels):
    K = cls_logits.shape[-1]
    own = F.one_hot(labels, K).to(cls_logits.dtype)
    said = F.one_hot(teacher_logits.detach().softmax(-1).topk(1).indices[:, 0], K).to(own)
    losses = (own * F.log_softmax(cls_logits, -1) + said * F.log_softmax(dist_logits, -1)).sum(-1)
    return -0.5 * losses.mean()


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(labels) == 1",
    "cls_logits.shape[1] == 2",
    "len(labels) == cls_logits.shape[1]",
)
