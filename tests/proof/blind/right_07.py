"""Right answers, chapter 07: less data."""

import torch
import torch.nn.functional as F


# ------------------------------------------------------------------- mixup


def mixup__plain(images, labels, num_classes, lam, permutation):
    mixed = lam * images + (1 - lam) * images[permutation]
    soft = F.one_hot(labels, num_classes).to(images.dtype)
    soft = lam * soft + (1 - lam) * soft[permutation]
    return mixed, soft


def mixup__lerp(images, labels, num_classes, lam, permutation):
    targets = torch.zeros(len(labels), num_classes, dtype=images.dtype, device=images.device)
    targets.scatter_(1, labels.unsqueeze(1), 1.0)
    return (
        torch.lerp(images[permutation], images, lam),
        torch.lerp(targets[permutation], targets, lam),
    )


def mixup__loops(images, labels, num_classes, lam, permutation):
    new_images, new_labels = [], []
    for i in range(images.shape[0]):
        j = int(permutation[i])
        new_images.append(images[i] * lam + images[j] * (1 - lam))
        row = torch.zeros(num_classes, dtype=images.dtype, device=images.device)
        row[labels[i]] += lam
        row[labels[j]] += 1 - lam
        new_labels.append(row)
    return torch.stack(new_images), torch.stack(new_labels)


# ------------------------------------------------------------------ cutmix


def cutmix__slice(images, labels, num_classes, box, permutation):
    H, W = images.shape[-2:]
    top, left, bottom, right = box
    top, bottom = max(0, min(top, H)), max(0, min(bottom, H))
    left, right = max(0, min(left, W)), max(0, min(right, W))
    out = images.clone()
    area = 0
    if bottom > top and right > left:
        out[:, :, top:bottom, left:right] = images[permutation][:, :, top:bottom, left:right]
        area = (bottom - top) * (right - left)
    share = area / (H * W)
    dtype = images.dtype if images.is_floating_point() else torch.float32
    onehot = F.one_hot(labels, num_classes).to(dtype)
    return out, (1 - share) * onehot + share * onehot[permutation]


def cutmix__mask(images, labels, num_classes, box, permutation):
    top, left, bottom, right = box
    height, width = images.shape[-2:]
    y = torch.arange(height, device=images.device).unsqueeze(1)
    x = torch.arange(width, device=images.device).unsqueeze(0)
    inside = (y >= top) & (y < bottom) & (x >= left) & (x < right)
    mixed = torch.where(inside, images[permutation], images)
    pasted = inside.sum().item() / inside.numel()
    soft = torch.eye(num_classes, device=images.device)[labels]
    if images.dtype.is_floating_point:
        soft = soft.to(images.dtype)
    return mixed, soft * (1 - pasted) + soft[permutation] * pasted


def cutmix__loops(images, labels, num_classes, box, permutation):
    B, C, H, W = images.shape
    rows = range(max(box[0], 0), min(box[2], H))
    cols = range(max(box[1], 0), min(box[3], W))
    count = len(rows) * len(cols)
    dtype = torch.float32 if images.dtype == torch.uint8 else images.dtype
    pictures = images.clone()
    targets = torch.zeros(B, num_classes, dtype=dtype, device=images.device)
    for i in range(B):
        partner = int(permutation[i])
        for r in rows:
            for c in cols:
                pictures[i, :, r, c] = images[partner, :, r, c]
        targets[i, labels[i]] += 1 - count / (H * W)
        targets[i, labels[partner]] += count / (H * W)
    return pictures, targets


# --------------------------------------------------------------- drop_path


def drop_path__bernoulli(x, drop_prob, training, generator=None):
    if not 0 <= drop_prob < 1:
        raise ValueError(f"drop_prob must be in [0, 1), got {drop_prob}")
    if not training or drop_prob == 0:
        return x
    keep = 1 - drop_prob
    device = x.device if generator is None else generator.device
    mask = torch.full((x.shape[0],) + (1,) * (x.ndim - 1), keep, device=device)
    mask = torch.bernoulli(mask, generator=generator).to(device=x.device, dtype=x.dtype)
    return x * mask / keep


def drop_path__floor(x, drop_prob, training, generator=None):
    if drop_prob < 0 or drop_prob >= 1:
        raise ValueError("drop_prob %r is not in [0, 1)" % drop_prob)
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1.0 - drop_prob
    shape = [x.size(0)] + [1] * (x.dim() - 1)
    where = generator.device if generator is not None else x.device
    random = torch.rand(shape, generator=generator, device=where)
    survives = torch.floor(random + keep_prob).to(x)
    return x.div(keep_prob) * survives


def drop_path__loops(x, drop_prob, training, generator=None):
    if not (0 <= drop_prob < 1):
        raise ValueError(f"0 <= drop_prob < 1 does not hold for {drop_prob}")
    if not training or drop_prob == 0:
        return x
    device = generator.device if generator else x.device
    draws = torch.rand(len(x), generator=generator, device=device)
    samples = []
    for sample, draw in zip(x, draws.tolist()):
        if draw < drop_prob:
            samples.append(torch.zeros_like(sample))
        else:
            samples.append(sample / (1 - drop_prob))
    return torch.stack(samples)


