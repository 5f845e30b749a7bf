import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import Case, Checker, Mistake, Observation, Options, also, draw, shaped


def _own_loss(case: Case, seen: Observation) -> str:
    value = seen.arrays.get("output")
    return f"{float(value):.4g}" if value is not None and value.numel() == 1 else "another loss"


LOSS: Options = {"evidence": _own_loss}
LOG_PROBS = "logits - logits.logsumexp(dim=-1, keepdim=True)"
ON_LABEL = "log_probs.gather(1, labels.long().unsqueeze(1)).squeeze(1)"


def _first(line: str) -> dict[str, str]:
    return {"log_probs = logits": f"{line}\nlog_probs = logits"}


def _then(line: str) -> dict[str, str]:
    return {"on_label = -": f"{line}\non_label = -"}


MISTAKES = (
    families.PYTHON_NUMBER.by({"on_all).mean()": "on_all).mean().item()"}),
    Mistake(
        "summed",
        "the losses of the batch are added, not averaged",
        "the mean over the batch",
        "Twice the batch would make twice the gradient, and the learning rate would depend on the batch size.",
        "Divide by the number of images, or end with .mean().",
        {"on_all).mean": "on_all).sum"},
        **LOSS,
    ),
    Mistake(
        "over_classes",
        "the mean runs over images and classes",
        "the sum over classes, the mean over images",
        "A target with one class has K-1 zeros; they belong to the sum and are no losses of their own.",
        "Sum along dim=-1 first, then take the mean.",
        {"on_all).mean()": "on_all).mean() / logits.shape[1]"},
        **LOSS,
    ),
    Mistake(
        "over_the_batch",
        "the probabilities sum to 1 over the batch, not over the classes",
        "log-probabilities along dim=-1",
        "Each image spreads one unit of belief over the classes.",
        "Look at the dim of softmax or logsumexp.",
        {"logsumexp(dim=-1": "logsumexp(dim=0"},
        **LOSS,
    ),
    families.SIGN.by({"return ": "return -"}, **LOSS),
    families.SOFTMAX_TWICE.by(
        _first("logits = logits.softmax(dim=-1)"),
        expected="log softmax of the logits themselves",
        **LOSS,
    ),
    Mistake(
        "no_softmax",
        "the logits are taken for log-probabilities",
        "log-probabilities whose exp sums to 1",
        "A logit may be any number; a model could lower this loss without end by making all logits large.",
        "Subtract the logsumexp of each row.",
        {" - logits.logsumexp(dim=-1, keepdim=True)": ""},
        **LOSS,
    ),
    Mistake(
        "no_log",
        "the log is missing",
        "minus the log of the probability",
        "Without the log a confident mistake costs hardly more than a doubtful one.",
        "Look for the log between probability and mean.",
        _then("log_probs = log_probs.exp()"),
        **LOSS,
    ),
    Mistake(
        "base_two",
        "the log has base 2",
        "the natural log",
        "It counts bits; the rest of the world, torch included, counts nats.",
        "Use log, not log2.",
        _then("log_probs = log_probs / math.log(2)"),
        **LOSS,
    ),
    Mistake(
        "overflows",
        "large logits overflow",
        "a finite loss for logits of 10,000",
        "exp(89) is infinite in float32, and a probability of 0 has no log.",
        "Form log-probabilities from the logits with logsumexp or log_softmax.",
        {LOG_PROBS: "(logits.exp() / logits.exp().sum(dim=-1, keepdim=True)).log()"},
    ),
    Mistake(
        "epsilon_in_log",
        "a small number in the log hides large losses",
        "the loss of logits of 10,000, however large",
        "log(p + 1e-8) never asks more than 18, and its gradient vanishes where the model is most wrong.",
        "Form log-probabilities without forming probabilities.",
        {LOG_PROBS: "(logits.softmax(dim=-1) + 1e-8).log()"},
        **LOSS,
        also=tuple(
            {LOG_PROBS: f"(logits.softmax(dim=-1) + {small}).log()"} for small in (1e-10, 1e-12)
        ),
    ),
    Mistake(
        "prediction_as_label",
        "the price is that of the favourite class, not of the label",
        "the probability of the truth",
        "A model would be content with whatever it believes.",
        "Pick column labels[i], not argmax.",
        _then("labels = logits.argmax(dim=-1)"),
        **LOSS,
    ),
    Mistake(
        "labels_shifted",
        "the label's neighbour is priced",
        "column labels[i] of row i",
        "Classes count from 0, and so do columns.",
        "Look for a - 1 at the labels.",
        _then("labels = (labels - 1) % logits.shape[1]"),
        **LOSS,
    ),
    Mistake(
        "every_pair",
        "every image is priced with every label",
        "row i with labels[i]",
        "log_probs[:, labels] gives a (B, B) table of all pairs.",
        "Use gather, or index rows and columns together: log_probs[arange, labels].",
        {ON_LABEL: "log_probs[:, labels].mean(dim=-1)"},
        **LOSS,
    ),
    families.FIRST_IMAGE.by({"on_all).mean()": "on_all)[0]"}, **LOSS),
    Mistake(
        "smoothing_ignored",
        "label_smoothing changes nothing",
        "a target of (1-s) on the label plus s/K on every class",
        "The argument is there to be used.",
        "Join the label's price with the mean price of all classes.",
        _first("label_smoothing = 0.0"),
        **LOSS,
    ),
    Mistake(
        "smoothing_off_label",
        "the label gets no share of s",
        "s/K on every class, the label included",
        "The paper mixes the label with a uniform distribution, and the label is part of that.",
        "It gets 1-s and s/K, and all together sum to 1.",
        {"log_probs.mean(dim=-1)": "(log_probs.sum(dim=-1) + on_label) / (logits.shape[1] - 1)"},
        also=({"log_probs.mean(dim=-1)": "(log_probs.sum(dim=-1) + on_label) / logits.shape[1]"},),
        **LOSS,
    ),
    Mistake(
        "smoothing_missing_rest",
        "the label is made smaller, but s is given to nobody",
        "a target that sums to 1",
        "It only scales the loss.",
        "Add s times the mean price over all classes.",
        {"log_probs.mean(dim=-1)": "log_probs.mean(dim=-1) * 0"},
        **LOSS,
    ),
    Mistake(
        "smoothing_summed",
        "every class gets s, not s/K",
        "a target that sums to 1",
        "K classes would share K times s.",
        "Take the mean over the classes, not the sum.",
        {"log_probs.mean": "log_probs.sum"},
        **LOSS,
    ),
    Mistake(
        "smoothing_adds",
        "the label keeps its full weight",
        "a target that sums to 1",
        "What the others get must come from somewhere.",
        "The label's own part is 1 - s.",
        {"(1 - label_smoothing) * ": ""},
        **LOSS,
    ),
    Mistake(
        "smoothing_swapped",
        "s and 1-s have changed places",
        "1-s on the label",
        "s is the small share, for everybody.",
        "Look at which of the two multiplies the label's price.",
        _first("label_smoothing = 1 - label_smoothing if label_smoothing else 0.0"),
        **LOSS,
    ),
)


