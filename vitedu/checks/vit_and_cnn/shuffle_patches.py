import torch
import torch.nn.functional as F

from vitedu.checks.kit import Case, Checker, Mistake, distinct, families, normal, rearrange, usual


def cases(g: torch.Generator) -> list[Case]:
    """Draw images and permutations that differ from their inverse."""

    def case(B, C, gh, gw, P, part="other sizes", note="", dtype=torch.float32, **rest):
        N = gh * gw
        permutation = torch.randperm(N, generator=g)
        while N > 2 and torch.equal(permutation[permutation], torch.arange(N)):
            permutation = torch.randperm(N, generator=g)
        images = normal(g, B, C, gh * P, gw * P, dtype=dtype)
        args = {"images": images, "patch_size": P, "permutation": permutation}
        name = f"{B} image(s) of {C} channel(s), {gh * P} x {gw * P} px, patch_size {P}{note}"
        return Case(name, args, part, rtol=1e-6, atol=1e-6, **rest)

    (B, C), (gh, gw) = distinct(g, 2, 2, 4), distinct(g, 2, 2, 4)
    P, Q = distinct(g, 2, 2, 4)
    return [
        case(B, C, gh, gw, P, "values", gradients=("images",)),
        case(C, B, gw, gh, Q, "values"),
        case(B, C, gh, gh, Q, note=", square"),
        case(1, C, gw, gh, P),
        case(B, 1, gh, gw, 1, note=", patches of one pixel"),
        case(B, C, 1, gw, Q, note=", one row of patches"),
        case(B, C, gh, 1, Q, note=", one column of patches"),
        *usual(case, B, C, gh, gw, P),
    ]


ORDER, BACK = "patches[:, permutation]", "return unpatchify("
END = "images.shape[-2:])"

MISTAKES = (
    Mistake(
        "inverse",
        "the permutation is undone, not applied",
        "patch i of the result is patch permutation[i] of the image",
        "patches[:, permutation] reads from permutation[i]; an assignment to result[:, permutation] writes there.",
        "Try three patches and the permutation [1, 2, 0]: patch 0 of the result is patch 1.",
        {ORDER: "patches[:, permutation.argsort()]"},
    ),
    Mistake(
        "nothing_moves",
        "every patch stays where it was",
        "patch i of the result is patch permutation[i] of the image",
        "The argument permutation is not used.",
        "Index the patches with it.",
        {ORDER: "patches"},
    ),
    Mistake(
        "twice",
        "the permutation is applied twice",
        "one application",
        "A second round gives another order.",
        "Look for two places that use permutation.",
        {ORDER: "patches[:, permutation][:, permutation]"},
    ),
    Mistake(
        "reversed",
        "the permutation is read backwards",
        "patch i of the result is patch permutation[i] of the image",
        "Backwards is not the inverse, either.",
        "Look for a flip.",
        {ORDER: "patches[:, permutation.flip(0)]"},
    ),
    Mistake(
        "by_column",
        "patches are numbered down the columns",
        "patches are numbered row by row",
        "All of the course counts patches as patchify does.",
        "Look at the order of the two grid axes.",
        {
            BACK: "gh, gw = images.shape[-2] // patch_size, images.shape[-1] // patch_size\n"
            "number = torch.arange(gh * gw, device=images.device).reshape(gh, gw).T.flatten()\n"
            "permutation = torch.empty_like(permutation).index_copy(0, number, number[permutation])\n"
            + BACK
        },
    ),
    Mistake(
        "another_for_each_image",
        "every image gets an order of its own",
        "the same order for the whole batch",
        "Images could not be compared after it.",
        "Use the permutation as given for all images.",
        {BACK: "patches = torch.stack([p.roll(i, 0) for i, p in enumerate(patches)])\n" + BACK},
    ),
    Mistake(
        "pixels_shuffled",
        "the pixels inside a patch move too",
        "patches move as they are",
        "What is inside a patch must stay recognisable.",
        "Index the axis of the patches alone.",
        {ORDER: ORDER + ".flip(-1)"},
    ),
    Mistake(
        "turned",
        "every patch is mirrored along its diagonal",
        "patches move as they are",
        "Rows and columns inside a patch are swapped on the way back.",
        "Undo the steps of patchify in the opposite order.",
        {ORDER: ORDER + ".unflatten(-1, (-1, patch_size, patch_size)).mT.flatten(2)"},
    ),
    Mistake(
        "strips",
        "strips of pixels move, not squares",
        "a patch is a square",
        "The memory of an image runs along its rows: a bare reshape cuts strips.",
        "Use patchify.",
        {
            "patchify(images, patch_size)": "images.reshape(len(images), len(permutation), -1)",
            "return unpatchify(" + ORDER + ", patch_size, " + END: "return "
            + ORDER
            + ".reshape(images.shape)",
        },
    ),
    Mistake(
        "reshaped_back",
        "the patches become an image by a reshape alone",
        "a patch is a square",
        "The memory of an image runs along its rows: a bare reshape lays a patch out as a strip.",
        "Use unpatchify.",
        {BACK + ORDER + ", patch_size, " + END: "return " + ORDER + ".reshape(images.shape)"},
    ),
    Mistake(
        "one_channel",
        "only the first channel is shuffled",
        "all channels of a patch together",
        "Colours would come apart.",
        "A patch holds all channels of its square.",
        {
            BACK
            + ORDER
            + ", patch_size, "
            + END: "result = images.clone()\nresult[:, :1] = unpatchify("
            + ORDER
            + ", patch_size, "
            + END
            + "[:, :1]\nreturn result"
        },
    ),
    Mistake(
        "read_after_written",
        "patches are read from places that were already written over",
        "patch i of the result is patch permutation[i] of the image",
        "A patch that was written over is lost, and its new content is copied on.",
        "Read from the images as they came and write into a tensor with memory of its own.",
        {
            BACK
            + ORDER: "patches = patches.clone()\nfor i, j in enumerate(permutation.tolist()):\n    patches[:, i] = patches[:, j]\n"
            + BACK
            + "patches"
        },
    ),
    Mistake(
        "patches_returned",
        "the sequence of patches is returned",
        "images of the old shape",
        "A model takes images.",
        "Put the patches together again.",
        {BACK + ORDER + ", patch_size, " + END: "return " + ORDER},
    ),
    families.SQUARE_ONLY.by({END: "(images.shape[-2], images.shape[-2]))"}),
)


