import torch
import torch.nn.functional as F

from vitedu.checks import inputs
from vitedu.checks.kit import FIRST_OF_BATCH, Case, Checker, Mistake, distinct, draw, plural, usual


def cases(g: torch.Generator) -> list[Case]:
    """Draw batches and boxes: inside, across an edge, outside, empty, all of the image."""
    B, K, C = draw(g, 6, 8), draw(g, 4, 5), draw(g, 2, 4)
    H, W = distinct(g, 2, 9, 12)
    (top, left), (h, w) = distinct(g, 2, 1, 3), distinct(g, 2, 3, 5)
    inside = (top, left, top + h, left + w)

    def case(box, note, part="other sizes", B=B, H=H, W=W, dtype=torch.float32, **rest):
        drawn = inputs.labelled_pairs(g, B, C, H, W, K, dtype)
        args = {name: drawn[name] for name in ("images", "labels", "num_classes")}
        args |= {"box": box, "permutation": drawn["permutation"]}
        name = f"{plural(B, 'image')} of {H} x {W} px, box {box}{note}"
        return Case(name, args, part, outputs=("images", "labels"), **rest)

    clipped = "clipped boxes"
    return [
        case(inside, "", "values", gradients=("images",)),
        case((top, left + 1, top + w, left + 1 + h), "", "values"),
        case((-2, -3, h, w), ", across the top left", clipped),
        case((H - h, W - w, H + 2, W + 1), ", across the bottom right", clipped),
        case((-1, -1, H + 1, W + 1), ", more than the image", clipped),
        case((0, 0, H, W), ", all of the image", clipped),
        case((top, left, top, left + w), ", without rows", clipped),
        case((top, left, top + h, left), ", without columns", clipped),
        case((-4, left, -1, left + w), ", above the image", clipped),
        case((top, W + 1, top + h, W + 4), ", right of the image", clipped),
        case((top, -4, top + h, -1), ", left of the image", clipped),
        case((H + 1, left, H + 4, left + w), ", below the image", clipped),
        case((top + h, left, top, left + w), ", with bottom above top", clipped),
        case((top, left + w, top + h, left), ", with right before left", clipped),
        case((top + h, left + w, top, left), ", with both turned round", clipped),
        case(inside, ", square", W=H),
        case(inside, "", B=1),
        case(inside, ", uint8", dtype=torch.uint8),
        *usual(case, inside),
    ]


