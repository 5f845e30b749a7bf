"""Right answers, chapter 08: efficient attention."""

import torch
import torch.nn.functional as F
from torch import nn


# -------------------------------------------- window_partition/window_merge


def window_partition__permute(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    x = x.reshape(B, gh // w, w, gw // w, w, D)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, D)


def window_partition__loops(x, window_size):
    B, gh, gw, D = x.shape
    w = window_size
    windows = []
    for b in range(B):
        for r in range(0, gh, w):
            for c in range(0, gw, w):
                windows.append(x[b, r : r + w, c : c + w].reshape(w * w, D))
    return torch.stack(windows)


def window_partition__unfold(x, window_size):
    tiles = x.unfold(1, window_size, window_size).unfold(2, window_size, window_size)
    # (B, rows, cols, D, w, w)
    return torch.einsum("brcdij->brcijd", tiles).flatten(3, 4).flatten(0, 2)


def window_merge__permute(windows, window_size, grid_size):
    gh, gw = grid_size
    w = window_size
    D = windows.shape[-1]
    x = windows.reshape(-1, gh // w, gw // w, w, w, D)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, gh, gw, D)


def window_merge__loops(windows, window_size, grid_size):
    w = window_size
    gh, gw = grid_size
    per_image = (gh // w) * (gw // w)
    B = windows.shape[0] // per_image
    x = windows.new_zeros(B, gh, gw, windows.shape[-1])
    k = 0
    for b in range(B):
        for r in range(0, gh, w):
            for c in range(0, gw, w):
                x[b, r : r + w, c : c + w] = windows[k].reshape(w, w, -1)
                k += 1
    return x


def window_merge__cat(windows, window_size, grid_size):
    rows, cols = grid_size[0] // window_size, grid_size[1] // window_size
    tiles = windows.unflatten(1, (window_size, window_size)).unflatten(0, (-1, rows, cols))
    lines = [torch.cat(list(tiles[:, r].unbind(1)), dim=2) for r in range(rows)]
    return torch.cat(lines, dim=1)


# ----------------------------------------------------- shifted_window_mask


def shifted_window_mask__regions(grid_size, window_size, shift):
    gh, gw = grid_size
    w = window_size
    labels = torch.zeros(1, gh, gw, 1)
    if shift > 0:
        parts = (slice(0, -w), slice(-w, -shift), slice(-shift, None))
        count = 0
        for rows in parts:
            for cols in parts:
                labels[:, rows, cols, :] = count
                count += 1
    windows = window_partition__permute(labels, w).squeeze(-1)  # (num_windows, w*w)
    return windows.unsqueeze(1) == windows.unsqueeze(2)


def shifted_window_mask__rolled(grid_size, window_size, shift):
    # roll the true coordinates: neighbours in a window must be as far apart as they seem
    gh, gw = grid_size
    rows = torch.arange(gh).view(gh, 1).expand(gh, gw)
    cols = torch.arange(gw).view(1, gw).expand(gh, gw)
    here = torch.stack([rows, cols], dim=-1)[None]
    origin = torch.roll(here, (-shift, -shift), dims=(1, 2))
    jump = window_partition__permute(
        origin - here, window_size
    )  # the same for all that belong together
    return (jump[:, :, None, :] == jump[:, None, :, :]).all(dim=-1)


def shifted_window_mask__loops(grid_size, window_size, shift):
    gh, gw = grid_size
    w = window_size
    masks = []
    for r0 in range(0, gh, w):
        for c0 in range(0, gw, w):
            sides = []
            for r in range(r0, r0 + w):
                for c in range(c0, c0 + w):
                    sides.append((r + shift >= gh, c + shift >= gw))
            masks.append([[a == b for b in sides] for a in sides])
    return torch.tensor(masks, dtype=torch.bool)


# -------------------------------------------------------- linear_attention


def linear_attention__matmul(q, k, v):
    q = F.elu(q) + 1
    k = F.elu(k) + 1
    summary = k.transpose(-2, -1) @ v  # (..., d, dv)
    total = k.sum(dim=-2).unsqueeze(-1)  # (..., d, 1)
    return (q @ summary) / (q @ total)


def linear_attention__einsum(q, k, v):
    fq, fk = F.elu(q) + 1, F.elu(k) + 1
    kv = torch.einsum("...td,...te->...de", fk, v)
    z = torch.einsum("...td,...d->...t", fq, fk.sum(-2))
    return torch.einsum("...td,...de->...te", fq, kv) / z[..., None]


def linear_attention__loops(q, k, v):
    feature = nn.ELU()
    f_q, f_k = feature(q) + 1, feature(k) + 1
    memory, norm = 0, 0
    for j in range(k.shape[-2]):
        key = f_k[..., j, :]
        memory = memory + key.unsqueeze(-1) * v[..., j, :].unsqueeze(-2)
        norm = norm + key
    outputs = []
    for i in range(q.shape[-2]):
        query = f_q[..., i, :]
        top = (query.unsqueeze(-1) * memory).sum(dim=-2)
        bottom = (query * norm).sum(dim=-1, keepdim=True)
        outputs.append(top / bottom)
    return torch.stack(outputs, dim=-2)


# ------------------------------------------------- relative_position_index


def relative_position_index__loops(grid_size):
    gh, gw = grid_size
    N = gh * gw
    index = torch.zeros(N, N, dtype=torch.long)
    for i in range(N):
        for j in range(N):
            dr = i // gw - j // gw + gh - 1
            dc = i % gw - j % gw + gw - 1
            index[i, j] = dr * (2 * gw - 1) + dc
    return index


def relative_position_index__swin(grid_size):
    gh, gw = grid_size
    coords = torch.stack(torch.meshgrid(torch.arange(gh), torch.arange(gw), indexing="ij")).flatten(
        1
    )
    relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous()
    relative[:, :, 0] += gh - 1
    relative[:, :, 1] += gw - 1
    relative[:, :, 0] *= 2 * gw - 1
    return relative.sum(-1)


def relative_position_index__trick(grid_size):
    gh, gw = grid_size
    cell = torch.arange(gh * gw)
    row, col = cell // gw, cell % gw
    number = row * (2 * gw - 1) + col  # place in a table with the long rows
    offset = (gh - 1) * (2 * gw - 1) + (gw - 1)
    return number[:, None] - number[None, :] + offset


# ------------------------------------------------------------ prune_tokens


def prune_tokens__gather(tokens, cls_attention, keep):
    index = cls_attention.topk(keep, dim=1).indices.sort(dim=1).values
    patches = tokens[:, 1:].gather(1, index.unsqueeze(-1).expand(-1, -1, tokens.shape[-1]))
    return torch.cat([tokens[:, :1], patches], dim=1)


def prune_tokens__loops(tokens, cls_attention, keep):
    result = []
    for sequence, scores in zip(tokens, cls_attention.tolist()):
        best = sorted(range(len(scores)), key=lambda i: scores[i], reverse=True)[:keep]
        places = [0] + [i + 1 for i in sorted(best)]
        result.append(sequence[places])
    return torch.stack(result)


def prune_tokens__mask(tokens, cls_attention, keep):
    B, T, D = tokens.shape
    rank = cls_attention.argsort(dim=1, descending=True).argsort(dim=1)
    chosen = rank < keep
    always = torch.ones(B, 1, dtype=torch.bool, device=tokens.device)
    chosen = torch.cat([always, chosen], dim=1)
    return tokens[chosen].reshape(B, keep + 1, D)


# ------------------------------------------------------------ merge_tokens


def merge_tokens__loops(tokens, keys, sizes, merge):
    B, T, D = tokens.shape
    N = T - 1
    even, odd = list(range(0, N, 2)), list(range(1, N, 2))
    if not 0 <= merge <= len(even):
        raise ValueError(f"merge must lie between 0 and {len(even)}, got {merge}")
    if merge == 0:
        return tokens.clone(), sizes.clone()
    all_tokens, all_sizes = [], []
    for b in range(B):
        key = F.normalize(keys[b, 1:], dim=-1)
        similarity = key[even] @ key[odd].T
        score, partner = similarity.max(dim=1)
        leaving = score.argsort(descending=True)[:merge].tolist()
        sums = [tokens[b, 1 + i] * sizes[b, 1 + i] for i in range(N)]
        weight = [sizes[b, 1 + i] for i in range(N)]
        for e in leaving:
            target, source = odd[int(partner[e])], even[e]
            sums[target] = sums[target] + sums[source]
            weight[target] = weight[target] + weight[source]
        gone = {even[e] for e in leaving}
        stay = [i for i in range(N) if i not in gone]
        all_tokens.append(torch.stack([tokens[b, 0]] + [sums[i] / weight[i] for i in stay]))
        all_sizes.append(torch.stack([sizes[b, 0]] + [weight[i] for i in stay]))
    return torch.stack(all_tokens), torch.stack(all_sizes)


def merge_tokens__scatter(tokens, keys, sizes, merge):
    b, t, d = tokens.shape
    num_even = t // 2  # of t - 1 patch tokens
    if merge < 0 or merge > num_even:
        raise ValueError(f"merge={merge}, but there are {num_even} even-placed tokens")
    if merge == 0:
        return tokens, sizes
    k = F.normalize(keys[:, 1:], dim=-1)
    scores = k[:, 0::2] @ k[:, 1::2].transpose(1, 2)
    best, partner = scores.max(dim=-1)
    source = best.topk(merge, dim=-1).indices  # among the even ones
    target = partner.gather(1, source) * 2 + 2  # places in the whole sequence
    source = source * 2 + 1
    weighted = tokens * sizes.unsqueeze(-1)
    moving = weighted.gather(1, source[..., None].expand(-1, -1, d))
    weighted = weighted.scatter_add(1, target[..., None].expand(-1, -1, d), moving)
    new_sizes = sizes.scatter_add(1, target, sizes.gather(1, source))
    mean = weighted / new_sizes.unsqueeze(-1)
    stays = torch.ones(b, t, dtype=torch.bool, device=tokens.device).scatter(1, source, False)
    return mean[stays].reshape(b, t - merge, d), new_sizes[stays].reshape(b, t - merge)


def merge_tokens__matrix(tokens, keys, sizes, merge):
    """A 0/1 matrix says which old token goes into which new one."""
    B, T, D = tokens.shape
    evens = torch.arange(1, T, 2, device=tokens.device)
    odds = torch.arange(2, T, 2, device=tokens.device)
    if not (0 <= merge <= evens.numel()):
        raise ValueError(f"can not merge {merge} of {evens.numel()} tokens")
    new_tokens, new_sizes = [], []
    for b in range(B):
        home = torch.arange(T, device=tokens.device)  # where each token ends up
        if merge > 0:
            cosine = F.cosine_similarity(
                keys[b, evens].unsqueeze(1), keys[b, odds].unsqueeze(0), dim=-1
            )
            score, who = cosine.max(dim=1)
            order = torch.argsort(score, descending=True)[:merge]
            home[evens[order]] = odds[who[order]]
        staying = torch.unique(home)  # sorted
        belongs = (staying[:, None] == home[None, :]).to(tokens.dtype)
        size = sizes[b].to(tokens.dtype)
        count = belongs @ size
        new_tokens.append(belongs @ (size[:, None] * tokens[b]) / count[:, None])
        new_sizes.append(count.to(sizes.dtype))
    return torch.stack(new_tokens), torch.stack(new_sizes)


# ------------------------------------------------------------ packing_mask


def packing_mask__ids(lengths):
    ids = torch.repeat_interleave(torch.arange(len(lengths)), torch.as_tensor(lengths))
    return ids[:, None] == ids[None, :]


def packing_mask__blocks(lengths):
    T = int(sum(lengths))
    mask = torch.zeros(T, T, dtype=torch.bool)
    start = 0
    for n in lengths:
        mask[start : start + n, start : start + n] = True
        start += n
    return mask


def packing_mask__diag(lengths):
    return torch.block_diag(*[torch.ones(int(n), int(n)) for n in lengths]).bool()
