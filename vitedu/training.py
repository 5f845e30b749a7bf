"""Notebook 04: from pixels to a classifier.

Role: the loss, the schedule, the parameter groups, the augmentation, one plain epoch and the heart
of Muon, each as a student writes it. The loop that people use for whole runs stands in
``vitedu.fitting``. Nothing here knows what a ViT is.

Legend: B batch, C H W image, K classes.

References: Loshchilov and Hutter 2017, "SGDR" (arXiv 1608.03983) and 2019, "Decoupled Weight Decay
Regularization" (arXiv 1711.05101); Szegedy et al. 2016, section 7 (arXiv 1512.00567); Goyal et al.
2017, section 2.2 (arXiv 1706.02677).
"""

import math

import torch
from torch import nn

# ten classes, s = 0.1: the entropy of the target, 0.91 on the label and 0.01 on each other class
smoothing_floor = -(0.91 * math.log(0.91) + 9 * 0.01 * math.log(0.01))

views_of_one_image = 2 * (2 * 4 + 1) ** 2  # padding 4: 9 tops, 9 lefts, mirrored or not

last_batch_weight = 128 / (10_000 % 128)  # an image of the last batch against one of a full batch


def cross_entropy(
    logits: torch.Tensor, labels: torch.Tensor, label_smoothing: float = 0.0
) -> torch.Tensor:
    """Price the probability that a model gave to the truth.

    Args:
        logits: (B, K).
        labels: (B,) integers in 0 .. K-1.
        label_smoothing: s in [0, 1]; the target is ``1-s`` on the label plus ``s/K`` on every
            class.

    Returns:
        The mean over the batch of ``-sum(target * log_softmax(logits))``, a 0-d tensor.

    Example:
        >>> cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]))
        tensor(1.3863)

    Reference: Szegedy et al. 2016, section 7.
    """
    log_probs = logits - logits.logsumexp(dim=-1, keepdim=True)  # (B, K)
    on_label = -log_probs.gather(1, labels.long().unsqueeze(1)).squeeze(1)  # (B, K) -> (B,)
    on_all = -log_probs.mean(dim=-1)  # (B, K) -> (B,)
    return ((1 - label_smoothing) * on_label + label_smoothing * on_all).mean()


def warmup_cosine(
    step: int, total_steps: int, warmup_steps: int, peak_lr: float, final_lr: float = 0.0
) -> float:
    """Give the learning rate of one step: a linear climb, then half a cosine down.

    Args:
        step: 0 .. total_steps-1.
        total_steps: steps of the whole run.
        warmup_steps: steps of the climb, 0 for none; the peak is met at ``warmup_steps-1``.
        peak_lr: the largest learning rate.
        final_lr: the learning rate of the last step.

    Returns:
        The learning rate used at ``step``.

    Example:
        >>> [warmup_cosine(step, 6, 2, peak_lr=1.0) for step in (0, 1, 3, 5)]
        [0.5, 1.0, 0.5, 0.0]

    Reference: Loshchilov and Hutter 2017, equation 5; Goyal et al. 2017, section 2.2.
    """
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    progress = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * 0.5 * (1 + math.cos(math.pi * progress))