PASTE = "mixed[..., top:bottom, left:right] = images[permutation][..., top:bottom, left:right]"
LABELS = "(1 - share) * one_hot + share * one_hot[permutation]"
AREA = "max(bottom - top, 0) * max(right - left, 0) / (H * W)"
BY_AREA = "the partner's weight is the pasted share of the image"
MISTAKES = (
    Mistake(
        "labels_kept",
        "the labels are not mixed",
        BY_AREA,
        "Half a ring would still be called a star.",
        "Mix the one-hot labels by area.",
        {LABELS: "one_hot"},
    ),
    Mistake(
        "labels_swapped",
        "the share of the box goes to the image's own label",
        BY_AREA,
        "A small box would turn the label round.",
        "The box holds the partner.",
        {LABELS: "share * one_hot + (1 - share) * one_hot[permutation]"},
    ),
    Mistake(
        "half_and_half",
        "both labels have weight 1/2",
        BY_AREA,
        "A box of four pixels would count as much as half an image.",
        "Divide the area of the box by H * W.",
        {LABELS: "0.5 * one_hot + 0.5 * one_hot[permutation]"},
    ),
    Mistake(
        "area_of_whole_box",
        "the label follows the box as it was given, not what was pasted",
        "the area inside the image",
        "A box across the edge pastes less than it promises.",
        "Clip first, then take the area.",
        {
            f"share = {AREA}": "share = min(1.0, max(box[2] - box[0], 0) * max(box[3] - box[1], 0) / (H * W))"
        },
        part="clipped boxes",
        also=({f"share = {AREA}": "share = (box[2] - box[0]) * (box[3] - box[1]) / (H * W)"},),
    ),
    Mistake(
        "negative_area",
        "an empty box has a negative area",
        "an area of at least 0",
        "A label below 0 is no probability.",
        "Take max(..., 0) of both sides.",
        {AREA: "(bottom - top) * (right - left) / (H * W)"},
        part="clipped boxes",
    ),
    Mistake(
        "negative_indices",
        "a box outside of the image counts from the other end",
        "nothing is pasted from outside",
        "x[0:-1] is all but the last.",
        "Bring every coordinate into 0 .. H or 0 .. W.",
        {
            "min(max(row, 0), H) for": "min(row, H) for",
            "min(max(column, 0), W) for": "min(column, W) for",
        },
        part="clipped boxes",
        also=(
            {
                "(min(max(row, 0), H) for row in (box[0], box[2]))": "max(box[0], 0), min(box[2], H)",
                "(min(max(column, 0), W) for column in (box[1], box[3]))": "max(box[1], 0), min(box[3], W)",
            },
            {
                "(min(max(row, 0), H) for row in (box[0], box[2]))": "box[0], min(box[2], H)",
                "(min(max(column, 0), W) for column in (box[1], box[3]))": "box[1], min(box[3], W)",
                f"share = {AREA}": "share = images[0, 0, top:bottom, left:right].numel() / (H * W)",
            },
            {
                "(min(max(row, 0), H) for row in (box[0], box[2]))": "box[0], min(box[2], H)",
                "(min(max(column, 0), W) for column in (box[1], box[3]))": "box[1], min(box[3], W)",
                AREA: "(bottom - top) * (right - left) / (H * W)",
            },
        ),
    ),
    Mistake(
        "only_box_is_left",
        "everything but the box comes from the partner",
        "the box comes from the partner",
        "The areas would have changed places.",
        "Look at which image is copied whole.",
        {
            "mixed = images.clone()": "mixed = images[permutation].clone()",
            "= images[permutation][..., top": "= images[..., top",
        },
    ),
    Mistake(
        "box_blacked_out",
        "the box is black",
        "pixels of the partner",
        "That is Cutout: the label would name something that is not there.",
        "Copy the same rectangle from images[permutation].",
        {PASTE: "mixed[..., top:bottom, left:right] = 0"},
    ),
    Mistake(
        "partners_corner",
        "the box is filled from the partner's top left corner",
        "the same rectangle of the partner",
        "An object would move while it is pasted.",
        "Index the partner with top:bottom and left:right, too.",
        {
            PASTE: "mixed[..., top:bottom, left:right] = images[permutation][..., : max(bottom - top, 0), : max(right - left, 0)]"
        },
    ),
    Mistake(
        "edges_included",
        "bottom and right belong to the box",
        "bottom and right exclusive",
        "The box would be one pixel too large.",
        "Slices end before their end.",
        {
            PASTE: "mixed[..., top : bottom + 1, left : right + 1] = images[permutation][..., top : bottom + 1, left : right + 1]",
            AREA: "(min(bottom + 1, H) - top) * (min(right + 1, W) - left) / (H * W)",
        },
    ),
    Mistake(
        "rows_and_columns_swapped",
        "rows and columns of the box have changed places",
        "(top, left, bottom, right)",
        "It goes unnoticed with square boxes on the diagonal.",
        "Rows are the last axis but one.",
        {"H, W = images": "box = (box[1], box[0], box[3], box[2])\nH, W = images"},
    ),
    Mistake(
        "corner_and_size",
        "the last two numbers are taken for a size",
        "bottom and right, exclusive",
        "The box would end elsewhere.",
        "Do not add top and left.",
        {
            "H, W = images": "box = (box[0], box[1], box[0] + box[2], box[1] + box[3])\nH, W = images"
        },
    ),
    Mistake(
        "xy_order",
        "the box is read as (left, right, top, bottom)",
        "(top, left, bottom, right)",
        "Whoever calls gives corners.",
        "Unpack in the order of the text.",
        {"H, W = images": "box = (box[2], box[0], box[3], box[1])\nH, W = images"},
    ),
    Mistake(
        "box_of_itself",
        "the box is filled from the image itself",
        "pixels of the partner",
        "The image would stay as it is.",
        "Index with permutation.",
        {"= images[permutation][..., top": "= images[..., top"},
    ),
    Mistake(
        "labels_by_side",
        "the label follows one side of the box",
        BY_AREA,
        "Half the height and half the width is a quarter.",
        "Multiply both sides.",
        {AREA: "max(bottom - top, 0) / H"},
    ),
    Mistake(
        "inverse_permutation",
        "image i goes to place permutation[i]",
        "the partner of image i is image permutation[i]",
        "Another image would be the partner.",
        "Index: images[permutation].",
        {"H, W = images": "permutation = permutation.argsort()\nH, W = images"},
    ),
    Mistake(
        "partner_of_labels_inverse",
        "images and labels have different partners",
        "one partner for image and label",
        "The label would speak of an image that is not there.",
        "Index both with permutation.",
        {"share * one_hot[permutation]": "share * one_hot[permutation.argsort()]"},
    ),
    Mistake(
        "integer_labels",
        "labels of uint8 images are rounded to whole numbers",
        "float32 labels for uint8 images",
        "0.3 becomes 0.",
        "Give labels a dtype of their own where images have none.",
        {
            "images.dtype if images.is_floating_point() else torch.float32": "images.dtype",
            LABELS: f"({LABELS}).to(dtype)",
        },
        part="other sizes",
    ),
    Mistake(
        "float32_labels",
        "the labels are float32 whatever the images are",
        "labels in the dtype of float images",
        "The loss would mix two dtypes.",
        "Take the dtype from the images.",
        {"images.dtype if images.is_floating_point() else torch.float32": "torch.float32"},
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
    FIRST_OF_BATCH.by(
        {
            "= images[permutation][..., top": "= images[permutation[:1]][..., top",
            "share * one_hot[permutation]": "share * one_hot[permutation[:1]]",
        }
    ),
)


def _in_image(images, box):
    """Give a mask (H, W) of the pixels in the box."""
    rows = torch.arange(images.shape[-2], device=images.device)
    columns = torch.arange(images.shape[-1], device=images.device)
    in_rows = (rows >= box[0]) & (rows < box[2])
    return in_rows[:, None] & ((columns >= box[1]) & (columns < box[3]))


def by_mask(images, labels, num_classes, box, permutation):
    mask = _in_image(images, box)
    dtype = images.dtype if images.is_floating_point() else torch.float32
    share, one_hot = mask.to(dtype).mean(), F.one_hot(labels, num_classes).to(dtype)
    soft = torch.lerp(one_hot, one_hot[permutation], share)
    return torch.where(mask, images[permutation], images), soft


def by_loop(images, labels, num_classes, box, permutation):
    H, W = images.shape[2:]
    rows = [i for i in range(H) if box[0] <= i < box[2]]
    columns = [j for j in range(W) if box[1] <= j < box[3]]
    kind = torch.float64 if images.dtype == torch.float64 else torch.float32
    mixed, soft = [], torch.zeros(len(images), num_classes, dtype=kind, device=images.device)
    for i, j in enumerate(permutation.tolist()):
        image = images[i].clone()
        if rows and columns:
            box_of = (slice(None), slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
            image[box_of] = images[j][box_of]
        mixed.append(image)
        pasted = len(rows) * len(columns) / (H * W)
        soft[i, labels[i]] += 1 - pasted
        soft[i, labels[j]] += pasted
    return torch.stack(mixed), soft


def by_cat(images, labels, num_classes, box, permutation):
    H, W = images.shape[-2:]
    top, bottom = max(0, min(H, box[0])), max(0, min(H, box[2]))
    left, right = max(0, min(W, box[1])), max(0, min(W, box[3]))
    bottom, right = max(top, bottom), max(left, right)
    partner = images[permutation]
    middle = [images[:, :, top:bottom, :left], partner[:, :, top:bottom, left:right]]
    middle = torch.cat([*middle, images[:, :, top:bottom, right:]], dim=3)
    mixed = torch.cat([images[:, :, :top], middle, images[:, :, bottom:]], dim=2)
    keep = 1 - (bottom - top) * (right - left) / (H * W)
    dtype = (images[:1, 0, 0, 0] * 1.0).dtype
    soft = torch.eye(num_classes, device=images.device)[labels].to(dtype)
    return mixed, keep * soft + (1 - keep) * soft[permutation]


def by_counting(images, labels, num_classes, box, permutation):
    mask, mixed = _in_image(images, box), images.clone()
    mixed[:, :, mask] = images[permutation][:, :, mask]
    kind = images.dtype if images.dtype.is_floating_point else torch.float
    soft = torch.zeros(len(images), num_classes, dtype=kind, device=images.device)
    share = mask.sum().item() / mask.numel()
    rows = torch.arange(len(images), device=images.device)
    soft[rows, labels] += 1 - share
    soft[rows, labels[permutation]] += share
    return mixed, soft


CHECKER = Checker(
    "cutmix",
    proves={
        "values": "the box comes from the partner, and the labels follow its area",
        "clipped boxes": "also where the box crosses an edge, lies outside, or is empty",
        "other sizes": "also for one image, square ones, uint8, and float64",
    },
    special="len(images) == 1; images.shape[2] == images.shape[3]; images.dtype == torch.uint8",
    equivalent={
        "a box has four numbers": ("(box[0], box[-2])",),
        "min and max take their numbers in any order": (
            "min(H, max",
            "min(W, max",
            "max(0, row",
            "max(0, column",
            "max(0, bottom",
            "max(0, right",
        ),
        "a number times whole numbers gives float32": ("dtype = images.dtype",),
    },
)
