"""Right answers to 4.2 train_one_epoch, and what becomes of its mutants."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from proof.reasons import AS_MANY_LABELS, RESULTS_SURVIVORS, TENSOR_AS_NUMBER


def with_tensors(model, batches, optimizer, scheduler):
    model.train()
    model.zero_grad(set_to_none=True)
    losses, hits = [], []
    for images, labels in batches:
        logits = model(images)
        each = F.cross_entropy(logits, labels, reduction="none")
        each.mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        scheduler.step()
        losses.append(each.detach())
        hits.append(logits.argmax(1) == labels)
    return torch.cat(losses).mean(), torch.cat(hits).float().mean()


def clipping_by_hand(model, batches, optimizer, scheduler):
    for module in model.modules():
        module.training = True
    sums = np.zeros(3)
    for images, labels in iter(batches):
        logits = model(images)
        loss = nn.CrossEntropyLoss()(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        norm = sum(float((g**2).sum()) for g in gradients) ** 0.5
        if norm > 1.0:
            for gradient in gradients:
                gradient.mul_(1.0 / (norm + 1e-6))
        optimizer.step()
        scheduler.step()
        right = int(torch.eq(logits.max(dim=1).indices, labels).sum())
        sums += [float(loss) * labels.shape[0], right, labels.shape[0]]
    return sums[0] / sums[2], sums[1] / sums[2]


def by_running_mean(model, batches, optimizer, scheduler):
    was = model.training
    model.train(True)
    mean_loss = accuracy = torch.zeros(())
    seen = 0
    parameters = list(model.parameters())
    for images, labels in batches:
        logits = model(images)
        loss = (logits.logsumexp(1) - logits[torch.arange(len(labels)), labels]).mean()
        gradients = torch.autograd.grad(loss, parameters)
        factor = (1 / torch.cat([g.flatten() for g in gradients]).norm()).clamp(max=1.0)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient * factor
        optimizer.step()
        scheduler.step()
        seen += len(labels)
        share = len(labels) / seen
        mean_loss = mean_loss + share * (loss.detach() - mean_loss)
        accuracy = accuracy + share * ((logits.argmax(-1) == labels).double().mean() - accuracy)
    model.train(was)
    return [mean_loss.item(), accuracy.numpy()]


def with_closure(model, batches, optimizer, scheduler):
    model.train()
    table = []
    for images, labels in batches:

        def closure(images=images, labels=labels):
            for parameter in model.parameters():
                parameter.grad = None
            logits = model(images)
            loss = F.nll_loss(logits.log_softmax(1), labels, reduction="sum") / len(labels)
            loss.backward()
            nn.utils.clip_grad_norm_(list(model.parameters()), max_norm=1)
            hits = (logits.argmax(1) == labels).sum()
            table.append((loss.item() * len(labels), int(hits), len(labels)))
            return loss

        optimizer.step(closure)
        scheduler.step()
    losses, hits, sizes = map(sum, zip(*table, strict=True))
    return losses / sizes, hits / sizes


EQUIVALENT = {
    **RESULTS_SURVIVORS,
    AS_MANY_LABELS: ("total_loss += loss.item() * len(images)", "seen += len(images)"),
}


LEFT_OPEN = {
    "cleared gradients differ only where model and optimizer hold different parameters": (
        "model.zero_grad()",
    ),
    TENSOR_AS_NUMBER: ("correct += (logits.argmax(dim=-1) == labels).sum()",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "model.training",
    "not model.training",
    "isinstance(batches, list) and len(batches) == 1",
)
