import torch
import torch.nn.functional as F

from vitedu.checks.kit import USUAL, Checker, Mistake, Options, also, families, shaped
from vitedu.checks.training.cross_entropy import LOSS
from vitedu.checks.transfer.clip_loss import BOTH as CLIP
from vitedu.checks.transfer.clip_loss import COSINES, SAME_PAIRS, TWINS, VALUES

LOGITS = "scale * image @ text.T + bias"
SUM = "-F.logsigmoid(signs * logits).sum() / len(logits)"
EYE = "torch.eye(len(logits), dtype=logits.dtype, device=logits.device)"
SIGNS = f"2 * {EYE} - 1"
BELONG = "plus on the diagonal, minus off it"

MISTAKES = (
    *COSINES,
    Mistake(
        "mean_over_pairs",
        "the sum is divided by all pairs",
        "divided by B",
        "The B pairs that belong together would count less, the larger the batch.",
        "Divide by B.",
        {SUM: "-F.logsigmoid(signs * logits).mean()"},
        **LOSS,
    ),
    Mistake(
        "two_means",
        "pairs that belong together and all others are averaged separately",
        "one sum, divided by B",
        "The others count B - 1 times as much in the sum.",
        "Add up all B x B, then divide once.",
        {
            SUM: f"-F.logsigmoid(logits.diagonal()).mean() - F.logsigmoid(-logits[{EYE} == 0]).mean()"
        },
        **LOSS,
    ),
    Mistake(
        "not_divided",
        "the sum is not divided",
        "divided by B",
        "Twice the batch would make more than twice the step.",
        "Divide by B.",
        {" / len(logits)": ""},
        **LOSS,
    ),
    Mistake(
        "bias_ignored",
        "the bias is left out",
        "scale * cosine + bias",
        "Most pairs do not belong together, and the bias knows it.",
        "Add it.",
        {" + bias": ""},
        **LOSS,
    ),
    Mistake(
        "bias_subtracted",
        "the bias is subtracted",
        "scale * cosine + bias",
        "It is below zero already.",
        "Add it.",
        {"+ bias": "- bias"},
        **LOSS,
    ),
    Mistake(
        "bias_scaled",
        "the bias is scaled, too",
        "scale * cosine + bias",
        "The bias is added after the scale.",
        "Look at the brackets.",
        {LOGITS: "scale * (image @ text.T + bias)"},
        **LOSS,
    ),
    Mistake(
        "bias_on_diagonal",
        "the bias is added where image and text belong together",
        "the bias on every pair",
        "It says how rare a match is among all pairs.",
        "Add it to all logits.",
        {
            LOGITS: "scale * image @ text.T + bias * torch.eye(len(image), dtype=image.dtype, device=image.device)"
        },
        **LOSS,
    ),
    Mistake(
        "bias_after_sign",
        "the sign is applied before the bias is added",
        "the sign of the whole logit",
        "A pair that does not belong together would be pushed the wrong way.",
        "Multiply last.",
        {LOGITS: "scale * image @ text.T", "signs * logits": "signs * logits + bias"},
        **LOSS,
    ),
    Mistake(
        "scale_ignored",
        "the scale is left out",
        "scale * cosine + bias",
        "Cosines alone are too small to decide.",
        "Multiply.",
        {"scale * image": "image"},
        **LOSS,
    ),
    Mistake(
        "scale_divided",
        "the cosines are divided by the scale",
        "scale * cosine + bias",
        "CLIP's temperature divides, SigLIP's scale multiplies.",
        "Multiply.",
        {"scale * image": "(1 / scale) * image"},
        also=({LOGITS: "image @ text.T / scale + bias"},),
        **LOSS,
    ),
    Mistake(
        "scale_exponential",
        "exp of the scale is used",
        "scale * cosine + bias",
        "SigLIP's code learns the log of a scale; here the scale itself is given.",
        "Multiply by it.",
        {"scale * image": "math.exp(min(scale, 80.0)) * image"},
        **LOSS,
    ),
    Mistake(
        "diagonal_only",
        "only the pairs that belong together count",
        "all B x B pairs",
        "All features could become equal, at no price.",
        "Sum over the whole table.",
        {"(signs * logits)": "(logits.diagonal())"},
        **LOSS,
    ),
    Mistake(
        "others_only",
        "only the pairs that do not belong together count",
        "all B x B pairs",
        "Nothing would draw a pair together.",
        "Sum over the whole table.",
        {SUM: f"-(F.logsigmoid(signs * logits) * (1 - {EYE})).sum() / len(logits)"},
        **LOSS,
    ),
    Mistake(
        "all_together",
        "every pair is said to belong together",
        BELONG,
        "All features would become equal.",
        "Use -1 off the diagonal.",
        {"signs * logits": "logits"},
        **LOSS,
    ),
    Mistake(
        "twins_together",
        "equal texts belong to the same images",
        "plus on the diagonal, minus off it, whatever the features are",
        "Pairs are known by their place in the batch.",
        "Use the diagonal.",
        {SIGNS: "2.0 * (text_features[:, None] == text_features).all(dim=-1) - 1"},
        part="other sizes",
    ),
    Mistake(
        "signs_turned",
        "the signs are turned",
        BELONG,
        "Pairs would be driven apart.",
        "2 * eye - 1 has +1 on the diagonal.",
        {SIGNS: f"1 - 2 * {EYE}"},
        **LOSS,
    ),
    Mistake(
        "zeros_off_diagonal",
        "labels 0 and 1 are used where -1 and 1 belong",
        BELONG,
        "logsigmoid(0) is log 2 for every other pair, whatever the model says.",
        "Use 2 * eye - 1.",
        {SIGNS: EYE},
        **LOSS,
    ),
    Mistake(
        "sign_of_loss",
        "the minus is missing",
        "minus the sum of logsigmoid",
        "The optimizer would make it worse.",
        "logsigmoid is at most 0.",
        {SUM: SUM[1:]},
        **LOSS,
    ),
    Mistake(
        "no_log",
        "the log is missing",
        "logsigmoid",
        "A confident mistake would cost hardly more than a doubtful one.",
        "Use F.logsigmoid.",
        {"F.logsigmoid": "torch.sigmoid"},
        **LOSS,
    ),
    Mistake(
        "overflows",
        "the logarithm of a sigmoid is computed in two steps",
        "finite for logits of 1e4",
        "In float32 sigmoid(-104) is 0, which has no log, and exp(89) is infinite.",
        "Use F.logsigmoid, or softplus.",
        {"F.logsigmoid(signs * logits)": "torch.sigmoid(signs * logits).log()"},
        also=({"-F.logsigmoid(signs * logits)": "(1 + (-signs * logits).exp()).log()"},),
        part="large logits",
    ),
    Mistake(
        "epsilon_in_log",
        "a small number in the log hides large losses",
        "the loss of logits of 1e4, however large",
        "log(p + 1e-8) never asks more than 18.",
        "Use F.logsigmoid, or softplus.",
        {"F.logsigmoid(signs * logits)": "(torch.sigmoid(signs * logits) + 1e-8).log()"},
        part="large logits",
    ),
    Mistake(
        "softmax",
        "softmax over the batch is used",
        "each pair by itself",
        "That is CLIP's loss.",
        "Use logsigmoid.",
        {SUM: CLIP.replace("labels", "torch.arange(len(logits), device=logits.device)")},
        **LOSS,
    ),
    families.PYTHON_NUMBER.by({SUM: f"({SUM}).item()"}),
)


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