def by_nll(logits, labels, label_smoothing=0.0):
    log_probs = F.log_softmax(logits, dim=1)
    uniform = -log_probs.sum(1).mean() / logits.size(1)
    return (1 - label_smoothing) * F.nll_loss(log_probs, labels) + label_smoothing * uniform


def by_target_table(logits, labels, label_smoothing=0.0):
    K = logits.shape[-1]
    target = torch.full_like(logits, label_smoothing / K)
    target[torch.arange(len(labels)), labels] += 1 - label_smoothing
    shifted = logits - logits.max(dim=-1, keepdim=True).values
    return (target * (shifted.exp().sum(-1, keepdim=True).log() - shifted)).sum(-1).mean()


def by_loop(logits, labels, label_smoothing=0.0):
    losses = []
    for row, label in zip(logits, labels, strict=True):
        prices = torch.logsumexp(row, 0) - row
        losses.append(prices[label] * (1 - label_smoothing) + label_smoothing * prices.mean())
    return torch.stack(losses).mean()


def in_float64(logits, labels, label_smoothing=0.0):
    exact = logits.double()
    one_hot = F.one_hot(labels, exact.shape[1]).double()
    target = (1 - label_smoothing) * one_hot + label_smoothing / exact.shape[1]
    loss = exact.logsumexp(1).sum() - torch.einsum("bk,bk->", target, exact)
    return (loss / len(exact)).to(logits.dtype)


