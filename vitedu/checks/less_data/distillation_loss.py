"""7.8 distillation_loss: two heads, two targets."""

import torch

from vitedu.checks.writing.kit import USUAL, also, shaped


def _set_first_two(gap: float):
    """Let the first image have two favourites, the second of them so far below the first."""

    def change(logits: torch.Tensor) -> torch.Tensor:
        logits[0, 0] = logits[0].max() + 1.0
        logits[0, 1] = logits[0, 0] - gap
        return logits

    return change


def _set_last(gap: float):
    """Let the last class stand so far above the best of the others."""

    def change(logits: torch.Tensor) -> torch.Tensor:
        logits[:, -1] = logits[:, :-1].amax(dim=1) + gap
        return logits

    return change


# the teacher says neither what the label says nor what the head says
APART = {
    "labels": torch.zeros_like,
    "teacher_logits": _set_last(0.005),
    "cls_logits": _set_last(1.0),
    "dist_logits": _set_last(-3.0),
}
SURE = {"cls_logits": 100.0, "dist_logits": 100.0}
SURE_TEACHER = {"teacher_logits": _set_last(500.0)}

cases = shaped(
    "cls_logits: B K; dist_logits: B K; teacher_logits: B K; labels: B < K",
    also("values", ""),
    also("other sizes", "two classes", K=2),
    also("other sizes", "as many images as classes", B="K"),
    also("other sizes", "one label", values={"labels": torch.zeros_like}, B="2*K + 3"),
    also("large logits", "a teacher and heads that are sure", scale=SURE, values=SURE_TEACHER),
    also("batch of one", "a batch of one", B=1, values=APART),
    *USUAL[1:],
    ranges={"B": (9, 14), "K": (5, 8)},
    gradients=("cls_logits", "dist_logits", "teacher_logits"),
    scale=2.0,
    # the teacher hesitates between two classes, the head does not: a soft target always shows
    values={"teacher_logits": _set_first_two(0.005), "dist_logits": _set_first_two(2.0)},
    name="{B:image}, {K} classes",
)