PAIRS = "image_features: B D; text_features: B D; scale = {scale}; bias = {bias}"


def _given(scale: str, bias: str) -> str:
    """Write the arguments with these two numbers."""
    return PAIRS.format(scale=scale, bias=bias)


# no cosine below 0: no loss at SigLIP's start is so large that a small number in the log shows in it
MILD = {"image_features": torch.abs, "text_features": torch.abs}
LARGE: Options = {"part": "large logits", "rtol": 1e-4, "atol": 2e-2}

CHECKER = Checker(
    "sigmoid_contrastive_loss",
    cases=shaped(
        _given("s / 2", "-b / 4"),
        also(note="scale 10,000", shapes=_given("1e4", "-b / 4"), **LARGE),
        also(note="bias 10,000", shapes=_given("s / 2", "1e4"), **LARGE),
        also(note="bias -10,000", shapes=_given("s / 2", "-1e4"), **LARGE),
        also(
            "other sizes",
            "SigLIP's start: scale 10, bias -10, by keyword",
            shapes=_given("10.0", "-10.0"),
            keywords=("scale", "bias"),
            values=MILD,
        ),
        also("other sizes", "scale and bias 0", shapes=_given("0.0", "0.0")),
        also(
            "other sizes",
            "features of length 1",
            values={"image_features": F.normalize, "text_features": F.normalize},
        ),
        also("other sizes", "as many pairs as features", B="D"),
        also("other sizes", "two equal images, two equal texts", values=TWINS),
        *USUAL,
        ranges={"B": (4, 7), "D": (3, 6), "s": (3, 9), "b": (3, 9)},
        values=VALUES,
        name="{B:pair} of {D} features",
        rtol=2e-4,
        atol=2e-5,
    ),
    proves={
        "values": "minus the sum of logsigmoid over all pairs, each with its sign, divided by B",
        "large logits": "finite and right for logits of 10,000",
        "other sizes": "also for one pair, for scale and bias 0, for features of length 1, and float64",
    },
    equivalent={
        **SAME_PAIRS,
        "a product has the larger dtype of its factors": (
            "signs = 2 * torch.eye(len(logits), device=logits.device) - 1",
        ),
    },
    special="len(image_features) == 1; len(image_features) == image_features.shape[1]; bias == 0",
)
