"""Right answers, chapter 04: training."""

import math
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn


# ----------------------------------------------------------- cross_entropy


def cross_entropy__gather(logits, labels, label_smoothing=0.0):
    log_p = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    nll = -log_p.gather(1, labels.long().unsqueeze(1)).squeeze(1)
    smooth = -log_p.mean(dim=1)
    return ((1 - label_smoothing) * nll + label_smoothing * smooth).mean()


def cross_entropy__onehot(logits, labels, label_smoothing=0.0):
    K = logits.shape[-1]
    target = F.one_hot(labels, K).to(logits.dtype)
    target = (1 - label_smoothing) * target + label_smoothing / K
    return -(target * F.log_softmax(logits, dim=-1)).sum(dim=-1).mean()


def cross_entropy__nll(logits, labels, label_smoothing=0.0):
    logp = torch.log_softmax(logits, dim=-1)
    loss = F.nll_loss(logp, labels)
    if label_smoothing > 0:
        loss = (1 - label_smoothing) * loss - label_smoothing * logp.mean()
    return loss


def cross_entropy__loops(logits, labels, label_smoothing=0.0):
    B, K = logits.shape
    total = 0.0
    for i in range(B):
        shifted = logits[i] - logits[i].max()
        log_p = shifted - torch.log(torch.exp(shifted).sum())
        target = torch.full_like(log_p, label_smoothing / K)
        target[labels[i]] += 1 - label_smoothing
        total = total - (target * log_p).sum()
    return total / B


# ----------------------------------------------------------- warmup_cosine


def warmup_cosine__plain(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    progress = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(math.pi * progress))


