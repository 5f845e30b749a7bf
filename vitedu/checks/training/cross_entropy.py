"""4.1 cross_entropy: the price of a wrong belief."""

import torch
from torch import Generator

from vitedu.checks.writing.kit import USUAL, Case, also, draw, shaped

PLAIN = "logits: B K; labels: B < K"
SMOOTHING, STRONGER = f"{PLAIN}; label_smoothing = s / 50", f"{PLAIN}; label_smoothing = t / 50"
GRADS = {"gradients": ("logits",)}

# logsumexp of 1e4 rounds to 2e-3
LARGE: dict = {"part": "large scores", "rtol": 1e-4, "atol": 8e-3}
SMOOTH = LARGE | {"part": "label smoothing"}
ABSENT_CLASS, ONE_CLASS = "the last class does not occur", "one label for all images"
UNLIKELY = "float64, labels that are least likely"

SHAPED_CASES = shaped(
    PLAIN,
    also("values", "", **GRADS),
    also("other sizes", "zeros and ties", B="K", values={"logits": torch.Tensor.round}),
    also("other sizes", "two classes", K=2),
    also("other sizes", ABSENT_CLASS),
    also("batch of one", "one image", B=1),
    also(note="scores around 10,000", scale=1e4, **LARGE),
    also(note="scores all near 10,000", values={"logits": lambda x: x + 1e4}, **LARGE),
    also(note="scores all near -10,000", values={"logits": lambda x: x - 1e4}, **LARGE),
    also("label smoothing", "", shapes=SMOOTHING, **GRADS),
    also("label smoothing", "by keyword", shapes=STRONGER, keywords=("label_smoothing",), **GRADS),
    also("label smoothing", "", shapes=f"{PLAIN}; label_smoothing = 1.0", K=2),
    also("label smoothing", ABSENT_CLASS, shapes=SMOOTHING),
    also(note="scores around 10,000", shapes=SMOOTHING, scale=1e4, **SMOOTH),
    # no probability so small, and no label so likely, that a mistake shows here now and then
    also("label smoothing", UNLIKELY, shapes=SMOOTHING, K=3, dtype=torch.float64, scale=0.25),
    also("labels alike", ONE_CLASS),
    also("dtype", "float64", dtype=torch.float64, scale=0.25),
    *USUAL[2:],
    ranges={"B": (3, 17), "K": (3, 12), "s": (4, 20), "t": (21, 40)},
    scale=2.0,
)


def cases(g: Generator) -> list[Case]:
    """Draw scores and labels; the last class occurs where nothing else is said."""
    result = SHAPED_CASES(g)
    for case in result:
        labels, K = case.args["labels"], case.args["logits"].shape[1]
        if ABSENT_CLASS in case.name:
            labels.remainder_(K - 1)
        elif ONE_CLASS in case.name:
            labels.fill_(draw(g, 0, K - 1))
        elif UNLIKELY in case.name or len(labels) == 1:
            labels.copy_(case.args["logits"].argmin(dim=1))  # not what is predicted
        else:
            labels[draw(g, 0, len(labels) - 1)] = K - 1
    return result


forbidden = frozenset(
    "cross_entropy cross_entropy_loss cross_entropy_loss.default aten.cross_entropy_loss "
    "linear_cross_entropy".split()
)
forbidden_words = "F.cross_entropy and nn.CrossEntropyLoss"
weights = {"large scores": 3}
