"""Right answers, chapter 05: inside a ViT."""

from functools import reduce

import torch
import torch.nn.functional as F


# --------------------------------------------------------- class_attention


def class_attention__reshape(weights, grid_size):
    gh, gw = grid_size
    B, h = weights.shape[:2]
    return weights[:, :, 0, -gh * gw :].reshape(B, h, gh, gw)


def class_attention__unflatten(weights, grid_size):
    class_row = weights.select(2, 0)  # (B, h, T)
    prefix = class_row.shape[-1] - grid_size[0] * grid_size[1]
    return class_row[..., prefix:].unflatten(-1, tuple(grid_size))


def class_attention__loops(weights, grid_size):
    gh, gw = grid_size
    first = weights.size(-1) - gh * gw
    rows = []
    for r in range(gh):
        start = first + r * gw
        rows.append(weights[:, :, 0, start : start + gw])
    return torch.stack(rows, dim=2)


# ------------------------------------------------------- attention_rollout


def attention_rollout__loop(layers):
    T = layers[0].shape[-1]
    identity = torch.eye(T, dtype=layers[0].dtype, device=layers[0].device)
    result = identity.expand(layers[0].shape[0], T, T)
    for weights in layers:
        a = weights.mean(dim=1)
        a = 0.5 * (a + identity)
        a = a / a.sum(dim=-1, keepdim=True)
        result = a @ result
    return result


def _rollout_step(weights):
    mean = weights.mean(1)
    mixed = (mean + torch.eye(mean.shape[-1]).to(mean)) / 2
    return F.normalize(mixed, p=1, dim=-1)


def attention_rollout__reduce(layers):
    return reduce(lambda total, step: step @ total, map(_rollout_step, layers))


def attention_rollout__stack(layers):
    a = torch.stack(list(layers)).double().mean(dim=2)  # (L, B, T, T)
    a = a + torch.eye(a.size(-1), dtype=a.dtype, device=a.device)
    a = a / 2
    a = a / a.sum(-1, keepdim=True)
    out = a[-1]
    for layer in range(len(layers) - 2, -1, -1):
        out = torch.einsum("bij,bjk->bik", out, a[layer])
    return out.to(layers[0].dtype)


# ----------------------------------------------------- position_similarity


def position_similarity__norm(pos_embed, grid_size):
    gh, gw = grid_size
    p = pos_embed[0, -gh * gw :]
    p = p / p.norm(dim=-1, keepdim=True)
    return (p @ p.T).reshape(gh * gw, gh, gw)


def position_similarity__cosine(pos_embed, grid_size):
    gh, gw = grid_size
    n = gh * gw
    patches = pos_embed[0, pos_embed.shape[1] - n :, :]
    return F.cosine_similarity(patches[:, None, :], patches[None, :, :], dim=-1).view(n, gh, gw)


def position_similarity__loops(pos_embed, grid_size):
    gh, gw = grid_size
    table = F.normalize(pos_embed.squeeze(0)[-(gh * gw) :], dim=1)
    maps = []
    for i in range(gh * gw):
        similarity = (table * table[i]).sum(dim=1)
        maps.append(similarity.reshape(gh, gw))
    return torch.stack(maps)


# -------------------------------------------------------- confusion_matrix


def confusion_matrix__loops(predictions, labels, num_classes):
    table = torch.zeros(num_classes, num_classes, dtype=torch.int64, device=labels.device)
    for p, t in zip(predictions.tolist(), labels.tolist()):
        table[t, p] += 1
    return table


def confusion_matrix__bincount(predictions, labels, num_classes):
    cell = labels.long() * num_classes + predictions.long()
    counts = torch.bincount(cell, minlength=num_classes * num_classes)
    return counts.reshape(num_classes, num_classes)


def confusion_matrix__onehot(predictions, labels, num_classes):
    true = F.one_hot(labels, num_classes).double()
    guessed = F.one_hot(predictions, num_classes).double()
    return torch.einsum("nt,np->tp", true, guessed).round().long()


def confusion_matrix__index_put(predictions, labels, num_classes):
    counts = labels.new_zeros((num_classes, num_classes), dtype=torch.long)
    ones = torch.ones_like(labels, dtype=torch.long)
    return counts.index_put((labels, predictions), ones, accumulate=True)


# ----------------------------------------------------------- pointing_game


def pointing_game__loops(attention, masks):
    B, gh, gw = attention.shape
    H, W = masks.shape[1:]
    ph, pw = H // gh, W // gw
    hits = 0
    for b in range(B):
        best, where = None, None
        for r in range(gh):
            for c in range(gw):
                if best is None or attention[b, r, c] > best:
                    best, where = attention[b, r, c], (r, c)
        r, c = where
        if masks[b, r * ph : (r + 1) * ph, c * pw : (c + 1) * pw].any():
            hits += 1
    return hits / B


def pointing_game__pool(attention, masks):
    gh, gw = attention.shape[1:]
    patch = (masks.shape[1] // gh, masks.shape[2] // gw)
    covered = F.max_pool2d(masks.float().unsqueeze(1), kernel_size=patch, stride=patch).flatten(1)
    hottest = attention.flatten(1).argmax(dim=1, keepdim=True)
    return (covered.gather(1, hottest) > 0).float().mean().item()


def pointing_game__reshape(attention, masks):
    b, gh, gw = attention.shape
    _, h, w = masks.shape
    tiles = masks.bool().reshape(b, gh, h // gh, gw, w // gw)
    touched = tiles.any(dim=4).any(dim=2)  # (B, gh, gw)
    _, index = attention.reshape(b, -1).max(dim=1)
    hit = touched[torch.arange(b, device=masks.device), index // gw, index % gw]
    return hit.sum().item() / b


# --------------------------------------------------------------- logit_lens


def logit_lens__stack(layers, norm, head):
    return torch.stack([head(norm(tokens)[:, 0]) for tokens in layers])


def logit_lens__together(layers, norm, head):
    class_tokens = torch.stack([tokens[:, 0] for tokens in layers])  # (L, B, D)
    return head(norm(class_tokens))


def logit_lens__steps(layers, norm, head):
    results = []
    for x in layers:
        normed = norm(x)
        logits = head(normed)  # every token, (B, T, K)
        results.append(logits[:, 0, :].unsqueeze(0))
    return torch.cat(results, dim=0)
