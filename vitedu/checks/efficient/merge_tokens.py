import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import USUAL, Checker, Mistake, also, refused, shaped

TARGET = "target.scatter(1, 2 * leaving + 1, 2 * partner.gather(1, leaving) + 2)"
LEAVES = "scatter(1, 2 * leaving + 1, False)"
SIMILARITY = "unit[:, 1::2] @ unit[:, 2::2].mT"
ONES = "torch.ones_like(sizes)"
COUNT = f"torch.zeros_like(sizes).scatter_add(1, target, {ONES})[stays].reshape(B, -1)"
STAYS = "stays = torch.ones_like(target"
# of those that join the same token, all but the last go nowhere
KEEP_ONE = (
    "for row, odd, who in zip(target, partner.tolist(), leaving{}.tolist()):\n"
    "    last = {{odd[i]: i for i in who}}\n"
    "    row[[2 * i + 1 for i in who]] = torch.tensor([2 * odd[i] + 2 if last[odd[i]] == i else 2 * i + 1 for i in who])\n"
) + STAYS
MEAN = "the mean weighted with sizes"

MISTAKES = (
    Mistake(
        "dropped",
        "the tokens are dropped, not merged",
        MEAN,
        "That is pruning: what the tokens knew is lost.",
        "Add each leaving token to its partner.",
        {TARGET: "target"},
    ),
    Mistake(
        "one_of_several_kept",
        "of several that join the same token only one is added",
        "every token that leaves joins its partner",
        "Where each write starts from the partner as it came, the last one replaces those before it.",
        "Add each time to what is already there, in turn or with scatter_add or index_add.",
        {STAYS: KEEP_ONE.format("")},
        also=({STAYS: KEEP_ONE.format(".sort(dim=-1).values")},),
    ),
    Mistake(
        "sizes_ignored",
        "merged tokens get the plain mean",
        MEAN,
        "A token that stands for ten patches would weigh as much as a single patch.",
        "Multiply by sizes before you add, and divide by the sum of the sizes.",
        {"tokens * sizes[:, :, None]": "tokens", "/ total[:, 1:, None]": f"/ {COUNT}[:, 1:, None]"},
    ),
    Mistake(
        "plain_mean_of_two",
        "each token that joins gets half of the weight",
        MEAN,
        "A token that stands for ten patches would weigh as much as a single patch.",
        "Multiply by sizes before you add, and divide by the sum of the sizes.",
        build=lambda: _half_and_half,
    ),
    Mistake(
        "added_up",
        "merged tokens are added up",
        MEAN,
        "A sum is as long as it has members, and the next layer takes length for content.",
        "Divide by the sum of the sizes.",
        {" / total[:, 1:, None]": ""},
    ),
    Mistake(
        "sizes_not_added",
        "the sizes do not grow",
        "sizes that add up to those before",
        "The next merge would weigh wrongly.",
        "A merged token stands for all patches that joined it.",
        {"dim=1), total": "dim=1), sizes[stays].reshape(B, -1)"},
    ),
    Mistake(
        "dot_products",
        "keys are compared by dot products",
        "cosine similarity",
        "A long key is similar to everything.",
        "Scale every key to length 1 first.",
        {"F.normalize(keys, dim=-1)": "keys"},
    ),
    Mistake(
        "least_similar",
        "the least similar tokens are merged",
        "the highest similarity first",
        "What differs most would be mixed.",
        "Look at descending.",
        {"descending=True": "descending=False"},
    ),
    Mistake(
        "least_similar_partner",
        "each joins the least similar token",
        "the most similar odd-placed token",
        "What differs most would be mixed.",
        "Take the maximum along the odd ones.",
        {"similarity.max(": "similarity.min("},
    ),
    Mistake(
        "neighbours_only",
        "each is compared with the next token only",
        "the most similar of all odd-placed tokens",
        "A token far away may be more alike than the neighbour.",
        "Compare every even-placed token with every odd-placed one: a table.",
        {
            SIMILARITY: f"({SIMILARITY}).masked_fill(torch.eye(T // 2, (T - 1) // 2, device=tokens.device) == 0, -2.0)"
        },
    ),
    Mistake(
        "class_token_merged",
        "the class token takes part",
        "the class token stays as it is",
        "The head reads it.",
        "Count places among the patch tokens, after the class token.",
        {
            SIMILARITY: "unit[:, 0::2] @ unit[:, 1::2].mT",
            TARGET: "target.scatter(1, 2 * leaving, 2 * partner.gather(1, leaving) + 1)",
            LEAVES: "scatter(1, 2 * leaving, False)",
            "torch.cat([tokens[:, :1], mixed], dim=1)": "mixed",
            "[:, 1:] / total[:, 1:, None]": " / total[:, :, None]",
        },
    ),
    Mistake(
        "odd_ones_leave",
        "odd-placed tokens leave, even-placed ones stay",
        "even-placed tokens join odd-placed ones",
        "Both are fair; published code and this text merge the even ones.",
        "Look at which half keeps its places.",
        {
            SIMILARITY: "unit[:, 2::2] @ unit[:, 1::2].mT",
            TARGET: "target.scatter(1, 2 * leaving + 2, 2 * partner.gather(1, leaving) + 1)",
            LEAVES: "scatter(1, 2 * leaving + 2, False)",
        },
    ),
    Mistake(
        "tokens_compared",
        "tokens are compared, not their keys",
        "the most similar key",
        "The layer's keys already say what a token is.",
        "Look at what goes into the similarity.",
        {"F.normalize(keys": "F.normalize(tokens"},
    ),
    Mistake(
        "even_then_odd",
        "the even-placed tokens that stay come before the odd-placed ones",
        "the original order",
        "The authors' code does that; a map drawn on the grid would be shuffled.",
        "Take what stays in the order of the sequence.",
        {
            "return torch": "order = torch.arange(T, device=tokens.device).expand(B, T)[stays].reshape(B, -1)[:, 1:]\norder = (order + T * (order % 2 == 0)).argsort(dim=-1)\n"
            "mixed = mixed.gather(1, order[:, :, None].expand(-1, -1, D))\ntotal = torch.cat([total[:, :1], total[:, 1:].gather(1, order)], dim=1)\nreturn torch"
        },
    ),
    families.FIRST_OF_BATCH.by(
        {
            "leaving = best": "best, partner = best[:1].expand_as(best), partner[:1].expand_as(partner)\nleaving = best"
        }
    ),
)


