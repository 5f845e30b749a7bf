"""Checker of cross_entropy: its cases, its known mistakes, and what is said of them."""

import math

import torch

from vitedu import training as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal
from vitedu.checks.probing import Case, Observation


def cross_entropy_cases(g: torch.Generator) -> list[Case]:
    """Draw logits and labels; no batch whose labels are all the favourite classes."""

    def case(B, K, smoothing=None, scale=2.0, note="", dtype=torch.float32, **rest):
        logits = scale * normal(g, B, K, dtype=torch.float64)
        labels = torch.randint(0, K, (B,), generator=g)
        labels[0] = (logits[0].argmax() + 1) % K
        args = {"logits": logits.to(dtype), "labels": labels}
        if smoothing is not None:
            args["label_smoothing"] = smoothing
            note = f", label_smoothing={smoothing:g}{note}"
        return Case(f"logits ({B}, {K}){note}", args, **rest)

    B, K, K2 = distinct(g, 3, 3, 7)
    s, t = (draw(g, 4, 20) / 50, draw(g, 21, 40) / 50)
    large = {"part": "large scores", "rtol": 1e-4, "atol": 8e-3}  # logsumexp of 1e4 rounds to 2e-3
    smooth = {"part": "label smoothing", "gradients": ("logits",)}
    flat = 1e4 + normal(g, B, K)
    return [
        case(B, K, gradients=("logits",)),
        case(K, B, gradients=("logits",)),
        case(B, K2, smoothing=s, **smooth),
        case(K2, B, smoothing=t, keywords=("label_smoothing",), note=", by keyword", **smooth),
        case(B, K, smoothing=1.0, part="label smoothing"),
        case(1, K, part="other sizes"),
        case(K2, K2, part="other sizes"),
        case(K, 2, part="other sizes"),
        case(B, K, dtype=torch.float64, part="other sizes", smoothing=s, note=", float64"),
        case(B, K, scale=1e4, note=", scores around 10,000", **large),
        case(B, K, scale=1e4, smoothing=s, note=", scores around 10,000", **large),
        Case(
            "scores all near 10,000", {"logits": flat, "labels": torch.arange(B) % K}, **large
        ),
        Case(
            "scores all near -10,000", {"logits": -flat, "labels": torch.arange(B) % K}, **large
        ),
        case(B, K, smoothing=s, note=", on an accelerator", part="any device", on_accelerator=True),
    ]  # fmt: skip


def faulty_cross_entropy(mistakes: frozenset[str]):
    """Price with the named mistakes made."""

    def log_probs_of(logits):
        if "softmax_first" in mistakes:
            logits = logits.softmax(dim=-1)
        if "no_softmax" in mistakes:
            return logits
        dim = 0 if "over_the_batch" in mistakes else -1
        if "overflows" in mistakes:
            return (logits.exp() / logits.exp().sum(dim=dim, keepdim=True)).log()
        if "epsilon_in_log" in mistakes:
            return (logits.softmax(dim=dim) + 1e-8).log()
        return logits.log_softmax(dim=dim)

    def cross_entropy(logits, labels, label_smoothing=0.0):
        B, K = logits.shape
        s = 0.0 if "smoothing_ignored" in mistakes else label_smoothing
        if "prediction_as_label" in mistakes:
            labels = logits.argmax(dim=-1)
        if "labels_shifted" in mistakes:
            labels = (labels - 1) % K
        log_probs = log_probs_of(logits)
        if "base_two" in mistakes:
            log_probs = log_probs / math.log(2)
        if "no_log" in mistakes:
            log_probs = log_probs.exp()
        if "every_pair" in mistakes:  # log_probs[:, labels]
            on_label = log_probs[:, labels].mean(dim=-1)
        else:
            on_label = log_probs.gather(1, labels[:, None]).squeeze(1)
        on_all = log_probs.mean(dim=-1)
        if "smoothing_summed" in mistakes:
            on_all = on_all * K
        if "smoothing_off_label" in mistakes:
            on_all = (log_probs.sum(dim=-1) - on_label) / (K - 1)
        if "smoothing_missing_rest" in mistakes:
            on_all = on_all * 0
        weight = s if "smoothing_swapped" in mistakes else 1 - s
        if "smoothing_adds" in mistakes:
            weight = 1.0
        if "smoothing_swapped" in mistakes and s == 0:
            weight = 1.0  # who writes it so tests for 0 first
        rest = 1 - weight if "smoothing_swapped" in mistakes else s
        loss = -(weight * on_label + rest * on_all)
        if "sign" in mistakes:
            loss = -loss
        if "first_image" in mistakes:
            return loss[0]
        if "python_number" in mistakes:
            return loss.mean().item()
        total = loss.sum()
        if "summed" in mistakes:
            return total
        if "over_classes" in mistakes:
            return total / (B * K)
        return total / B

    return cross_entropy


def _own_loss(case: Case, seen: Observation) -> str:
    value = seen.arrays.get("output")
    return f"{float(value):.4g}" if value is not None and value.numel() == 1 else "another loss"


