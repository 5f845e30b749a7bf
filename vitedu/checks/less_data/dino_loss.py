import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import USUAL, Checker, Mistake, also, shaped

CENTRED = "(teacher_logits - center).detach()"
TARGET = "(centred / teacher_temperature).softmax(dim=-1)"
STUDENT = "(student_logits / student_temperature).log_softmax(dim=-1)"
LOSS = "-(target * log_student).sum(dim=-1).mean()"
MISTAKES = (
    Mistake(
        "no_center",
        "the teacher is not centred",
        "teacher_logits - center",
        "One prototype can win for every image, and then all answers are the same.",
        "Subtract center from the teacher's logits.",
        {CENTRED: "teacher_logits.detach()"},
    ),
    Mistake(
        "center_added",
        "the centre is added",
        "teacher_logits - center",
        "What wins anyway would win more.",
        "Look at the sign.",
        {CENTRED: "(teacher_logits + center).detach()"},
    ),
    Mistake(
        "center_of_batch",
        "the mean of the batch is subtracted, not center",
        "the running mean that is given",
        "One batch is too few images; the caller keeps the mean.",
        "Use the argument.",
        {CENTRED: "(teacher_logits - teacher_logits.mean(dim=0)).detach()"},
    ),
    Mistake(
        "student_centred",
        "the student is centred, too",
        "only the teacher is centred",
        "The student has to find it by itself.",
        "Leave student_logits as they are.",
        {"(student_logits /": "((student_logits - center) /"},
    ),
    Mistake(
        "center_on_student",
        "the student is centred, not the teacher",
        "the teacher is centred",
        "The centre is a mean of the teacher's logits.",
        "Subtract it from teacher_logits.",
        {CENTRED: "teacher_logits.detach()", "(student_logits /": "((student_logits - center) /"},
    ),
    Mistake(
        "center_after_temperature",
        "the centre is subtracted after the division",
        "centred first, then sharpened",
        "The centre is a mean of logits, before any temperature.",
        "Put the difference into brackets.",
        {
            TARGET: "(teacher_logits.detach() / teacher_temperature - center.detach()).softmax(dim=-1)"
        },
    ),
    Mistake(
        "center_of_probabilities",
        "the centre is subtracted from probabilities",
        "from the logits",
        "The result need not be a probability.",
        "Subtract before the softmax.",
        {
            TARGET: "(teacher_logits.detach() / teacher_temperature).softmax(dim=-1) - center.detach()"
        },
    ),
    Mistake(
        "temperatures_swapped",
        "the temperatures have changed places",
        "the teacher is divided by teacher_temperature",
        "The student would be sharper than what it copies.",
        "Look at which is divided by which.",
        {
            "centred / teacher_temperature": "centred / student_temperature",
            "student_logits / student_temperature": "student_logits / teacher_temperature",
        },
    ),
    Mistake(
        "one_temperature",
        "the student's temperature serves both",
        "a temperature for each",
        "Without sharpening the teacher drifts to an even answer for every image.",
        "Use teacher_temperature for the teacher.",
        {"centred / teacher_temperature": "centred / student_temperature"},
    ),
    Mistake(
        "teacher_temperature_for_both",
        "the teacher's temperature serves both",
        "a temperature for each",
        "The student would have to be as sharp as its logits say.",
        "Use student_temperature for the student.",
        {"student_logits / student_temperature": "student_logits / teacher_temperature"},
    ),
    Mistake(
        "multiplied",
        "the logits are multiplied by the temperature",
        "divided by the temperature",
        "A small temperature would make the answers even, not sharp.",
        "Divide.",
        {
            "centred / teacher_temperature": "centred * teacher_temperature",
            "student_logits / student_temperature": "student_logits * student_temperature",
        },
    ),
    Mistake(
        "no_sharpening",
        "the teacher's logits are not divided by a temperature",
        "centred / teacher_temperature",
        "The teacher drifts to an even answer for every image.",
        "Divide by teacher_temperature.",
        {"centred / teacher_temperature": "centred"},
    ),
    Mistake(
        "student_not_divided",
        "the student's logits are not divided by a temperature",
        "student_logits / student_temperature",
        "The student could hardly be as sharp as the teacher.",
        "Divide by student_temperature.",
        {"student_logits / student_temperature": "student_logits"},
    ),
    Mistake(
        "epsilon_in_log",
        "a small number in the log hides large losses",
        "the student's log_softmax",
        "log(p + 1e-6) never asks more than 14.",
        "Use log_softmax.",
        {
            "(student_logits / student_temperature).log_softmax(dim=-1)": "((student_logits / student_temperature).softmax(dim=-1) + 1e-6).log()"
        },
        part="large logits",
        also=(
            {
                "(student_logits / student_temperature).log_softmax(dim=-1)": "((student_logits / student_temperature).softmax(dim=-1) + 1e-8).log()"
            },
        ),
    ),
    Mistake(
        "log_of_softmax",
        "the log is taken of probabilities that may be 0",
        "the student's log_softmax",
        "A probability of 0 has no log, and 0 times minus infinity is NaN.",
        "Use log_softmax.",
        {STUDENT: "(student_logits / student_temperature).softmax(dim=-1).log()"},
        part="large logits",
    ),
    Mistake(
        "log_of_target",
        "the teacher's log-probabilities are the target",
        "the teacher's probabilities",
        "The weights of a cross-entropy are probabilities; logs are taken of the student alone.",
        "Use softmax for the teacher.",
        {"(centred / teacher_temperature).softmax": "(centred / teacher_temperature).log_softmax"},
    ),
    Mistake(
        "roles_swapped",
        "the logs are taken of the teacher, not of the student",
        "minus the sum of teacher times log student",
        "The cross-entropy is not symmetric.",
        "The target stands outside of the log.",
        {LOSS: "-(log_student.exp() * target.log().clamp(min=-100)).sum(dim=-1).mean()"},
    ),
    families.SIGN.by({LOSS: LOSS[1:]}, why="The student would learn to disagree."),
    Mistake(
        "divergence",
        "the teacher's entropy is subtracted",
        "the cross-entropy",
        "The gradient is the same, and the number is not what the text asks for.",
        "Leave out the entropy, or kl_div.",
        {LOSS: f"{LOSS} + torch.xlogy(target, target).sum(dim=-1).mean()"},
    ),
    Mistake(
        "hard_target",
        "the teacher's favourite alone is the target",
        "all its probabilities",
        "How alike two prototypes are would be lost.",
        "Use the softmax, not argmax.",
        {
            "log_student = (": "target = F.one_hot(target.argmax(dim=-1), len(center)).to(target.dtype)\nlog_student = ("
        },
    ),
    Mistake(
        "over_classes",
        "the mean runs over images and prototypes",
        "the sum over prototypes, the mean over images",
        "The loss would shrink with the number of prototypes.",
        "Sum along dim=-1 first.",
        {"sum(dim=-1).mean()": "mean()"},
    ),
    families.SUM_NOT_MEAN.by({"sum(dim=-1).mean()": "sum()"}),
    Mistake(
        "over_the_batch",
        "the softmax runs over the batch",
        "over the prototypes: dim=-1",
        "Every prototype would spread one unit over the images.",
        "Look at dim.",
        {
            "(centred / teacher_temperature).softmax(dim=-1)": "(centred / teacher_temperature).softmax(dim=0)",
            "log_softmax(dim=-1)": "log_softmax(dim=0)",
        },
    ),
    Mistake(
        "squared_error",
        "a squared difference is taken",
        "a cross-entropy",
        "Between probabilities it has almost no gradient where the student is wrong and sure.",
        "Multiply by the student's log-probabilities.",
        {LOSS: "((target - log_student.exp()) ** 2).sum(dim=-1).mean()"},
    ),
    families.PYTHON_NUMBER.by({LOSS: f"({LOSS}).item()"}),
    families.NOT_DETACHED.by({CENTRED: "teacher_logits - center"}),
)