# ------------------------------------------------------- distillation_loss


def distillation_loss__builtin(cls_logits, dist_logits, teacher_logits, labels):
    teacher_labels = teacher_logits.argmax(dim=-1)
    return 0.5 * F.cross_entropy(cls_logits, labels) + 0.5 * F.cross_entropy(
        dist_logits, teacher_labels
    )


def _nll(logits, targets):
    logp = logits - logits.logsumexp(dim=-1, keepdim=True)
    return -logp[torch.arange(len(targets), device=logits.device), targets].mean()


def distillation_loss__own(cls_logits, dist_logits, teacher_logits, labels):
    with torch.no_grad():
        hard = teacher_logits.max(dim=1).indices
    return (_nll(cls_logits, labels) + _nll(dist_logits, hard)) / 2


def distillation_loss__onehot(cls_logits, dist_logits, teacher_logits, labels):
    K = cls_logits.shape[-1]
    truth = F.one_hot(labels, K)
    opinion = F.one_hot(torch.argmax(teacher_logits.detach(), -1), K)
    label_loss = -(truth * F.log_softmax(cls_logits, -1)).sum(-1)
    teacher_loss = -(opinion * F.log_softmax(dist_logits, -1)).sum(-1)
    return torch.mean(0.5 * label_loss + 0.5 * teacher_loss)


# ---------------------------------------------------------- random_masking


def random_masking__argsort(tokens, mask_ratio, noise):
    B, N, D = tokens.shape
    M = round(N * (1 - mask_ratio))
    shuffle = noise.argsort(dim=1)
    restore = shuffle.argsort(dim=1)
    kept = tokens.gather(1, shuffle[:, :M].unsqueeze(-1).expand(-1, -1, D))
    mask = torch.ones(B, N, dtype=tokens.dtype, device=tokens.device)
    mask[:, :M] = 0
    mask = mask.gather(1, restore)
    return kept, mask, restore


def random_masking__scatter(tokens, mask_ratio, noise):
    b, n, _ = tokens.shape
    keep = int(round(n * (1.0 - mask_ratio)))
    order = torch.sort(noise, dim=1, stable=True).indices
    kept_ids = order[:, :keep]
    kept = torch.take_along_dim(tokens, kept_ids[..., None], dim=1)
    mask = tokens.new_ones(b, n).scatter(1, kept_ids, 0.0)
    places = torch.arange(n, device=tokens.device).expand(b, n)
    restore = torch.empty_like(order).scatter_(1, order, places)
    return kept, mask, restore


def random_masking__loops(tokens, mask_ratio, noise):
    B, N, D = tokens.shape
    M = round(N * (1 - mask_ratio))
    kept, mask, restore = [], [], []
    for b in range(B):
        values = noise[b].tolist()
        order = sorted(range(N), key=lambda i: values[i])
        place = [0] * N
        for position, token in enumerate(order):
            place[token] = position
        kept.append(tokens[b, order[:M]])
        mask.append([1.0 if p >= M else 0.0 for p in place])
        restore.append(place)
    mask = torch.tensor(mask, dtype=tokens.dtype, device=tokens.device)
    restore = torch.tensor(restore, device=tokens.device)
    return torch.stack(kept), mask, restore


# ------------------------------------------------------- masked_patch_loss


def masked_patch_loss__weighted(prediction, target, mask):
    error = ((prediction - target) ** 2).mean(dim=-1)  # (B, N)
    mask = mask.to(error.dtype)
    return (error * mask).sum() / mask.sum()


def masked_patch_loss__select(prediction, target, mask):
    hidden = mask.bool()
    return F.mse_loss(prediction[hidden], target[hidden])


def masked_patch_loss__loops(prediction, target, mask):
    losses = []
    for b in range(prediction.shape[0]):
        for n in range(prediction.shape[1]):
            if mask[b, n] > 0:
                losses.append((prediction[b, n] - target[b, n]).square().mean())
    return sum(losses) / len(losses)


# --------------------------------------------------------------- dino_loss


def dino_loss__detach(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    teacher = F.softmax((teacher_logits - center) / teacher_temperature, dim=-1).detach()
    student = F.log_softmax(student_logits / student_temperature, dim=-1)
    return -(teacher * student).sum(dim=-1).mean()


def dino_loss__nograd(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    with torch.no_grad():
        sharpened = (teacher_logits - center) / teacher_temperature
        sharpened = sharpened - sharpened.amax(dim=1, keepdim=True)
        p_t = sharpened.exp()
        p_t = p_t / p_t.sum(dim=1, keepdim=True)
    s = student_logits / student_temperature
    log_p_s = s - torch.logsumexp(s, dim=1, keepdim=True)
    return torch.einsum("bk,bk->b", p_t, -log_p_s).mean()


def dino_loss__soft_targets(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    targets = torch.softmax(
        (teacher_logits.detach() - center.detach()) / teacher_temperature, dim=1
    )
    return F.cross_entropy(student_logits / student_temperature, targets)
