"""Right answers to 4.1 cross_entropy, and what becomes of its mutants."""

import torch
import torch.nn.functional as F


def by_nll(logits, labels, label_smoothing=0.0):
    log_probs = F.log_softmax(logits, dim=1)
    uniform = -log_probs.sum(1).mean() / logits.size(1)
    return (1 - label_smoothing) * F.nll_loss(log_probs, labels) + label_smoothing * uniform


def by_target_table(logits, labels, label_smoothing=0.0):
    K = logits.shape[-1]
    target = torch.full_like(logits, label_smoothing / K)
    target[torch.arange(len(labels)), labels] += 1 - label_smoothing
    shifted = logits - logits.max(dim=-1, keepdim=True).values
    return (target * (shifted.exp().sum(-1, keepdim=True).log() - shifted)).sum(-1).mean()


def by_loop(logits, labels, label_smoothing=0.0):
    losses = []
    for row, label in zip(logits, labels, strict=True):
        prices = torch.logsumexp(row, 0) - row
        losses.append(prices[label] * (1 - label_smoothing) + label_smoothing * prices.mean())
    return torch.stack(losses).mean()


def in_float64(logits, labels, label_smoothing=0.0):
    exact = logits.double()
    one_hot = F.one_hot(labels, exact.shape[1]).double()
    target = (1 - label_smoothing) * one_hot + label_smoothing / exact.shape[1]
    loss = exact.logsumexp(1).sum() - torch.einsum("bk,bk->", target, exact)
    return (loss / len(exact)).to(logits.dtype)


def by_divergence(logits, labels, label_smoothing=0.0):
    eye = torch.eye(logits.shape[1], dtype=logits.dtype, device=logits.device)
    target = torch.lerp(eye, torch.full_like(eye, 1 / len(eye)), label_smoothing)[labels]
    divergence = F.kl_div(logits.log_softmax(-1), target, reduction="batchmean")
    return divergence - torch.xlogy(target, target).sum() / len(target)


EQUIVALENT = {
    "the mean over all pairs (i, j) of a_i + b_j is the mean of a plus that of b": (
        "log_probs.mean()",
        ".squeeze(0)",
        ".squeeze(-2)",
        ".squeeze()",
        "(1, labels.long().unsqueeze(1)).unsqueeze",
        "on_label = -log_probs.gather(1, labels.long().unsqueeze(1))",
    ),
}


LEFT_OPEN = {
    "labels of a smaller integer type than int64 are not asked for": ("labels.unsqueeze",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(labels) == 1",
    "logits.shape[1] == 2",
    "logits.shape[0] == logits.shape[1]",
    "label_smoothing == 0",
    "label_smoothing == 1",
)
