"""7.4 dino_loss: one view answers for another."""

import torch

from vitedu.checks.writing.kit import USUAL, also, shaped


def _make_sure(logits: torch.Tensor) -> torch.Tensor:
    """Give 100 to the first prototype and 0 to all others."""
    return 100 * (torch.arange(logits.shape[1]) == 0).to(logits).expand_as(logits)


SURE = dict.fromkeys(("student_logits", "teacher_logits"), _make_sure)
SHAPES = "student_logits: B K; teacher_logits: B K; center: K"
WARM = SHAPES + "; student_temperature = s / 10; teacher_temperature = t / 10"
WARM_TEACHER = SHAPES + "; teacher_temperature = t / 20"
ALL = {"gradients": ("student_logits", "teacher_logits", "center")}
LARGE = {"student_logits": 100.0, "teacher_logits": 1e5, "center": 0.0}

cases = shaped(
    SHAPES,
    also("values", "", shapes=WARM, scale=1.0, **ALL),
    also("values", "by keyword", shapes=WARM_TEACHER, keywords=("teacher_temperature",)),
    also("large logits", "a sure teacher", B="3 * K", scale=LARGE, rtol=1e-4, atol=1e-2),
    also("other sizes", "as many images as prototypes", B="K"),
    also("other sizes", "two prototypes", K=2),
    also("other sizes", "many prototypes", K="B*B + 60", scale=0.03),
    also("large logits", "all sure of one prototype", values=SURE),
    # here a small number that somebody adds is not felt
    also("batch of one", "a batch of one", B=1, scale=0.05),
    also("dtype", "float64", dtype=torch.float64, rtol=1e-4, atol=1e-4),
    *USUAL[2:],
    ranges={"B": (4, 7), "K": (8, 11), "s": (12, 16), "t": (4, 7)},
    scale=0.15,
    name="{B:image}, {K} prototypes",
)