def by_divergence(logits, labels, label_smoothing=0.0):
    eye = torch.eye(logits.shape[1], dtype=logits.dtype, device=logits.device)
    target = torch.lerp(eye, torch.full_like(eye, 1 / len(eye)), label_smoothing)[labels]
    divergence = F.kl_div(logits.log_softmax(-1), target, reduction="batchmean")
    return divergence - torch.xlogy(target, target).sum() / len(target)


PLAIN = "logits: B K; labels: B < K"
SMOOTHED, MORE = f"{PLAIN}; label_smoothing = s / 50", f"{PLAIN}; label_smoothing = t / 50"
LEARNS = {"gradients": ("logits",)}
# logsumexp of 1e4 rounds to 2e-3
LARGE: Options = {"part": "large scores", "rtol": 1e-4, "atol": 8e-3}

ABSENT = "the last class does not occur"
DRAWN = shaped(
    PLAIN,
    also("values", "", **LEARNS),
    also("label smoothing", "", shapes=SMOOTHED, **LEARNS),
    also("label smoothing", "by keyword", shapes=MORE, keywords=("label_smoothing",), **LEARNS),
    also("label smoothing", "", shapes=f"{PLAIN}; label_smoothing = 1.0"),
    also("other sizes", "one image", B=1),
    also("other sizes", "as many images as classes", B="K"),
    also("other sizes", "two classes", K=2),
    also("other sizes", "two classes", shapes=SMOOTHED, K=2),
    also("other sizes", ABSENT),
    also("other sizes", ABSENT, shapes=SMOOTHED),
    # no probability so small that another mistake than one of dtype shows here now and then
    also("other sizes", "float64", shapes=SMOOTHED, dtype=torch.float64, scale=0.25),
    also(note="scores around 10,000", scale=1e4, **LARGE),
    also(note="scores around 10,000", shapes=SMOOTHED, scale=1e4, **LARGE),
    also(note="scores all near 10,000", values={"logits": lambda x: x + 1e4}, **LARGE),
    also(note="scores all near -10,000", values={"logits": lambda x: x - 1e4}, **LARGE),
    also("any device", "on an accelerator", shapes=SMOOTHED, on_accelerator=True),
    ranges={"B": (3, 7), "K": (3, 7), "s": (4, 20), "t": (21, 40)},
    scale=2.0,
)


def cases(g: torch.Generator) -> list[Case]:
    """Draw scores and labels; the last class occurs in all cases but one."""
    made = DRAWN(g)
    for case in made:
        labels, K = case.args["labels"], case.args["logits"].shape[1]
        if ABSENT in case.name:
            labels.remainder_(K - 1)
        else:
            labels[draw(g, 0, len(labels) - 1)] = K - 1
    return made


CHECKER = Checker(
    "cross_entropy",
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
    special="len(labels) == 1; logits.shape[1] == 2; logits.shape[0] == logits.shape[1]; "
    "label_smoothing == 0; label_smoothing == 1",
    equivalent={
        "the mean over all pairs (i, j) of a_i + b_j is the mean of a plus that of b": (
            "log_probs.mean()",
            ".squeeze(0)",
            ".squeeze(-2)",
            ".squeeze()",
            "(1, labels.long().unsqueeze(1)).unsqueeze",
            "on_label = -log_probs.gather(1, labels.long().unsqueeze(1))",
        ),
    },
    left_open={
        "labels of a smaller integer type than int64 are not asked for": ("labels.unsqueeze",),
    },
)
