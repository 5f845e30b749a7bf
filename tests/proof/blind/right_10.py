"""Right answers of ten exercises, written anew from the text of the notebooks."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def add_class_token_and_positions__assign(patch_tokens, cls_token, pos_embed):
    B, N, D = patch_tokens.shape
    first = cls_token.reshape(1, 1, D) + pos_embed[:, :1]
    return torch.cat((first.repeat(B, 1, 1), patch_tokens + pos_embed[:, 1:]), 1)


def add_class_token_and_positions__per_image(patch_tokens, cls_token, pos_embed):
    images = []
    for tokens in patch_tokens:
        images.append(torch.vstack([cls_token[0], tokens]) + pos_embed[0])
    return torch.stack(images)


def add_class_token_and_positions__pad(patch_tokens, cls_token, pos_embed):
    shifted = F.pad(patch_tokens, (0, 0, 1, 0))
    is_first = torch.zeros_like(pos_embed)
    is_first[:, 0] = 1
    return shifted + is_first * cls_token + pos_embed


def add_class_token_and_positions__expand_as(patch_tokens, cls_token, pos_embed):
    cls = cls_token.expand_as(patch_tokens[:, :1])
    return torch.concat([cls, patch_tokens], dim=-2).add(pos_embed)


def softmax__movedim(x, dim=-1):
    x = x.movedim(dim, 0)
    e = torch.exp(x - x.max(dim=0)[0])
    return (e / e.sum(0)).movedim(0, dim)


def softmax__of_difference(x, dim=-1):
    log_total = x.logsumexp(dim).unsqueeze(dim)
    return (x - log_total).exp()


def softmax__sorted(x, dim=-1):
    largest = torch.sort(x, dim=dim, descending=True)[0].narrow(dim, 0, 1)
    e = (x - largest).exp()
    return e.div(e.sum(dim, keepdim=True))


def softmax__detached_shift(x, dim=-1):
    with torch.no_grad():
        shift = torch.amax(x, dim, True)
    odds = torch.exp(x - shift)
    return odds * odds.sum(dim, True).reciprocal()


class Mlp__relu_free(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Mlp__formula(nn.Module):
    def __init__(self, embed_dim: int, hidden_dim: int, bias=True):
        super(Mlp__formula, self).__init__()
        self.fc1, self.fc2 = (
            nn.Linear(embed_dim, hidden_dim, bias),
            nn.Linear(hidden_dim, embed_dim, bias),
        )

    def forward(self, x):
        h = x @ self.fc1.weight.T + self.fc1.bias
        h = h * 0.5 * (1 + torch.erf(h / 2**0.5))
        return h @ self.fc2.weight.T + self.fc2.bias


class Mlp__erfc(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.fc2 = nn.Linear(hidden_dim, embed_dim)
        self.fc1 = nn.Linear(embed_dim, hidden_dim)

    def forward(self, x):
        x = self.fc1(x)
        x = x - x * torch.erfc(x / math.sqrt(2)) / 2
        x = self.fc2(x)
        return x


class Mlp__dropout_of_zero(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, embed_dim)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


def warmup_cosine__sine(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step + 1 <= warmup_steps:
        return (step + 1) / warmup_steps * peak_lr
    p = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return peak_lr - (peak_lr - final_lr) * math.sin(math.pi * p / 2) ** 2


def warmup_cosine__branches(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    done = step + 1
    if done == total_steps and done > warmup_steps:
        return final_lr
    if warmup_steps > 0 and step < warmup_steps:
        lr = peak_lr * done / warmup_steps
    else:
        share = (1 + math.cos(math.pi * (done - warmup_steps) / (total_steps - warmup_steps))) / 2
        lr = share * peak_lr + (1 - share) * final_lr
    return lr


def warmup_cosine__torch(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    progress = torch.tensor(
        (step + 1 - warmup_steps) / (total_steps - warmup_steps), dtype=torch.float64
    )
    return float(final_lr + 0.5 * (peak_lr - final_lr) * (1 + torch.cos(torch.pi * progress)))


def warmup_cosine__table(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    climb = [peak_lr * k / warmup_steps for k in range(1, warmup_steps + 1)]
    rest = total_steps - warmup_steps
    fall = [
        final_lr + (peak_lr - final_lr) * (1 + math.cos(math.pi * k / rest)) / 2
        for k in range(1, rest + 1)
    ]
    return (climb + fall)[step]


def confusion_matrix__loop(predictions, labels, num_classes):
    table = torch.zeros(num_classes, num_classes, dtype=torch.int64, device=labels.device)
    for p, t in zip(predictions, labels):
        table[t, p] += 1
    return table


def confusion_matrix__one_hot(predictions, labels, num_classes):
    truth, said = (F.one_hot(x, num_classes) for x in (labels, predictions))
    return (truth[:, :, None] * said[:, None, :]).sum(0)


def confusion_matrix__index_put(predictions, labels, num_classes):
    table = labels.new_zeros(num_classes, num_classes)
    return table.index_put((labels, predictions), torch.ones_like(labels), accumulate=True)


def confusion_matrix__compare(predictions, labels, num_classes):
    k = torch.arange(num_classes, device=labels.device)
    return torch.stack([((labels == t) & (predictions == k[:, None])).sum(1) for t in k])


def linear_cka__gram(x, y):
    n = len(x)
    centre = torch.eye(n, dtype=x.dtype, device=x.device) - 1 / n
    a, b = centre @ (x @ x.T) @ centre, centre @ (y @ y.T) @ centre
    return (a * b).sum() / (a.norm() * b.norm())


def linear_cka__einsum(x, y):
    x, y = (z - z.mean(0, keepdim=True) for z in (x, y))
    top = torch.einsum("np,nq->pq", x, y).pow(2).sum()
    return top / (torch.linalg.norm(x.mT @ x) * torch.linalg.norm(y.mT @ y))


def linear_cka__traces(x, y):
    x = x - x.sum(0) / len(x)
    y = y - y.sum(0) / len(y)
    c, a, b = y.T @ x, x.T @ x, y.T @ y
    return torch.trace(c @ c.T) / torch.sqrt(torch.trace(a @ a.T) * torch.trace(b @ b.T))


def linear_cka__cosine(x, y):
    grams = [(z - z.mean(0)) @ (z - z.mean(0)).T for z in (x, y)]
    return F.cosine_similarity(grams[0].flatten(), grams[1].flatten(), dim=0)


def masked_patch_loss__boolean(prediction, target, mask):
    mask = mask.bool()
    return (prediction[mask] - target[mask]).square().mean()


def masked_patch_loss__mse(prediction, target, mask):
    per_value = F.mse_loss(prediction, target, reduction="none")
    mask = mask.to(per_value)
    return torch.einsum("bnd,bn->", per_value, mask) / (mask.sum() * prediction.shape[-1])


def masked_patch_loss__where(prediction, target, mask):
    error = ((prediction - target) ** 2).mean(-1)
    return torch.where(mask.bool(), error, torch.zeros_like(error)).sum() / mask.bool().sum()


def masked_patch_loss__loop(prediction, target, mask):
    errors = [
        (p - t).pow(2).mean()
        for ps, ts, ms in zip(prediction, target, mask)
        for p, t, m in zip(ps, ts, ms)
        if m
    ]
    return sum(errors) / len(errors)


def window_partition__unfold(x, window_size):
    w, D = window_size, x.shape[-1]
    x = x.unfold(1, w, w).unfold(2, w, w)  # (B, gh/w, gw/w, D, w, w)
    return x.flatten(4).transpose(3, 4).reshape(-1, w * w, D)


def window_partition__slices(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    windows = [
        x[:, i : i + w, j : j + w].reshape(B, w * w, D)
        for i in range(0, gh, w)
        for j in range(0, gw, w)
    ]
    return torch.stack(windows, 1).flatten(0, 1)


def window_partition__split(x, window_size):
    rows = torch.stack(x.split(window_size, 1), 1)
    cells = torch.stack(rows.split(window_size, 3), 2)
    return cells.flatten(0, 2).flatten(1, 2)


def window_partition__index(x, window_size):
    B, gh, gw, D = x.shape
    places = torch.arange(gh * gw, device=x.device).reshape(
        gh // window_size, window_size, gw // window_size, window_size
    )
    places = places.transpose(1, 2).flatten()
    return x.reshape(B, gh * gw, D)[:, places].reshape(-1, window_size**2, D)


def clip_loss__by_hand(image_features, text_features, temperature):
    image = image_features / image_features.norm(dim=1, keepdim=True)
    text = text_features / text_features.norm(dim=1, keepdim=True)
    table = image @ text.T / temperature
    right = table.diagonal()
    return ((table.logsumexp(1) - right).mean() + (table.logsumexp(0) - right).mean()) / 2


def clip_loss__log_softmax(image_features, text_features, temperature):
    a, b = F.normalize(image_features), F.normalize(text_features)
    logits = torch.einsum("id,jd->ij", a, b) / temperature
    return -(logits.log_softmax(0) + logits.log_softmax(1)).diag().mean() / 2


def clip_loss__eye(image_features, text_features, temperature):
    cosine = F.cosine_similarity(image_features[:, None], text_features[None], dim=-1) / temperature
    target = torch.eye(len(cosine), dtype=cosine.dtype, device=cosine.device)
    return 0.5 * F.cross_entropy(cosine, target) + 0.5 * F.cross_entropy(cosine.T, target)


def clip_loss__stacked(image_features, text_features, temperature):
    table = F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).mT
    both = torch.cat([table, table.mT]) / temperature
    return F.cross_entropy(both, torch.arange(len(table), device=both.device).repeat(2))


def _even(embed_dim):
    if embed_dim % 2 == 1:
        raise ValueError(f"embed_dim must be even, got {embed_dim}")


def sincos_positions__loops(num_positions, embed_dim):
    _even(embed_dim)
    rows = []
    for p in range(num_positions):
        angles = [p / 10000 ** (2 * i / embed_dim) for i in range(embed_dim // 2)]
        rows.append([f(angle) for angle in angles for f in (math.sin, math.cos)])
    return torch.tensor(rows, dtype=torch.float32).reshape(num_positions, embed_dim)


def sincos_positions__slices(num_positions, embed_dim):
    _even(embed_dim)
    table = torch.zeros(num_positions, embed_dim)
    rates = torch.exp(torch.arange(0, embed_dim, 2) * (-math.log(10000.0) / embed_dim))
    angles = torch.arange(num_positions)[:, None] * rates
    table[:, 0::2], table[:, 1::2] = torch.sin(angles), torch.cos(angles)
    return table


def sincos_positions__phase(num_positions, embed_dim):
    _even(embed_dim)
    column = torch.arange(embed_dim, dtype=torch.float64)
    rate = 10000.0 ** (-(column - column % 2) / embed_dim)
    angle = torch.outer(torch.arange(num_positions, dtype=torch.float64), rate)
    return torch.sin(angle + column % 2 * torch.pi / 2).float()


def sincos_positions__complex(num_positions, embed_dim):
    _even(embed_dim)
    rate = torch.logspace(0, -4 * (1 - 2 / embed_dim), embed_dim // 2, dtype=torch.float64)
    angle = torch.arange(num_positions).double()[:, None] * rate[None]
    return (
        torch.view_as_real(torch.polar(torch.ones_like(angle), angle))
        .flip(-1)
        .flatten(1)
        .to(torch.float32)
    )
