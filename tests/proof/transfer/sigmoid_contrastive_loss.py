"""Right answers to 9.7 sigmoid_contrastive_loss, and what becomes of its mutants."""

import torch
import torch.nn.functional as F

from proof.transfer.clip_loss import SAME_PAIRS


def by_softplus(image_features, text_features, scale, bias):
    image = image_features / image_features.norm(dim=1, keepdim=True)
    text = text_features / text_features.norm(dim=1, keepdim=True)
    logits = torch.einsum("id,jd->ij", image, text) * scale + bias
    together = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    return F.softplus(torch.where(together, -logits, logits)).sum() / logits.shape[0]


def by_binary_cross_entropy(image_features, text_features, scale, bias):
    logits = F.cosine_similarity(image_features[:, None], text_features[None], dim=2) * scale + bias
    targets = torch.eye(len(logits)).to(logits)
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="sum") / len(targets)


def by_loops(image_features, text_features, scale, bias):
    total = 0
    for i, image in enumerate(F.normalize(image_features)):
        for j, text in enumerate(F.normalize(text_features)):
            logit = scale * image.dot(text) + bias
            total = total - F.logsigmoid(logit if i == j else -logit)
    return total / len(image_features)


def by_two_sums(image_features, text_features, scale, bias):
    image, text = (F.normalize(x, p=2.0, dim=1) for x in (image_features, text_features))
    logits = torch.addmm(torch.zeros_like(image[:, :1]) + bias, scale * image, text.t())
    alike = torch.diagonal(logits)
    everywhere = torch.logaddexp(logits, torch.zeros_like(logits)).sum()
    return (everywhere - alike.sum()) / alike.numel()  # softplus(-x) = softplus(x) - x


EQUIVALENT = {
    **SAME_PAIRS,
    "a product has the larger dtype of its factors": (
        "signs = 2 * torch.eye(len(logits), device=logits.device) - 1",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(image_features) == 1",
    "len(image_features) == image_features.shape[1]",
    "bias == 0",
)
