import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import USUAL, Checker, Mistake, also, shaped

SAID, BOTH = "teacher_logits.argmax(dim=-1)", "0.5 * from_labels + 0.5 * from_teacher"
FROM_LABELS = "F.cross_entropy(cls_logits, labels)"
FROM_TEACHER = "F.cross_entropy(dist_logits, said)"
KL = "F.kl_div((dist_logits / {t}).log_softmax(-1), (teacher_logits / {t}).softmax(-1).detach(), reduction='batchmean')"
HALVES = "half of each loss"


def _close_call(logits: torch.Tensor) -> torch.Tensor:
    """Give the first image two favourites that are almost alike, so that a soft target always shows."""
    best, favourites = logits[0].topk(2)
    logits[0, favourites[1]] = best[0] - 0.005
    return logits


MISTAKES = (
    Mistake(
        "heads_swapped",
        "the heads have changed places",
        "class head with labels, distillation head with the teacher",
        "Each token would learn the other's task.",
        "Look at which logits meet which target.",
        {
            FROM_LABELS: "F.cross_entropy(dist_logits, labels)",
            FROM_TEACHER: "F.cross_entropy(cls_logits, said)",
        },
    ),
    Mistake(
        "not_halved",
        "the two losses are added in full",
        HALVES,
        "The loss, and with it the step, would be twice as large.",
        "Multiply each by 0.5.",
        {BOTH: "from_labels + from_teacher"},
    ),
    Mistake(
        "labels_only",
        "the teacher is left out",
        HALVES,
        "Nothing would be distilled.",
        "Add the second half.",
        {BOTH: "from_labels"},
        also=({BOTH: "0.5 * from_labels"},),
    ),
    Mistake(
        "teacher_only",
        "the labels are left out",
        HALVES,
        "The class head would learn nothing.",
        "Add the first half.",
        {BOTH: "from_teacher"},
        also=({BOTH: "0.5 * from_teacher"},),
    ),
    Mistake(
        "agreeing_only",
        "the teacher counts only where it agrees with the label",
        "half the loss against the teacher's answer, for every image",
        "Where both agree the label has said it already; a teacher is there for the rest.",
        "Look for a comparison with labels in the second half.",
        {
            FROM_TEACHER: "(F.cross_entropy(dist_logits, said, reduction='none') * (said == labels)).mean()"
        },
        also=(
            {
                FROM_TEACHER: "(F.cross_entropy(dist_logits, said, reduction='none') * (said == labels)).sum() / (said == labels).sum().clamp(min=1)"
            },
        ),
    ),
    Mistake(
        "soft_targets",
        "the teacher's probabilities are the target, not its answer",
        "the class that the teacher finds most likely",
        "That is soft distillation, another loss of the same paper.",
        "Take the argmax of teacher_logits.",
        {FROM_TEACHER: "F.cross_entropy(dist_logits, teacher_logits.softmax(dim=-1).detach())"},
        also=tuple(
            {
                FROM_TEACHER: f"F.cross_entropy(dist_logits, (teacher_logits / {t}).softmax(dim=-1).detach())"
            }
            for t in (0.1, 0.01)
        ),
    ),
    Mistake(
        "divergence",
        "a KL divergence is taken",
        "a cross-entropy with the teacher's answer",
        "That is Hinton's soft distillation.",
        "Take the argmax of teacher_logits.",
        {FROM_TEACHER: KL.format(t=1)},
        also=({FROM_TEACHER: KL.format(t=3)}, {FROM_TEACHER: "9 * " + KL.format(t=3)}),
    ),
    Mistake(
        "one_head",
        "the class head learns from both",
        "two heads, each with its own target",
        "The distillation token would learn nothing.",
        "Use dist_logits in the second half.",
        {FROM_TEACHER: "F.cross_entropy(cls_logits, said)"},
    ),
    Mistake(
        "only_second_head",
        "the distillation head learns from both",
        "two heads, each with its own target",
        "The class token would learn nothing.",
        "Use cls_logits in the first half.",
        {FROM_LABELS: "F.cross_entropy(dist_logits, labels)"},
    ),
    Mistake(
        "labels_twice",
        "both heads learn from the labels",
        "the distillation head learns from the teacher",
        "The teacher would not be used.",
        "Use the argmax of teacher_logits in the second half.",
        {FROM_TEACHER: "F.cross_entropy(dist_logits, labels)"},
    ),
    Mistake(
        "teacher_twice",
        "both heads learn from the teacher",
        "the class head learns from the labels",
        "The labels would not be used.",
        "Use labels in the first half.",
        {FROM_LABELS: "F.cross_entropy(cls_logits, said)"},
    ),
    Mistake(
        "least_likely",
        "the class that the teacher finds least likely is the target",
        "the most likely class",
        "The student would learn every error.",
        "Look for argmin, or a turned sign.",
        {SAID: "teacher_logits.argmin(dim=-1)"},
    ),
    Mistake(
        "over_the_batch",
        "the argmax runs over the batch",
        "an answer for every image: dim=-1",
        "It gives numbers of images, not of classes.",
        "Look at the dim of argmax.",
        {
            SAID: "teacher_logits.argmax(dim=0).repeat(len(labels))[: len(labels)] % teacher_logits.shape[1]"
        },
    ),
    Mistake(
        "own_answer",
        "the student's own answer is the target",
        "the teacher's answer",
        "The student would confirm itself.",
        "Take the argmax of teacher_logits.",
        {SAID: "dist_logits.argmax(dim=-1)"},
    ),
    Mistake(
        "heads_averaged",
        "both heads are averaged first",
        "a loss for each head",
        "That is how DeiT predicts, not how it learns.",
        "Keep the heads apart.",
        {"said = ": "cls_logits = dist_logits = (cls_logits + dist_logits) / 2\nsaid = "},
    ),
    families.SOFTMAX_TWICE.by(
        {
            FROM_LABELS: "F.cross_entropy(cls_logits.softmax(dim=-1), labels)",
            FROM_TEACHER: "F.cross_entropy(dist_logits.softmax(dim=-1), said)",
        }
    ),
    families.SUM_NOT_MEAN.by(
        {
            FROM_LABELS: "F.cross_entropy(cls_logits, labels, reduction='sum')",
            FROM_TEACHER: "F.cross_entropy(dist_logits, said, reduction='sum')",
        }
    ),
    families.PYTHON_NUMBER.by({BOTH: f"({BOTH}).item()"}),
)