def _half_and_half(tokens, keys, sizes, merge):
    return by_running_mean(tokens, keys, sizes, merge, is_plain=True)


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


def by_running_mean(tokens, keys, sizes, merge, is_plain=False):
    _bounded(tokens, merge)
    unit, images, counts = F.normalize(keys, p=2.0, dim=2), [], []
    for b in range(len(tokens)):
        best, partner = (unit[b, 1::2] @ unit[b, 2::2].T).max(dim=1)
        x, s, gone = list(tokens[b]), list(sizes[b]), best.topk(merge).indices.tolist()
        for i in gone:
            here, there = 2 * i + 1, 2 * int(partner[i]) + 2
            ours, theirs = (1, 1) if is_plain else (s[there], s[here])
            x[there] = (x[there] * ours + x[here] * theirs) / (ours + theirs)
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


CHECKER = Checker(
    "merge_tokens",
    cases=shaped(
        "tokens: B N+1 D; keys: B N+1 d; sizes: B N+1; merge = r",
        also("values", "", gradients=(), N=9, r=3),
        also("other sizes", "no merge", r=0),
        also("other sizes", "one merge", r=1),
        also("other sizes", "all even-placed ones of an odd number", N=7, r=4),
        also("other sizes", "all even-placed ones of an even number", N=8, r=4),
        also("other sizes", "sizes of 1", values={"sizes": torch.ones_like}),
        refused("{N} patches, merge={N // 2 + 2}", r="N // 2 + 2"),
        refused("merge=-1", r=-1),
        *USUAL,
        ranges={"B": (3, 4), "r": (2, 3), "D": (4, 6), "d": (4, 6), "N": (9, 12)},
        values={"sizes": lambda x: (3 * x.abs()).floor() + 1},
        outputs=("tokens", "sizes"),
        gradients=("tokens",),
    ),
    proves={
        "values": "the most similar pairs are merged, weighted with their sizes; all else keeps its place",
        "other sizes": "also for no merge and for all, a batch of one, and float64",
        "errors": "more merges than even-placed tokens are refused",
    },
    equivalent={
        families.DEFAULT: ("leaving = best.argsort(descending=True)[:, :merge]",),
        "all arguments live on one device": ("device=keys", "device=sizes"),
        "merge is a whole number": ("if not 0 <= merge <= T / 2:",),
    },
    special="len(tokens) == 1; merge == 0; merge == tokens.shape[1] // 2; merge == 1; "
    "bool((sizes == 1).all())",
)