def by_loops(images, patch_size, permutation):
    P, across = patch_size, images.shape[3] // patch_size
    result = torch.empty_like(images)
    for i, j in enumerate(permutation.tolist()):
        (row, column), (top, left) = divmod(i, across), divmod(j, across)
        there = images[:, :, top * P : top * P + P, left * P : left * P + P]
        result[:, :, row * P : row * P + P, column * P : column * P + P] = there
    return result


def by_fold(images, patch_size, permutation):
    columns = F.unfold(images, patch_size, stride=patch_size)
    return F.fold(columns[:, :, permutation], images.shape[2:], patch_size, stride=patch_size)


def by_einops(images, patch_size, permutation):
    P, sizes = patch_size, dict(p=patch_size, h=images.shape[2] // patch_size)
    patches = rearrange(images, "b c (h p) (w q) -> (h w) b c p q", p=P, q=P)
    return rearrange(patches[permutation], "(h w) b c p q -> b c (h p) (w q)", **sizes)


def by_pixel_indices(images, patch_size, permutation):
    H, W = images.shape[2:]
    pixels = torch.arange(H * W, device=images.device).reshape(H, W)
    blocks = pixels.unfold(0, patch_size, patch_size).unfold(1, patch_size, patch_size)
    blocks = blocks.flatten(0, 1)
    source = torch.empty(H * W, dtype=torch.long, device=images.device)
    source[blocks.flatten()] = blocks[permutation].flatten()
    return images.flatten(2)[..., source].unflatten(-1, (H, W))


def by_rows(images, patch_size, permutation):
    patches = [p for row in images.split(patch_size, 2) for p in row.split(patch_size, 3)]
    across = images.shape[3] // patch_size
    patches = [patches[i] for i in permutation.tolist()]
    rows = [torch.cat(patches[k : k + across], 3) for k in range(0, len(patches), across)]
    return torch.cat(rows, dim=2)


CHECKER = Checker(
    "shuffle_patches",
    proves={
        "values": "patch i of the result is patch permutation[i] of the image, and no pixel moves inside it",
        "other sizes": "also for squares, one image, one row of patches, patches of one pixel and float64",
    },
    special="len(images) == 1; images.shape[1] == 1; patch_size == 1; "
    "images.shape[2] == images.shape[3]; images.shape[2] == patch_size; "
    "images.shape[3] == patch_size",
)
