import numpy as np
import torch
import torch.nn.functional as F

from vitedu.checks.kit import ON_ACCELERATOR, Checker, Mistake, also, shaped

PAIRS = "labels * num_classes + predictions"
COUNTS = "torch.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)"
MISTAKES = (
    Mistake(
        "transposed",
        "rows are answers and columns are true classes",
        "rows: the true class; columns: the answer",
        "Every error would be blamed on the wrong class.",
        "Look at which of the two counts the rows.",
        {PAIRS: "predictions * num_classes + labels"},
    ),
    Mistake(
        "pairs_counted_once",
        "a pair that occurs several times is counted once",
        "every image counts",
        "matrix[labels, predictions] += 1 reads, adds and writes once for each place, however often it occurs.",
        "Use bincount, index_put_ with accumulate=True, or a loop.",
        {COUNTS: "(" + COUNTS + " > 0).long()"},
    ),
    Mistake(
        "rows_normalised",
        "every row is divided by its sum",
        "counts",
        "How many images stand behind a share would be lost.",
        "Leave out the division.",
        {
            COUNTS: COUNTS + ".double()",
            "return ": "sums = torch.bincount(labels, minlength=num_classes).clamp(min=1)[:, None]\nreturn (1 / sums) * ",
        },
        also=(
            {
                COUNTS: COUNTS + ".float()",
                "return ": "sums = torch.bincount(labels, minlength=num_classes).clamp(min=1)[:, None].float()\nreturn (1 / sums) * ",
            },
        ),
    ),
    Mistake(
        "shares",
        "the counts are divided by the number of images",
        "counts",
        "The text asks for counts; shares can be made of them.",
        "Leave out the division.",
        {COUNTS: COUNTS + " / len(labels)"},
    ),
    Mistake(
        "float_counts",
        "the counts are floats",
        "int64",
        "A float32 counts no further than 16,777,216.",
        "Make the table with dtype=torch.int64.",
        {COUNTS: COUNTS + ".float()"},
    ),
    Mistake(
        "int32_counts",
        "the counts are int32",
        "int64",
        "The text asks for int64, the type that torch counts and indexes with.",
        "Make the table with dtype=torch.int64.",
        {COUNTS: COUNTS + ".int()"},
    ),
    Mistake(
        "absent_classes_dropped",
        "the table has rows only up to the largest class that occurs",
        "(K, K), whatever occurs",
        "A class without images would shift or lose its row.",
        "Take the size from num_classes.",
        part="absent classes",
        edits={"pairs = ": "num_classes = int(max(labels.max(), predictions.max())) + 1\npairs = "},
    ),
    Mistake(
        "errors_only",
        "the diagonal is empty",
        "right answers on the diagonal",
        "Without it no accuracy can be read off.",
        "Count the right answers too.",
        {COUNTS: COUNTS + ".fill_diagonal_(0)"},
    ),
    Mistake(
        "right_answers_only",
        "only the diagonal is filled",
        "wrong answers beside the diagonal",
        "The table would show no confusion.",
        "Count every pair.",
        {COUNTS: COUNTS + ".diag().diag()"},
    ),
    Mistake(
        "starts_at_one",
        "every place starts at 1",
        "0 where nothing was counted",
        "An empty place would count as an error.",
        "Start from zeros.",
        {COUNTS: COUNTS + " + 1"},
    ),
    Mistake(
        "last_image_left_out",
        "the last image is left out",
        "every image counts",
        "Off by one.",
        "Look at where the loop ends.",
        {PAIRS: "(" + PAIRS + ")[:-1]"},
    ),
    Mistake(
        "classes_from_one",
        "the classes are counted from 1",
        "classes 0 .. K-1",
        "Row 0 would stay empty.",
        "Look for a - 1 or + 1.",
        {PAIRS: "(labels - 1) % num_classes * num_classes + (predictions - 1) % num_classes"},
    ),
    Mistake(
        "flat",
        "the counts come in one row",
        "(K, K)",
        "The classes are two axes.",
        "Fold the counts into K rows.",
        {".reshape(num_classes, num_classes)": ""},
    ),
)


def by_loop(predictions, labels, num_classes):
    counts = torch.zeros(num_classes, num_classes, dtype=torch.int64, device=labels.device)
    for answer, truth in zip(predictions.tolist(), labels.tolist(), strict=True):
        counts[truth, answer] += 1
    return counts


def by_accumulating(predictions, labels, num_classes):
    counts = labels.new_zeros((num_classes, num_classes))
    return counts.index_put((labels, predictions), torch.ones_like(labels), accumulate=True)


def by_one_hot(predictions, labels, num_classes):
    truth, answer = F.one_hot(labels, num_classes), F.one_hot(predictions, num_classes)
    return (truth[:, :, None] * answer[:, None, :]).sum(dim=0)


def by_comparing(predictions, labels, num_classes):
    K = range(num_classes)
    rows = [[((labels == i) & (predictions == j)).sum() for j in K] for i in K]
    return torch.stack([torch.stack(row) for row in rows])


def by_numpy(predictions, labels, num_classes):
    counts = np.zeros((num_classes, num_classes), dtype=np.int64)
    np.add.at(counts, (labels.cpu().numpy(), predictions.cpu().numpy()), 1)
    return torch.from_numpy(counts).to(labels.device)


FEW = "predictions: n < K-1; labels: n < K-1; num_classes = K"  # the last class does not occur
CHECKER = Checker(
    "confusion_matrix",
    cases=shaped(
        "predictions: n < K; labels: n < K; num_classes = K",
        also("absent classes", "the last class never occurs", shapes=FEW),
        also(
            "absent classes",
            "a class that is only answered",
            shapes="predictions: n < K; labels: n < K-2; num_classes = K",
        ),
        # without the last class: whether it occurs among so few shall not be left to chance
        also(
            "other sizes",
            "one image, not recognised",
            shapes=FEW,
            n=1,
            values={"predictions": torch.zeros_like, "labels": torch.ones_like},
        ),
        also("other sizes", "as many images as classes", shapes=FEW, n="K"),
        also("other sizes", "two classes", K=2),
        also("other sizes", "two classes, more images than a byte counts", K=2, n=1200),
        ON_ACCELERATOR,
        ranges={"n": (40, 60), "K": (4, 6)},
        name="{n:image}, {K} classes",
    ),
    proves={
        "values": "every image counted once, rows the truth, columns the answer, int64",
        "absent classes": "K rows and columns, whatever classes occur",
        "other sizes": "also for one image and two classes",
    },
    special="len(labels) == 1; num_classes == 2; len(labels) == num_classes",
)