def by_cross_entropy(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    with torch.no_grad():
        target = F.softmax((teacher_logits - center[None]) / teacher_temperature, dim=1)
    return F.cross_entropy(student_logits / student_temperature, target)


def by_loop(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    losses = []
    for s, t in zip(student_logits / student_temperature, teacher_logits.detach(), strict=True):
        t = (t - center.detach()) / teacher_temperature
        p = torch.exp(t - t.max()) / torch.exp(t - t.max()).sum()
        losses.append(torch.logsumexp(s, 0) - (p * s).sum())
    return torch.stack(losses).mean()


def by_einsum(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    target = torch.softmax((teacher_logits.detach() - center.detach()) / teacher_temperature, -1)
    log_p = F.log_softmax(student_logits / student_temperature, -1)
    return -torch.einsum("bk,bk->", target, log_p) / len(log_p)


def by_divergence(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    log_target = ((teacher_logits - center) / teacher_temperature).log_softmax(1).detach()
    log_p = (student_logits / student_temperature).log_softmax(1)
    distance = F.kl_div(log_p, log_target, reduction="batchmean", log_target=True)
    return distance - (log_target.exp() * log_target).sum(1).mean()


SHAPES = "student_logits: B K; teacher_logits: B K; center: K"
CHECKER = Checker(
    "dino_loss",
    cases=shaped(
        SHAPES,
        also(
            "values",
            "",
            shapes=SHAPES + "; student_temperature = s / 10; teacher_temperature = t / 10",
            scale=1.0,
            gradients=("student_logits", "teacher_logits", "center"),
        ),
        also(
            "values",
            "by keyword",
            shapes=SHAPES + "; teacher_temperature = t / 20",
            keywords=("teacher_temperature",),
        ),
        also(
            "large logits",
            "so large that the teacher is sure",
            B="3 * K",
            scale={"student_logits": 100.0, "teacher_logits": 1e5, "center": 0.0},
            rtol=1e-4,
            atol=1e-2,
        ),
        also("other sizes", "as many images as prototypes", B="K"),
        also("other sizes", "two prototypes", K=2),
        *USUAL,
        ranges={"B": (4, 7), "K": (8, 11), "s": (12, 16), "t": (4, 7)},
        scale=0.15,
        name="{B:image}, {K} prototypes",
    ),
    proves={
        "values": "the cross-entropy of the student with the centred, sharpened teacher",
        "other sizes": "also for one image, two prototypes, and float64",
        "large logits": "finite where the logits are large",
    },
    advice={
        "values": (
            "The teacher is centred first and divided by its temperature afterwards; the student is only divided.",
            "Give both the same logits and the centre 0, then look at the teacher's and the student's half apart.",
        ),
    },
    special="len(student_logits) == 1; student_logits.shape[0] == student_logits.shape[1]",
)
