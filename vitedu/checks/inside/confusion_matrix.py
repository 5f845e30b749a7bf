"""5.5 confusion_matrix: which class for which."""

import torch

from vitedu.checks.writing.kit import ON_ACCELERATOR, also, shaped

FEW = "predictions: n < K-1; labels: n < K-1; num_classes = K"  # the last class does not occur
MISSED = {"predictions": torch.zeros_like, "labels": torch.ones_like}
ONLY_ANSWERED = "predictions: n < K; labels: n < K-2; num_classes = K"

cases = shaped(
    "predictions: n < K; labels: n < K; num_classes = K",
    also("absent classes", "the last class never occurs", shapes=FEW),
    also("absent classes", "a class that is only answered", shapes=ONLY_ANSWERED),
    # without the last class: whether it occurs among so few shall not be left to chance
    also("batch of one", "one image, not recognised", shapes=FEW, n=1, values=MISSED),
    also("other sizes", "as many images as classes", shapes=FEW, n="K"),
    also("other sizes", "two classes", K=2),
    also("dtype", "two classes, more images than a byte counts", K=2, n=1200),
    ON_ACCELERATOR,
    ranges={"n": (40, 60), "K": (4, 12)},
    name="{n:image}, {K} classes",
)
