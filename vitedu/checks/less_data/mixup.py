import torch
import torch.nn.functional as F

from vitedu.checks import inputs
from vitedu.checks.kit import FIRST_OF_BATCH, Case, Checker, Mistake, distinct, draw, plural, usual


def cases(g: torch.Generator) -> list[Case]:
    """Draw batches whose partners are no pairs, so that a permutation and its inverse differ."""
    C, H, W = distinct(g, 3, 2, 6)
    B, K, tenths = draw(g, 7, 9), draw(g, 4, 6), draw(g, 6, 7)

    def case(note, part="other sizes", B=B, H=H, lam=tenths / 10, dtype=torch.float32, **rest):
        drawn = inputs.labelled_pairs(g, B, C, H, W, K, dtype)
        args = {name: drawn[name] for name in ("images", "labels", "num_classes")}
        args |= {"lam": lam, "permutation": drawn["permutation"]}
        name = f"{plural(B, 'image')} of {H} x {W} px, {K} classes, lam {lam}{note}"
        return Case(name, args, part, outputs=("images", "labels"), **rest)

    return [
        case("", "values", gradients=("images",)),
        case("", "values", lam=round(1 - tenths / 10, 1)),
        case(", all of it", lam=1.0),
        case(", nothing of it", lam=0.0),
        case("", H=W),
        case("", B=K),
        case("", B=1),
        *usual(case),
    ]


OWN, PARTNER = "lam * images", "(1 - lam) * images[permutation]"
LABELS = "lam * one_hot + (1 - lam) * one_hot[permutation]"
SUM = "rows of labels that sum to 1"
MISTAKES = (
    Mistake(
        "lam_for_partner",
        "lam weighs the partner",
        "lam weighs the image in its own place",
        "At lam = 1 nothing may change.",
        "Look at which of the two lam multiplies.",
        {
            f"mixed = {OWN} + {PARTNER}": "lam = 1 - lam\nmixed = lam * images + (1 - lam) * images[permutation]"
        },
    ),
    Mistake(
        "own_share_larger",
        "the image in its own place always gets the larger share",
        "lam, which may be below 1/2",
        "The caller chooses lam.",
        "Look for max.",
        {f"mixed = {OWN}": "lam = max(lam, 1 - lam)\nmixed = lam * images"},
    ),
    Mistake(
        "labels_kept",
        "the labels are not mixed",
        "labels mixed as the images are",
        "The model would be asked for full certainty about a blend.",
        "Mix the one-hot labels, too.",
        {LABELS: "one_hot"},
    ),
    Mistake(
        "images_kept",
        "the images are not mixed",
        "images mixed as the labels are",
        "Then it is label smoothing with a neighbour's label.",
        "Blend the images with lam.",
        {f"{OWN} + {PARTNER}": "images.clone()"},
    ),
    Mistake(
        "labels_swapped",
        "images and labels are mixed the other way round from each other",
        "one lam for both",
        "An image that is mostly a star would be labelled a ring.",
        "Compare the two lines.",
        {LABELS: "(1 - lam) * one_hot + lam * one_hot[permutation]"},
    ),
    Mistake(
        "half_and_half",
        "lam is not used",
        "the proportion lam",
        "lam is drawn anew for every batch; 1/2 is one of its values.",
        "Look for 0.5 or a mean.",
        {f"mixed = {OWN}": "lam = 0.5\nmixed = lam * images"},
    ),
    Mistake(
        "inverse_permutation",
        "image i goes to place permutation[i]",
        "the partner of image i is image permutation[i]",
        "Another image would be the partner, and with argsort or scatter it goes unnoticed.",
        "Index: images[permutation].",
        {"mixed = ": "permutation = permutation.argsort()\nmixed = "},
    ),
    Mistake(
        "partner_of_labels_inverse",
        "images and labels have different partners",
        "one partner for image and label",
        "The label would speak of an image that is not there.",
        "Index both with permutation.",
        {"one_hot[permutation]": "one_hot[permutation.argsort()]"},
    ),
    Mistake(
        "neighbour",
        "the neighbour in the batch is the partner",
        "the partner permutation[i]",
        "The partner is the caller's choice.",
        "Look for flip or roll.",
        {PARTNER: "(1 - lam) * images.roll(1, 0)", "one_hot[permutation]": "one_hot.roll(1, 0)"},
        also=({PARTNER: "(1 - lam) * images.flip(0)", "one_hot[permutation]": "one_hot.flip(0)"},),
    ),
    Mistake(
        "partner_in_full",
        "the partner keeps its full weight",
        "weights that sum to 1",
        "The blend would be brighter than any image.",
        "Multiply the partner by 1 - lam.",
        {PARTNER: "images[permutation]", "(1 - lam) * one_hot[": "one_hot["},
    ),
    Mistake(
        "partner_of_the_blend",
        "the partner is read after it was scaled",
        "partners as they came in",
        "The partner would have the weight lam (1 - lam).",
        "Read the partner from the images, and write the blend into a new tensor.",
        {PARTNER: "(1 - lam) * lam * images[permutation]"},
    ),
    Mistake(
        "partner_labels_missing",
        "the partner's label is left out",
        SUM,
        "Part of the belief would belong to nobody.",
        "Add (1 - lam) times the partner's label.",
        {LABELS: "lam * one_hot"},
    ),
    Mistake(
        "hard_labels",
        "the larger part decides the label alone",
        "soft labels",
        "The proportion is what makes mixup more than noise.",
        "Mix the one-hot rows.",
        {LABELS: "one_hot if lam >= 0.5 else one_hot[permutation]"},
    ),
    Mistake(
        "class_numbers_mixed",
        "class numbers are mixed, not one-hot rows",
        "(B, K) labels",
        "Half of class 2 and half of class 4 is not class 3.",
        "Turn labels into one-hot rows first.",
        {LABELS: "lam * labels.to(mixed.dtype) + (1 - lam) * labels[permutation].to(mixed.dtype)"},
    ),
    Mistake(
        "float32_labels",
        "the labels are float32 whatever the images are",
        "labels in the dtype of the images",
        "The loss would mix two dtypes.",
        "Make them with .to(images.dtype).",
        {".to(mixed.dtype)": ".float()"},
        part="other sizes",
    ),
    Mistake(
        "absent_classes_dropped",
        "labels have columns up to the largest class that occurs",
        "num_classes columns",
        "Batches would have labels of different widths.",
        "Give one_hot the number of classes.",
        {"F.one_hot(labels, num_classes)": "F.one_hot(labels)"},
    ),
    Mistake(
        "classes_from_one",
        "the classes are counted from 1",
        "column labels[i] of row i",
        "Classes count from 0.",
        "Look for a - 1 or + 1.",
        {"F.one_hot(labels, num_classes)": "F.one_hot((labels - 1) % num_classes, num_classes)"},
    ),
    FIRST_OF_BATCH.by(
        {
            PARTNER: "(1 - lam) * images[permutation[:1]]",
            "one_hot[permutation]": "one_hot[permutation[:1]]",
        }
    ),
)


