import torch

from vitedu.checks import families
from vitedu.checks.kit import Case, Checker, Mistake, distinct, draw, normal, plural, usual


def cases(g: torch.Generator) -> list[Case]:
    """Draw tokens and noise; half a token is rounded as Python does."""
    N, D = draw(g, 10, 13), draw(g, 3, 5)
    B, M = distinct(g, 2, 2, 4)

    def case(note="", part="other sizes", B=B, N=N, M=M, off=0.2, dtype=torch.float32, **rest):
        ratio, noise = rest.pop("ratio", round(1 - (M + off) / N, 3)), torch.rand(B, N, generator=g)
        args = {"tokens": normal(g, B, N, D, dtype=dtype), "mask_ratio": ratio, "noise": noise}
        name = f"{plural(B, 'image')}, {N} tokens of {D}, mask_ratio {ratio}{note}"
        return Case(name, args, part, outputs=("kept", "mask", "restore"), **rest)

    return [
        case(part="values", gradients=("tokens",)),
        case(part="values", M=N - 3),
        case(", rounded up", "how many", off=-0.3),
        case(", rounded down", "how many", off=0.3),
        case(", half a token, rounded to an even number", "how many", N=13, ratio=0.5),
        case(", nothing is hidden", "how many", ratio=0.0),
        case(", one token stays", "how many", ratio=round(1 - 0.9 / N, 3)),
        case(", all is hidden", "how many", ratio=1.0),
        case(", 147 of 196", "how many", N=196, ratio=0.75),
        case(B=1),
        case(B=N),
        *usual(case),
    ]


ORDER, RESTORE = "noise.argsort(dim=1)", "order.argsort(dim=1)"
COUNT, MASK = "round(N * (1 - mask_ratio))", "(restore >= M).to(tokens.dtype)"
KEPT = "tokens.gather(1, order[:, :M, None].expand(-1, -1, D))"
MISTAKES = (
    Mistake(
        "highest_stay",
        "the tokens of highest noise stay",
        "the tokens of lowest noise stay",
        "Any rule would do; this is the text's and that of the published code.",
        "Look at descending.",
        {ORDER: "noise.argsort(dim=1, descending=True)"},
    ),
    Mistake(
        "mask_inverted",
        "the mask is 1 where a token stays",
        "1 where a token is hidden",
        "The loss would be taken on what the encoder saw.",
        "Look at the comparison.",
        {"restore >= M": "restore < M"},
    ),
    Mistake(
        "ratio_is_kept",
        "mask_ratio is taken for the share that stays",
        "mask_ratio is hidden",
        "At 0.75 three times as much would be seen.",
        "Look at 1 - mask_ratio.",
        {COUNT: "round(N * mask_ratio)"},
    ),
    Mistake(
        "mask_of_places",
        "the mask belongs to the order of noise, not to the image",
        "entry i of the mask is token i",
        "Its first M entries would be 0 for every image.",
        "Bring it back to the order of the image, with restore.",
        {"restore >= M": "torch.arange(N, device=tokens.device).expand(B, N) >= M"},
    ),
    Mistake(
        "mask_by_order",
        "the mask is read off the order itself",
        "restore says at which place a token stands",
        "order[i] is the token at place i, which is the other way round.",
        "Compare restore with M.",
        {"restore >= M": "order >= M"},
    ),
    Mistake(
        "restore_is_order",
        "restore is the order of the noise",
        "the inverse of that order",
        "Gathering twice with one order does not put it back.",
        "Take argsort once more.",
        {RESTORE: "order"},
        also=({"mask, restore": "mask, order"},),
    ),
    Mistake(
        "noise_gathered",
        "the smallest noise is given, not its tokens",
        "kept (B, M, D)",
        "The encoder needs tokens.",
        "Gather tokens with the indices.",
        {KEPT: "noise.sort(dim=1).values[:, :M].to(tokens.dtype)"},
    ),
    Mistake(
        "one_feature",
        "only the first feature of each token is picked",
        "kept (B, M, D)",
        "gather gives the shape of its index.",
        "Expand the index to D features.",
        {KEPT: "tokens.gather(1, order[:, :M, None])"},
    ),
    Mistake(
        "every_order_for_every_image",
        "every image is indexed with the orders of all images",
        "kept (B, M, D)",
        "tokens[:, order] uses the whole table of indices for each image.",
        "Use gather, or put torch.arange(B)[:, None] in front of the order.",
        {KEPT: "tokens[:, order[:, :M]]"},
    ),
    Mistake(
        "mask_by_threshold",
        "the mask compares the noise with a number",
        "1 for the tokens that are not among the M of lowest noise",
        "Random numbers seldom leave exactly M below a threshold.",
        "Compare restore with M.",
        {"restore >= M": "noise > 1 - mask_ratio"},
        also=({"restore >= M": "noise > mask_ratio"},),
    ),
    Mistake(
        "image_order",
        "the tokens that stay come in the order of the image",
        "in order of their noise",
        "restore would put them in other places.",
        "Leave the indices unsorted.",
        {"order[:, :M, None]": "order[:, :M].sort(dim=1).values[:, :, None]"},
    ),
    Mistake(
        "one_order_for_all",
        "all images of the batch hide the same tokens",
        "each image by its own noise",
        "A batch would show one pattern.",
        "argsort along dim 1, for every row.",
        {ORDER: "noise[:1].argsort(dim=1).expand(B, N)"},
    ),
    Mistake(
        "over_the_batch",
        "the noise is sorted over the batch",
        "sorted over the tokens of an image",
        "Each token is compared with its own place in other images.",
        "argsort along dim 1.",
        {ORDER: "noise.argsort(dim=0)"},
    ),
    Mistake(
        "first_tokens",
        "the first tokens stay, whatever the noise",
        "those of lowest noise",
        "The top of every image would be seen.",
        "Use noise.",
        {ORDER: "torch.arange(N, device=tokens.device).repeat(B, 1)"},
    ),
    Mistake(
        "own_noise",
        "noise of its own decides",
        "the noise given",
        "The caller could not repeat the draw.",
        "Use the argument.",
        {ORDER: "torch.rand_like(noise).argsort(dim=1)"},
    ),
    Mistake(
        "rounded_down",
        "the number that stays is rounded down",
        "round(N * (1 - mask_ratio))",
        "Published code rounds down; the text asks for the nearest.",
        "Use round.",
        {COUNT: "int(N * (1 - mask_ratio) + 1e-9)"},
        part="how many",
    ),
    Mistake(
        "rounded_up",
        "the number that stays is rounded up",
        "round(N * (1 - mask_ratio))",
        "The text asks for the nearest whole number.",
        "Use round.",
        {COUNT: "math.ceil(N * (1 - mask_ratio) - 1e-9)"},
    ),
    Mistake(
        "at_least_one",
        "one token always stays",
        "round(N * (1 - mask_ratio)), which may be 0",
        "At 1.0 all is to be hidden.",
        "Leave out max.",
        {COUNT: f"max(1, {COUNT})"},
        part="how many",
    ),
    Mistake(
        "boolean_mask",
        "the mask is boolean",
        "a mask in the dtype of the tokens",
        "The loss multiplies with it.",
        "Turn it with .to(tokens.dtype).",
        {MASK: "restore >= M"},
    ),
    Mistake(
        "float32_mask",
        "the mask is float32 whatever the tokens are",
        "the dtype of the tokens",
        "The loss would mix two dtypes.",
        "Turn it with .to(tokens.dtype).",
        {MASK: "(restore >= M).float()"},
        part="other sizes",
    ),
    Mistake(
        "hidden_tokens_given",
        "the hidden tokens are given",
        "those that stay",
        "The encoder would see what it has to guess.",
        "Take the first M of the order.",
        {KEPT: "tokens.gather(1, order[:, M:, None].expand(-1, -1, D))"},
    ),
    families.SET_TO_ZERO.by(
        {"return kept,": "kept = tokens * (1 - mask[:, :, None])\nreturn kept,"},
        name="hidden tokens are set to zero, not left out",
        expected="kept (B, M, D)",
    ),
    families.FIRST_OF_BATCH.by(
        {KEPT: "tokens[:1].expand(B, -1, -1).gather(1, order[:, :M, None].expand(-1, -1, D))"}
    ),
)