CROSS_ENTROPY_BANK = (
    Misconception(
        "python_number", "the loss is a Python number", "a 0-d tensor", "A float has no graph; nothing could be learned from it.",
        "Leave out .item() and float().",
    ),
    Misconception(
        "summed", "the losses of the batch are added, not averaged", "the mean over the batch",
        "Twice the batch would make twice the gradient, and the learning rate would depend on the batch size.",
        "Divide by the number of images, or end with .mean().", evidence=_own_loss,
    ),
    Misconception(
        "over_classes", "the mean runs over images and classes", "the sum over classes, the mean over images",
        "A target with one class has K-1 zeros; they belong to the sum and are no losses of their own.",
        "Sum along dim=-1 first, then take the mean.", evidence=_own_loss,
    ),
    Misconception(
        "over_the_batch", "the probabilities sum to 1 over the batch, not over the classes", "log-probabilities along dim=-1",
        "Each image spreads one unit of belief over the classes.", "Look at the dim of softmax or logsumexp.", evidence=_own_loss,
    ),
    Misconception(
        "sign", "the sign is turned", "a loss of at least 0", "The optimizer would make the truth less likely.",
        "The log of a probability is at most 0; look for the minus.", evidence=_own_loss,
    ),
    Misconception(
        "softmax_first", "softmax is applied twice", "log softmax of the logits themselves",
        "Probabilities lie between 0 and 1; as logits they can hardly prefer any class.",
        "Leave the logits as the model gave them.", evidence=_own_loss,
    ),
    Misconception(
        "no_softmax", "the logits are taken for log-probabilities", "log-probabilities whose exp sums to 1",
        "A logit may be any number; a model could lower this loss without end by making all logits large.",
        "Subtract the logsumexp of each row.", evidence=_own_loss,
    ),
    Misconception(
        "no_log", "the log is missing", "minus the log of the probability",
        "Without the log a confident mistake costs hardly more than a doubtful one.",
        "Look for the log between probability and mean.", evidence=_own_loss,
    ),
    Misconception(
        "base_two", "the log has base 2", "the natural log", "It counts bits; the rest of the world, torch included, counts nats.",
        "Use log, not log2.", evidence=_own_loss,
    ),
    Misconception(
        "overflows", "large logits overflow", "a finite loss for logits of 10,000",
        "exp(89) is infinite in float32, and a probability of 0 has no log.",
        "Form log-probabilities from the logits with logsumexp or log_softmax.",
    ),
    Misconception(
        "epsilon_in_log", "a small number in the log hides large losses", "the loss of logits of 10,000, however large",
        "log(p + 1e-8) never asks more than 18, and its gradient vanishes where the model is most wrong.",
        "Form log-probabilities without forming probabilities.", evidence=_own_loss,
    ),
    Misconception(
        "prediction_as_label", "the price is that of the favourite class, not of the label", "the probability of the truth",
        "A model would be content with whatever it believes.", "Pick column labels[i], not argmax.", evidence=_own_loss,
    ),
    Misconception(
        "labels_shifted", "the label's neighbour is priced", "column labels[i] of row i", "Classes count from 0, and so do columns.",
        "Look for a - 1 at the labels.", evidence=_own_loss,
    ),
    Misconception(
        "every_pair", "every image is priced with every label", "row i with labels[i]",
        "log_probs[:, labels] gives a (B, B) table of all pairs.",
        "Use gather, or index rows and columns together: log_probs[arange, labels].", evidence=_own_loss,
    ),
    Misconception(
        "first_image", "only the first image counts", "the mean over the batch", "The others would teach nothing.",
        "Look for an index 0, or for a return inside the loop.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_ignored", "label_smoothing changes nothing", "a target of (1-s) on the label plus s/K on every class",
        "The argument is there to be used.", "Join the label's price with the mean price of all classes.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_off_label", "the label gets no share of s", "s/K on every class, the label included",
        "The paper mixes the label with a uniform distribution, and the label is part of that.",
        "The K shares are s/K, not s/(K-1).", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_missing_rest", "the label is made smaller, but s is given to nobody", "a target that sums to 1",
        "It only scales the loss.", "Add s times the mean price over all classes.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_summed", "every class gets s, not s/K", "a target that sums to 1", "K classes would share K times s.",
        "Take the mean over the classes, not the sum.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_adds", "the label keeps its full weight", "a target that sums to 1", "What the others get must come from somewhere.",
        "The label's own part is 1 - s.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_swapped", "s and 1-s have changed places", "1-s on the label", "s is the small share, for everybody.",
        "Look at which of the two multiplies the label's price.", evidence=_own_loss,
    ),
)  # fmt: skip

CHECKER = Checker(
    "cross_entropy",
    reference.cross_entropy,
    cross_entropy_cases,
    faulty_cross_entropy,
    CROSS_ENTROPY_BANK,
    forbidden=frozenset(
        "cross_entropy cross_entropy_loss cross_entropy_loss.default aten.cross_entropy_loss linear_cross_entropy".split()
    ),
    forbidden_words="F.cross_entropy and nn.CrossEntropyLoss",
    proves={
        "values": "the mean of minus the log-probability of the label",
        "label smoothing": "with the target (1-s) on the label plus s/K on every class",
        "other sizes": "also for one image, two classes, and float64",
        "large scores": "finite and right for scores of 10,000",
    },
    advice={
        "label smoothing": (
            "Without smoothing your loss is right.",
            "Print your target for K = 3, s = 0.3, label 0: it should be [0.8, 0.1, 0.1] and sum to 1.",
        ),
        "large scores": (
            "At 10,000 exp overflows, and far below the largest score it gives 0, which has no log.",
            "Form no probability, and shift each row by its own largest score; logsumexp does both.",
        ),
    },
)
