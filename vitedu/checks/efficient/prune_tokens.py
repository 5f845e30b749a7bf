import torch

from vitedu.checks import families
from vitedu.checks.kit import EXACT, USUAL, Checker, Mistake, also, shaped

BEST = "cls_attention.topk(keep, dim=-1).indices"
PLACES = "torch.cat([chosen.new_zeros(B, 1), chosen], dim=1)"

MISTAKES = (
    Mistake(
        "by_attention",
        "the tokens come in the order of their attention",
        "the original order of the patches",
        "topk sorts by value; what is drawn on the grid later would be shuffled.",
        "Sort the indices.",
        {".sort(dim=-1).values": ""},
    ),
    Mistake(
        "class_dropped",
        "the class token is not there",
        "class token first, then the patches",
        "The head reads token 0.",
        "Put place 0 in front of the chosen places.",
        {PLACES: "chosen"},
    ),
    Mistake(
        "off_by_one",
        "patch i is taken for token i",
        "patch i is token i + 1",
        "The class token stands in front, and cls_attention does not count it.",
        "Compare the shapes of tokens and cls_attention.",
        {" + 1": ""},
    ),
    Mistake(
        "least_attended",
        "the least attended patches stay",
        "the most attended patches",
        "What the class token reads most is thrown away.",
        "Look at largest=False, or at the end from which you slice.",
        {"topk(keep, dim=-1)": "topk(keep, dim=-1, largest=False)"},
    ),
    Mistake(
        "keep_is_dropped",
        "keep is taken for the number of tokens to drop",
        "keep patch tokens stay",
        "At half the tokens it goes unnoticed.",
        "The result has keep + 1 tokens.",
        {"topk(keep,": "topk(tokens.shape[1] - 1 - keep,"},
    ),
    Mistake(
        "none_instead_of_all",
        "where all patches shall stay, none does",
        "keep patch tokens stay, also where keep is N",
        "With nothing to drop a slice ends at -0, which is the start: [:, :-0] is empty.",
        "Slice up to keep, counted from the front.",
        {
            BEST: "cls_attention.argsort(dim=-1, descending=True)[:, : -(cls_attention.shape[1] - keep)]"
        },
        part="other sizes",
    ),
    Mistake(
        "class_counted",
        "the class token counts as one of keep",
        "keep patch tokens beside the class token",
        "One patch too many is dropped.",
        "The result has keep + 1 tokens.",
        {"topk(keep,": "topk(keep - 1,"},
    ),
    Mistake(
        "first_patches",
        "the first patches stay, whatever the attention",
        "the most attended patches",
        "The top of the image is not its most important part.",
        "Look where cls_attention is used.",
        {BEST: "torch.arange(keep, device=tokens.device).expand(B, -1)"},
    ),
    families.FIRST_OF_BATCH.by(
        {BEST: "cls_attention[:1].topk(keep, dim=-1).indices.expand(B, -1)"}
    ),
    Mistake(
        "mean_of_batch",
        "one choice is made for the whole batch",
        "each image by itself",
        "The object stands elsewhere in every image.",
        "Take topk along the last axis, for every row.",
        {BEST: "cls_attention.mean(dim=0, keepdim=True).topk(keep, dim=-1).indices.expand(B, -1)"},
    ),
    families.SET_TO_ZERO.by(
        {
            "return tokens.gather(1, places[:, :, None].expand(-1, -1, D))": "return tokens * torch.zeros_like(tokens[:, :, 0]).scatter(1, places, 1.0)[..., None]"
        },
        name="tokens are set to zero, not dropped",
        expected="(B, keep+1, D)",
    ),
    Mistake(
        "class_last",
        "the class token stands at the end",
        "class token first, then the patches",
        "The head reads token 0.",
        "Look at the order in torch.cat.",
        {"[chosen.new_zeros(B, 1), chosen]": "[chosen, chosen.new_zeros(B, 1)]"},
    ),
)


def by_loops(tokens, cls_attention, keep):
    kept = []
    for image, row in zip(tokens, cls_attention.tolist(), strict=True):
        best = sorted(range(len(row)), key=lambda i: row[i])[-keep:]
        kept.append(torch.stack([image[0], *(image[i + 1] for i in sorted(best))]))
    return torch.stack(kept)


def by_mask(tokens, cls_attention, keep):
    rank = cls_attention.argsort(-1).argsort(-1)
    stays = rank >= cls_attention.shape[1] - keep
    stays = torch.cat([torch.ones_like(stays[:, :1]), stays], 1)
    return tokens[stays].unflatten(0, (len(tokens), keep + 1))


def by_one_topk(tokens, cls_attention, keep):
    infinite = torch.full_like(cls_attention[:, :1], float("inf"))
    places = torch.cat([infinite, cls_attention], 1).topk(keep + 1, sorted=False).indices.sort(1)[0]
    return torch.take_along_dim(tokens, places.unsqueeze(-1), 1)


def by_indexing(tokens, cls_attention, keep):
    chosen = torch.argsort(cls_attention, dim=1, descending=True)[:, :keep].sort(dim=1).values
    rows = torch.arange(len(tokens), device=tokens.device)[:, None]
    return torch.cat([tokens[:, :1], tokens[:, 1:][rows, chosen]], dim=1)


def by_one_hot(tokens, cls_attention, keep):
    chosen = torch.sort(torch.topk(cls_attention, keep, 1)[1], 1)[0]
    choice = torch.nn.functional.one_hot(chosen, cls_attention.shape[1]).to(tokens.dtype)
    return torch.cat((tokens[:, 0:1], choice @ tokens[:, 1:]), 1)


CHECKER = Checker(
    "prune_tokens",
    cases=shaped(
        "tokens: B N+1 D; cls_attention: B N; keep = k",
        also("other sizes", "one patch stays", k=1),
        also("other sizes", "all stay", k="N"),
        also(
            "other sizes",
            "all stay, some without attention",
            k="N",
            values={"cls_attention": torch.relu},
        ),
        also(
            "other sizes",
            "attention alike to five digits",
            values={"cls_attention": lambda x: 0.1 + 1e-5 * x},
        ),
        also(
            "other sizes",
            "equal tokens, equal attention",
            values=dict.fromkeys(("tokens", "cls_attention"), torch.ones_like),
        ),
        *USUAL,
        ranges={"B": (3, 4), "k": (5, 6), "D": (2, 4), "N": (8, 11)},
        values={"cls_attention": lambda x: x.softmax(dim=-1)},
        **EXACT,
    ),
    proves={
        "values": "the class token and the most attended patches, in their order",
        "other sizes": "also where one patch or all stay, for a batch of one, and float64",
    },
    equivalent={
        families.DEFAULT: ("().values + 1", "(keep).indices"),
    },
    special="len(tokens) == 1; keep == cls_attention.shape[1]; keep == 1",
)