def warmup_cosine__blend(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    current = step + 1
    if current <= warmup_steps:
        lr = peak_lr * current / warmup_steps
    else:
        done = (current - warmup_steps) / (total_steps - warmup_steps)
        share = (1 - math.cos(math.pi * done)) / 2  # 0 at the peak, 1 at the end
        lr = peak_lr * (1 - share) + final_lr * share
    return lr


def warmup_cosine__torch(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    t = torch.tensor((step + 1 - warmup_steps) / (total_steps - warmup_steps), dtype=torch.float64)
    return float(peak_lr - (peak_lr - final_lr) * torch.sin(t * math.pi / 2) ** 2)


# ----------------------------------------------------- weight_decay_groups


def weight_decay_groups__names(model, weight_decay):
    decay, no_decay = [], []
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2 or name.endswith(("cls_token", "pos_embed")):
            no_decay.append(parameter)
        else:
            decay.append(parameter)
    return [
        {"params": decay, "weight_decay": weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
    ]


def weight_decay_groups__comprehension(model, weight_decay):
    def decays(name, p):
        last = name.split(".")[-1]
        return p.dim() >= 2 and last not in {"cls_token", "pos_embed", "bias"}

    named = list(model.named_parameters())
    return [
        dict(params=[p for n, p in named if decays(n, p)], weight_decay=weight_decay),
        dict(params=[p for n, p in named if not decays(n, p)], weight_decay=0.0),
    ]


def weight_decay_groups__modules(model, weight_decay):
    groups = [{"params": [], "weight_decay": weight_decay}, {"params": [], "weight_decay": 0.0}]
    seen = set()
    norms = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._BatchNorm)
    for module in model.modules():
        for name, p in module.named_parameters(recurse=False):
            if id(p) in seen:
                continue
            seen.add(id(p))
            exempt = (
                name in ("bias", "cls_token", "pos_embed")
                or isinstance(module, norms)
                or p.ndim <= 1
            )
            groups[1 if exempt else 0]["params"].append(p)
    return groups


# -------------------------------------------------------- random_crop_flip


def random_crop_flip__pad(images, padding, generator):
    B, C, H, W = images.shape
    padded = F.pad(
        images.float() if not images.is_floating_point() else images,
        (padding, padding, padding, padding),
        mode="reflect",
    ).to(images.dtype)
    out = []
    for i in range(B):
        top = torch.randint(
            0, 2 * padding + 1, (1,), generator=generator, device=generator.device
        ).item()
        left = torch.randint(
            0, 2 * padding + 1, (1,), generator=generator, device=generator.device
        ).item()
        coin = torch.rand(1, generator=generator, device=generator.device).item()
        window = padded[i, :, top : top + H, left : left + W]
        if coin < 0.5:
            window = window.flip(-1)
        out.append(window)
    return torch.stack(out)


def _reflect(index, size):
    index = index.abs()
    return (size - 1) - (size - 1 - index).abs()


def random_crop_flip__index(images, padding, generator):
    b, c, h, w = images.shape
    device = generator.device
    offsets = torch.randint(2 * padding + 1, (b, 2), generator=generator, device=device)
    flips = torch.randint(2, (b,), generator=generator, device=device).bool()
    offsets, flips = offsets.to(images.device), flips.to(images.device)
    rows = torch.arange(h, device=images.device) + offsets[:, :1] - padding  # (B, H)
    cols = torch.arange(w, device=images.device) + offsets[:, 1:] - padding  # (B, W)
    cols = torch.where(flips[:, None], cols.flip(1), cols)
    rows, cols = _reflect(rows, h), _reflect(cols, w)
    which = torch.arange(b, device=images.device)
    return images[
        which[:, None, None, None],
        torch.arange(c, device=images.device)[None, :, None, None],
        rows[:, None, :, None],
        cols[:, None, None, :],
    ]


def random_crop_flip__gather(images, padding, generator):
    B, C, H, W = images.shape

    def draw(high):
        return torch.randint(0, high, (B,), generator=generator, device=generator.device).to(
            images.device
        )

    top, left, coin = draw(2 * padding + 1), draw(2 * padding + 1), draw(2)
    ys = _reflect(torch.arange(H, device=images.device)[None] + top[:, None] - padding, H)
    xs = _reflect(torch.arange(W, device=images.device)[None] + left[:, None] - padding, W)
    cropped = images.gather(2, ys[:, None, :, None].expand(B, C, H, W))
    cropped = cropped.gather(3, xs[:, None, None, :].expand(B, C, H, W))
    return torch.where(coin.bool()[:, None, None, None], cropped.flip(-1), cropped)


# --------------------------------------------------------- train_one_epoch


def train_one_epoch__plain(model, batches, optimizer, scheduler):
    model.train()
    total_loss, correct, seen = 0.0, 0, 0
    for images, labels in batches:
        optimizer.zero_grad()
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total_loss += loss.item() * len(labels)
        correct += (logits.argmax(dim=1) == labels).sum().item()
        seen += len(labels)
    return total_loss / seen, correct / seen


def train_one_epoch__lists(model, batches, optimizer, scheduler):
    model.train()
    losses, hits, sizes = [], [], []
    for x, y in batches:
        model.zero_grad()
        prediction = model(x)
        loss = cross_entropy__gather(prediction, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
        hits.append((prediction.detach().argmax(-1) == y).float().mean())
        sizes.append(y.shape[0])
    weight = torch.tensor(sizes, dtype=torch.float64)
    loss_values = torch.stack(losses).double().cpu()
    hit_values = torch.stack(hits).double().cpu()
    return (
        float((loss_values * weight).sum() / weight.sum()),
        float((hit_values * weight).sum() / weight.sum()),
    )


class _Meter:
    def __init__(self):
        self.loss = self.hits = self.count = 0

    def add(self, logits, labels):
        self.loss += float(cross_entropy__onehot(logits.detach(), labels)) * labels.numel()
        self.hits += int((logits.argmax(-1) == labels).sum())
        self.count += labels.numel()

    def result(self):
        return self.loss / self.count, self.hits / self.count


def train_one_epoch__meter(model, batches, optimizer, scheduler):
    meter = _Meter()
    model.train(True)
    for batch in batches:
        images, labels = batch
        optimizer.zero_grad(set_to_none=True)
        logits = model(images)
        meter.add(logits, labels)
        # a sum over the images divided by their number
        loss = F.cross_entropy(logits, labels, reduction="sum") / labels.numel()
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], 1.0)
        optimizer.step()
        scheduler.step()
    return meter.result()


# ---------------------------------------------------------------- evaluate


@torch.no_grad()
def evaluate__decorator(model, batches):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    total_loss = 0.0
    correct = 0
    n = 0
    for images, labels in batches:
        logits = model(images)
        total_loss += F.cross_entropy(logits, labels, reduction="sum").item()
        correct += (logits.argmax(1) == labels).sum().item()
        n += images.shape[0]
    for module, mode in modes.items():
        module.training = mode
    return total_loss / n, correct / n


@contextmanager
def _eval_mode(model):
    before = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        yield model
    finally:
        for m, training in before:
            m.training = training


def evaluate__context(model, batches):
    meter = _Meter()
    with _eval_mode(model), torch.inference_mode():
        for images, labels in batches:
            meter.add(model(images), labels)
    return meter.result()


def evaluate__concat(model, batches):
    was_training = [m.training for m in model.modules()]
    model.eval()
    all_logits, all_labels = [], []
    try:
        with torch.no_grad():
            for x, y in batches:
                all_logits.append(model(x))
                all_labels.append(y)
    finally:
        for m, flag in zip(model.modules(), was_training):
            m.training = flag
    logits, labels = torch.cat(all_logits), torch.cat(all_labels)
    loss = cross_entropy__gather(logits, labels)
    accuracy = (logits.argmax(dim=-1) == labels).double().mean()
    return loss.item(), accuracy.item()


# ----------------------------------------------------------- orthogonalise


def orthogonalise__plain(matrix, steps=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    X = matrix / (matrix.norm() + 1e-7)
    tall = matrix.shape[0] > matrix.shape[1]
    if tall:
        X = X.T
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X.T if tall else X


def orthogonalise__einsum(matrix, steps=5):
    m, n = matrix.shape
    x = matrix.transpose(0, 1) if m > n else matrix
    x = x / (torch.sqrt((x**2).sum()) + 1e-7)
    for _ in range(steps):
        gram = torch.einsum("ik,jk->ij", x, x)
        gram2 = torch.einsum("ij,jk->ik", gram, gram)
        x = 3.4445 * x + torch.einsum("ij,jk->ik", -4.7750 * gram + 2.0315 * gram2, x)
    return x.transpose(0, 1) if m > n else x


def orthogonalise__addmm(matrix, steps=5):
    if matrix.size(0) > matrix.size(1):
        return orthogonalise__addmm(matrix.T, steps).T
    X = matrix.double()
    X = X / (torch.linalg.matrix_norm(X) + 1e-7)
    for _ in range(steps):
        A = X.mm(X.T)
        B = torch.addmm(A, A, A, beta=-4.7750, alpha=2.0315)
        X = torch.addmm(X, B, X, beta=3.4445)
    return X.to(matrix.dtype)
