import torch

from vitedu.checks.kit import DEFAULT, NEW_AXIS, Checker, Mistake, also, families, shaped

EQUAL = "image[:, None] == image[None, :]"
WITHIN = "True for two tokens of one image"

MISTAKES = (
    families.MASK_INVERTED,
    Mistake(
        "all_allowed",
        "nothing is forbidden",
        WITHIN,
        "Images of one sequence would see each other.",
        "Print how many entries are False.",
        {"return image": "image = torch.zeros_like(image)\nreturn image"},
    ),
    families.CAUSAL.by({f"return {EQUAL}": f"return ({EQUAL}).tril()"}, expected=WITHIN),
    Mistake(
        "earlier_images",
        "a token may look at earlier images",
        WITHIN,
        "The result would depend on who stands in front.",
        "Look at the comparison.",
        {"==": ">="},
    ),
    Mistake(
        "later_images",
        "a token may look at later images",
        WITHIN,
        "The result would depend on who stands behind.",
        "Look at the comparison.",
        {"==": "<="},
    ),
    Mistake(
        "not_itself",
        "a token may not look at itself",
        WITHIN,
        "A token belongs to its own image.",
        "Look at the diagonal.",
        {f"return {EQUAL}": f"return ({EQUAL}) & ~torch.eye(len(image), dtype=torch.bool)"},
    ),
    Mistake(
        "boundaries_shifted",
        "the borders lie one token too early",
        "image i has lengths[i] tokens",
        "The last token of an image would belong to the next one.",
        "Print the mask of [2, 3].",
        {"return image": "image = image.roll(-1)\nreturn image"},
    ),
    Mistake(
        "boundaries_late",
        "the borders lie one token too late",
        "image i has lengths[i] tokens",
        "The first token of an image would belong to the one before.",
        "Where an image ends, the next one begins: compare with >= or >.",
        {"return image": "image = torch.cat([image[:1], image[:-1]])\nreturn image"},
    ),
    Mistake(
        "gaps",
        "a token is skipped behind every image",
        "image i begins where image i - 1 ends",
        "The skipped token belongs to nobody, and all later images stand too far back.",
        "An end that is exclusive is the next start.",
        build=lambda: lambda lengths: by_slices(lengths, gap=1),
    ),
    Mistake(
        "lengths_reversed",
        "the images stand in reverse order",
        "images in the order of lengths",
        "It goes unnoticed where the lengths are a palindrome.",
        "Look for a flip or an append in front.",
        {"torch.as_tensor(lengths)": "torch.as_tensor(lengths).flip(0)"},
    ),
    Mistake(
        "lengths_compared",
        "images of one length are taken for the same image",
        WITHIN,
        "Their tokens would see each other.",
        "Compare numbers of images, not their lengths.",
        {"return image": "image = torch.as_tensor(lengths)[image]\nreturn image"},
        part="other sizes",
    ),
    Mistake(
        "numbers_of_images",
        "the number of each token's image comes back",
        "(T, T) boolean",
        "Attention needs an entry for each pair.",
        "Compare the numbers with themselves, as column and as row.",
        {f"return {EQUAL}": "return image"},
    ),
    families.ADDED_TO_SCORES.by(
        {f"return {EQUAL}": f"return torch.where({EQUAL}, 0.0, float('-inf'))"}
    ),
)


def by_block_diag(lengths):
    return torch.block_diag(*(torch.ones(n, n) for n in lengths)) > 0


def by_slices(lengths, gap=0):
    mask, start = torch.zeros(sum(lengths), sum(lengths), dtype=torch.bool), 0
    for n in lengths:
        mask[start : start + n, start : start + n] = True
        start += n + gap
    return mask


def by_cumsum(lengths):
    ends = torch.tensor(lengths).cumsum(0)
    image = torch.searchsorted(ends, torch.arange(int(ends[-1])), right=True)
    return image.unsqueeze(0).eq(image.unsqueeze(1))


def by_lists(lengths):
    image = [number for number, n in enumerate(lengths) for _ in range(n)]
    return torch.tensor([[a == b for a in image] for b in image])


def by_membership(lengths):
    member = torch.cat([torch.eye(len(lengths))[i].repeat(n, 1) for i, n in enumerate(lengths)])
    return (member @ member.T).bool()


CHECKER = Checker(
    "packing_mask",
    cases=shaped(
        "lengths = [a, b, c]",
        also("values", "", shapes="lengths = [c, d, a, b]"),
        also("other sizes", "images of one size", shapes="lengths = [a, a, a]"),
        also("other sizes", "one image", shapes="lengths = [a]"),
        also("other sizes", "an image of one token", shapes="lengths = [a, 1, b]"),
        also(
            "other sizes", "three hundred images of one token", shapes="lengths = [1] * 300 + [a]"
        ),
        also("other sizes", "a tuple of lengths", shapes="lengths = (b, a)"),
    ),
    proves={
        "values": "tokens look at their own image alone",
        "other sizes": "also for equal sizes, one image, and an image of one token",
    },
    equivalent={
        DEFAULT: ("image = torch.repeat_interleave(torch.as_tensor(lengths))",),
        NEW_AXIS: (
            "[:, None] == image[:,]",
            "[:, None] == image[None,]",
            "return image[:, None] == image",
        ),
    },
    special="len(lengths) == 1; len(set(lengths)) == 1",
)