def weight_decay_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Sort parameters into those that weight decay shrinks and those it leaves alone.

    Shrinking a matrix regularises; shrinking a bias, a norm's scale or a position only biases it to
    0.

    Args:
        model: any module.
        weight_decay: for matrices and convolution kernels.

    Returns:
        Two AdamW groups, ``{"params": [...], "weight_decay": ...}``, the decayed first. Biases,
        norms, ``cls_token`` and ``pos_embed`` are in the second, with 0. Every parameter stands in
        exactly one.

    Example:
        >>> groups = weight_decay_groups(nn.Linear(3, 2), weight_decay=0.1)
        >>> [(len(group["params"]), group["weight_decay"]) for group in groups]
        [(1, 0.1), (1, 0.0)]

    Reference: Loshchilov and Hutter 2019; the exceptions are timm's.
    """
    decay, no_decay = [], []
    for name, parameter in model.named_parameters():
        is_token = name.split(".")[-1] in ("cls_token", "pos_embed")
        group = no_decay if parameter.ndim < 2 or is_token else decay
        group.append(parameter)
    return [
        {"params": decay, "weight_decay": weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
    ]


def random_crop_flip(
    images: torch.Tensor, padding: int, generator: torch.Generator
) -> torch.Tensor:
    """Shift every image a little and mirror every second one, each by its own draw.

    Args:
        images: (B, C, H, W), any dtype.
        padding: p, the reflected border in pixels, smaller than H and W.
        generator: the source of all draws; it may live on the CPU while the images do not.

    Returns:
        (B, C, H, W): from the padded image (H+2p, W+2p) a window whose top and left are drawn from
        0 .. 2p, both ends included, mirrored left to right with probability 1/2.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> random_crop_flip(torch.zeros(8, 3, 32, 32, dtype=torch.uint8), 4, generator).shape
        torch.Size([8, 3, 32, 32])
    """
    B, C, H, W = images.shape
    draw = {"generator": generator, "device": generator.device}
    top = torch.randint(0, 2 * padding + 1, (B, 1), **draw).to(images.device)
    left = torch.randint(0, 2 * padding + 1, (B, 1), **draw).to(images.device)
    flip = (torch.rand(B, 1, **draw) < 0.5).to(images.device)

    rows = top + torch.arange(H, device=images.device) - padding  # (B, H), some outside the image
    columns = left + torch.arange(W, device=images.device) - padding  # (B, W)
    columns = torch.where(flip, columns.flip(1), columns)
    rows, columns = reflect(rows, H), reflect(columns, W)
    batch = torch.arange(B, device=images.device)
    picked = images[batch[:, None, None], :, rows[:, :, None], columns[:, None, :]]  # (B, H, W, C)
    return picked.permute(0, 3, 1, 2).contiguous()  # -> (B, C, H, W)


def reflect(index: torch.Tensor, size: int) -> torch.Tensor:
    """Mirror indices that fell off either end of ``0 .. size-1``; the edge is not repeated."""
    index = index.abs()
    return torch.where(index < size, index, 2 * (size - 1) - index)


def train_one_epoch(model: nn.Module, batches, optimizer, scheduler) -> tuple[float, float]:
    """Learn once from every batch.

    Args:
        model: maps images to logits (B, K).
        batches: any iterable of (images, labels), read once.
        optimizer: stepped once for each batch, on gradients clipped to norm 1.
        scheduler: stepped once for each batch, after the optimizer.

    Returns:
        (mean loss, accuracy in [0, 1]) over all images, each measured before the update it caused.
    """
    model.train()
    total_loss, correct, seen = 0.0, 0, 0
    for images, labels in batches:
        optimizer.zero_grad()
        logits = model(images)
        loss = cross_entropy(logits, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        total_loss += loss.item() * len(labels)  # a short last batch counts for what it holds
        correct += (logits.argmax(dim=-1) == labels).sum().item()
        seen += len(labels)
    return total_loss / seen, correct / seen


@torch.no_grad()
def evaluate(model: nn.Module, batches) -> tuple[float, float]:
    """Measure a model without changing it.

    Args:
        model: maps images to logits (B, K).
        batches: any iterable of (images, labels), read once.

    Returns:
        (mean loss, accuracy in [0, 1]) over all images. Afterwards the model is in the mode in
        which it came.
    """
    modes = {module: module.training for module in model.modules()}
    model.eval()
    total_loss, correct, seen = 0.0, 0, 0
    for images, labels in batches:
        logits = model(images)
        total_loss += cross_entropy(logits, labels).item() * len(labels)
        correct += (logits.argmax(dim=-1) == labels).sum().item()
        seen += len(labels)
    for module, training in modes.items():
        module.training = training
    return total_loss / seen, correct / seen


def orthogonalise(matrix: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Bring the singular values of a matrix close to 1 and keep its directions.

    A gradient has a few strong directions and many weak ones. Muon steps about as far along each.

    Args:
        matrix: (m, n), left unchanged.
        steps: rounds of matrix products; none gives the normed matrix.

    Returns:
        (m, n). Five steps bring singular values between 0.5 and 1.5. Tiny ones stay below.

    Example:
        >>> orthogonalise(torch.diag(torch.tensor([1.0, 3.0]))).diag()
        tensor([1.1337, 0.7530])

    Reference: Jordan et al. 2024, Muon, https://kellerjordan.github.io/posts/muon/.
    """
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if is_tall else matrix  # (m, n) with m <= n: the products are m x m
    x = x / x.norm().clamp(min=1e-7)  # then no singular value is above 1
    a, b, c = 3.4445, -4.7750, 2.0315  # of x, x^3 and x^5
    for _ in range(steps):
        gram = x @ x.T  # A = X X^T, (m, m)
        change = torch.addmm(gram, gram, gram, beta=b, alpha=c)  # b A + c A A
        x = torch.addmm(x, change, x, beta=a)  # a X + (b A + c A A) X
    return x.T if is_tall else x