def by_topk(tokens, mask_ratio, noise):
    B, N, _ = tokens.shape
    M = round(N * (1 - mask_ratio))
    order = noise.topk(N, dim=1, largest=False, sorted=True).indices
    restore = torch.empty_like(order)
    restore.scatter_(1, order, torch.arange(N, device=order.device).expand(B, N).contiguous())
    mask = tokens.new_ones(B, N).scatter(1, order[:, :M], 0.0)
    rows = torch.arange(B, device=tokens.device)[:, None]
    return tokens[rows, order[:, :M]], mask, restore


def by_loops(tokens, mask_ratio, noise):
    N, kept, masks, places = tokens.shape[1], [], [], []
    M = round(N * (1 - mask_ratio))
    for image, row in zip(tokens, noise.tolist(), strict=True):
        order = sorted(range(N), key=row.__getitem__)
        kept.append(image[torch.tensor(order[:M], dtype=torch.int64, device=image.device)])
        places.append([order.index(i) for i in range(N)])
        masks.append([float(place >= M) for place in places[-1]])
    mask = torch.tensor(masks, dtype=tokens.dtype, device=tokens.device)
    return torch.stack(kept), mask, torch.tensor(places, device=tokens.device)


def as_published(tokens, mask_ratio, noise):
    B, N, D = tokens.shape
    M = round(N * (1 - mask_ratio))
    shuffle = torch.argsort(noise, dim=-1)
    restore = torch.argsort(shuffle, dim=-1)
    kept = torch.gather(tokens, dim=1, index=shuffle[:, :M].unsqueeze(-1).repeat(1, 1, D))
    mask = torch.ones([B, N], device=tokens.device, dtype=tokens.dtype)
    mask[:, :M] = 0
    return kept, torch.gather(mask, 1, restore), restore


def by_ranks(tokens, mask_ratio, noise):
    N = noise.shape[1]
    M = round(N - N * mask_ratio)
    restore = (noise[:, None, :] < noise[:, :, None]).sum(dim=2)  # how many are smaller
    choice = restore[:, None, :] == torch.arange(M, device=tokens.device)[None, :, None]
    mask = 1 - (restore < M).to(tokens.dtype)
    return torch.einsum("bmn,bnd->bmd", choice.to(tokens.dtype), tokens), mask, restore


CHECKER = Checker(
    "random_masking",
    proves={
        "values": "the tokens of lowest noise in order, a mask of the hidden ones, and the way back",
        "how many": "the nearest whole number stays, from all to none",
        "other sizes": "also for one image, as many images as tokens, and float64",
    },
    advice={
        "values": (
            "Token i of the image, its place in the order of noise, and its entry of the mask are three things.",
            "Call it on the example of the text and compare kept, mask and restore one by one.",
        ),
    },
    special="mask_ratio == 0; len(tokens) == 1; tokens.shape[0] == tokens.shape[1]",
    equivalent={
        families.DEFAULT: ("order = noise.argsort()", "restore = order.argsort()"),
    },
)