def by_loop(images, labels, num_classes, lam, permutation):
    mixed, soft = [], []
    for i, j in enumerate(permutation.tolist()):
        row = torch.zeros(num_classes, dtype=images.dtype, device=images.device)
        row[labels[i]] += lam
        row[labels[j]] += 1 - lam
        soft.append(row)
        mixed.append(images[i] * lam + images[j] * (1 - lam))
    return torch.stack(mixed), torch.stack(soft)


def by_lerp(images, labels, num_classes, lam, permutation):
    own = torch.eye(num_classes, dtype=images.dtype, device=images.device)[labels]
    return torch.lerp(images[permutation], images, lam), torch.lerp(own[permutation], own, lam)


def by_scatter(images, labels, num_classes, lam, permutation):
    soft = images.new_zeros(len(images), num_classes)
    soft.scatter_add_(1, labels[:, None], torch.full_like(soft[:, :1], lam))
    soft.scatter_add_(1, labels[permutation][:, None], torch.full_like(soft[:, :1], 1 - lam))
    return lam * images + (1.0 - lam) * images.index_select(0, permutation), soft


def by_matrix(images, labels, num_classes, lam, permutation):
    B = len(images)
    table = F.one_hot(permutation, B).to(images.dtype) * (1 - lam)
    table = table + lam * torch.eye(B, dtype=images.dtype, device=images.device)
    one_hot = (labels[:, None] == torch.arange(num_classes, device=labels.device)).to(images.dtype)
    return torch.einsum("ij,jchw->ichw", table, images), table @ one_hot


CHECKER = Checker(
    "mixup",
    proves={
        "values": "images and labels blended with their partners in one proportion",
        "other sizes": "also for lam 0 and 1, one image, square ones, as many images as classes, and float64",
    },
    special="lam == 0; lam == 1; len(images) == 1; len(images) == num_classes",
)
