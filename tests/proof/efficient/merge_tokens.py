"""Right answers to 8.9 merge_tokens, and what becomes of its mutants."""

import torch
import torch.nn.functional as F

from proof.reasons import DEFAULT


def _bounded(tokens, merge):
    if merge < 0 or merge > tokens.shape[1] // 2:
        raise ValueError(f"cannot merge {merge}")


def by_loops(tokens, keys, sizes, merge):
    _bounded(tokens, merge)
    rows, counts = [], []
    for x, k, s in zip(tokens, keys, sizes, strict=True):
        groups = {place: [place] for place in range(len(x))}
        pairs = []
        for even in range(1, len(x), 2):
            alike = F.cosine_similarity(k[even, None], k[2::2], dim=1).tolist()
            pairs.append((max(alike), even, 2 * alike.index(max(alike)) + 2))
        for _, even, odd in sorted(pairs, reverse=True)[:merge]:
            groups[odd] += groups.pop(even)
        rows.append(torch.stack([s[g] @ x[g] / s[g].sum() for g in groups.values()]))
        counts.append(torch.stack([s[g].sum() for g in groups.values()]))
    return torch.stack(rows), torch.stack(counts)


def by_matrix(tokens, keys, sizes, merge):
    _bounded(tokens, merge)
    T, unit = tokens.shape[1], keys / keys.norm(dim=-1, keepdim=True)
    alike = torch.einsum("bid,bjd->bij", unit[:, 1::2], unit[:, 2::2])
    score, odd = alike.max(-1)
    rank = score.argsort(-1, descending=True).argsort(-1)
    goes = torch.arange(T, device=tokens.device).repeat(len(tokens), 1)
    goes[:, 1::2] = torch.where(rank < merge, 2 * odd + 2, goes[:, 1::2])
    table = F.one_hot(goes, T).to(tokens.dtype).mT * sizes.to(tokens.dtype)[:, None]
    stays = (goes == torch.arange(T, device=tokens.device)).nonzero()[:, 1].reshape(len(tokens), -1)
    table = table.gather(1, stays[..., None].expand(-1, -1, T))
    return (table / table.sum(-1, keepdim=True)) @ tokens, table.sum(-1).to(sizes.dtype)


def by_running_mean(tokens, keys, sizes, merge):
    _bounded(tokens, merge)
    unit, images, counts = F.normalize(keys, p=2.0, dim=2), [], []
    for b in range(len(tokens)):
        best, partner = (unit[b, 1::2] @ unit[b, 2::2].T).max(dim=1)
        x, s, gone = list(tokens[b]), list(sizes[b]), best.topk(merge).indices.tolist()
        for i in gone:
            here, there = 2 * i + 1, 2 * int(partner[i]) + 2
            x[there] = (x[there] * s[there] + x[here] * s[here]) / (s[there] + s[here])
            s[there] = s[there] + s[here]
        left = [place for place in range(len(x)) if place not in {2 * i + 1 for i in gone}]
        images.append(torch.stack([x[place] for place in left]))
        counts.append(torch.stack([s[place] for place in left]))
    return torch.stack(images), torch.stack(counts)


def as_published(tokens, keys, sizes, merge):
    _bounded(tokens, merge)
    B, T, D = tokens.shape
    unit = F.normalize(keys, dim=-1)
    best, partner = torch.bmm(unit[:, 1::2], unit[:, 2::2].transpose(1, 2)).max(dim=-1)
    order = best.argsort(dim=-1, descending=True)
    src, rest = order[:, :merge], order[:, merge:]
    mass = torch.cat([tokens * sizes[..., None], sizes[..., None]], dim=-1)
    even, odd = mass[:, 1::2], mass[:, 2::2]
    wide = (-1, -1, D + 1)
    to = partner.gather(1, src)[..., None].expand(wide)
    odd = odd.scatter_reduce(1, to, even.gather(1, src[..., None].expand(wide)), reduce="sum")
    both = torch.cat([even.gather(1, rest[..., None].expand(wide)), odd], dim=1)
    odd_places = torch.arange(2, T, 2, device=tokens.device).expand(B, -1)
    back = torch.cat([2 * rest + 1, odd_places], dim=1).argsort(dim=1)
    both = both.gather(1, back[..., None].expand(wide))
    total = torch.cat([sizes[:, :1], both[..., -1]], dim=1)
    return torch.cat([tokens[:, :1], both[..., :-1] / both[..., -1:]], dim=1), total


EQUIVALENT = {
    DEFAULT: ("leaving = best.argsort(descending=True)[:, :merge]",),
    "all arguments live on one device": ("device=keys", "device=sizes"),
    "merge is a whole number": ("if not 0 <= merge <= T / 2:",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(tokens) == 1",
    "merge == 0",
    "merge == tokens.shape[1] // 2",
    "merge == 1",
    "bool((sizes == 1).all())",
)
