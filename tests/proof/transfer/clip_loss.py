"""Right answers to 9.3 clip_loss, and what becomes of its mutants."""

import torch
import torch.nn.functional as F
from torch import nn

from proof.reasons import DEFAULT


def by_logsumexp(image_features, text_features, temperature):
    image = image_features / image_features.norm(dim=1, keepdim=True)
    text = text_features / text_features.norm(dim=1, keepdim=True)
    table = torch.einsum("id,jd->ij", image, text) / temperature
    pairs = table.diagonal()
    return 0.5 * ((table.logsumexp(0) - pairs).mean() + (table.logsumexp(1) - pairs).mean())


def by_cosine(image_features, text_features, temperature):
    table = F.cosine_similarity(image_features[:, None], text_features[None], dim=2) / temperature
    rows, columns = table.log_softmax(dim=1), table.log_softmax(dim=0)
    return -(torch.trace(rows) + torch.trace(columns)) / (2 * len(table))


def by_loops(image_features, text_features, temperature):
    image = [row / row.square().sum().sqrt() for row in image_features]
    text = [row / row.square().sum().sqrt() for row in text_features]
    total = 0
    for i in range(len(image)):
        row = torch.stack([image[i] @ t for t in text]) / temperature
        column = torch.stack([picture @ text[i] for picture in image]) / temperature
        total = total - row.log_softmax(0)[i] - column.log_softmax(0)[i]
    return total / 2 / len(image)


def with_targets(image_features, text_features, temperature):
    table = F.normalize(text_features) @ F.normalize(image_features).mT * (1 / temperature)
    target = torch.eye(len(table)).to(table)
    criterion = nn.CrossEntropyLoss()
    return torch.stack([criterion(table, target), criterion(table.t(), target)]).mean()


SAME_PAIRS = {
    "images and texts have the same part in the loss": (
        "text, image",
        "(text_features, dim=-1), F.normalize(image_features, dim=-1)",
    ),
    DEFAULT: (
        "image, text = (F.normalize(image_features), F.normalize(text_features, dim=-1))",
        "image, text = (F.normalize(image_features, dim=-1), F.normalize(text_features))",
    ),
}

EQUIVALENT = SAME_PAIRS


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(image_features) == 1",
    "len(image_features) == image_features.shape[1]",
    "temperature == 1",
)