def by_log_softmax(cls_logits, dist_logits, teacher_logits, labels):
    rows = torch.arange(len(labels), device=labels.device)
    own = cls_logits.log_softmax(dim=1)[rows, labels]
    copied = dist_logits.log_softmax(dim=1)[rows, teacher_logits.max(dim=1).indices]
    return -(own + copied).mean() / 2


def by_loop(cls_logits, dist_logits, teacher_logits, labels):
    total = 0
    for c, d, t, label in zip(cls_logits, dist_logits, teacher_logits, labels, strict=True):
        total = total + torch.logsumexp(c, 0) - c[label] + torch.logsumexp(d, 0) - d[t.argmax()]
    return total / (2 * len(labels))


def stacked(cls_logits, dist_logits, teacher_logits, labels):
    with torch.no_grad():
        said = torch.argmax(teacher_logits, 1)
    return F.cross_entropy(torch.cat([cls_logits, dist_logits]), torch.cat([labels, said]))


def by_one_hot(cls_logits, dist_logits, teacher_logits, labels):
    K = cls_logits.shape[-1]
    own = F.one_hot(labels, K).to(cls_logits.dtype)
    said = F.one_hot(teacher_logits.detach().softmax(-1).topk(1).indices[:, 0], K).to(own)
    losses = (own * F.log_softmax(cls_logits, -1) + said * F.log_softmax(dist_logits, -1)).sum(-1)
    return -0.5 * losses.mean()


CHECKER = Checker(
    "distillation_loss",
    cases=shaped(
        "cls_logits: B K; dist_logits: B K; teacher_logits: B K; labels: B < K",
        also("values", ""),
        also("other sizes", "two classes", K=2),
        also("other sizes", "as many images as classes", B="K"),
        also(
            "other sizes",
            "a teacher and heads that are sure",
            scale={"teacher_logits": 300.0, "cls_logits": 100.0, "dist_logits": 100.0},
        ),
        *USUAL,
        ranges={"B": (9, 14), "K": (5, 8)},
        gradients=("cls_logits", "dist_logits", "teacher_logits"),
        scale=2.0,
        values={"teacher_logits": _close_call},
        name="{B:image}, {K} classes",
    ),
    proves={
        "values": "half the loss of each head, one with the labels and one with the teacher's answers",
        "other sizes": "also for one image, two classes, a teacher that is sure, and float64",
    },
    special="len(labels) == 1; cls_logits.shape[1] == 2; len(labels) == cls_logits.shape[1]",
)
