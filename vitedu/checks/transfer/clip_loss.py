import torch
import torch.nn.functional as F
from torch import nn

from vitedu.checks.kit import DEFAULT, USUAL, Checker, Mistake, also, families, shaped
from vitedu.checks.training.cross_entropy import LOSS

UNITS = "F.normalize(image_features, dim=-1), F.normalize(text_features, dim=-1)"
TABLE = "image @ text.T / temperature"
BOTH = "(F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2"
NORMALISED = "cosines: the loss normalises both features"

# of both losses over pairs
COSINES = (
    Mistake(
        "not_normalised",
        "the features are not normalised",
        NORMALISED,
        "Long vectors would decide.",
        "Divide each row by its own length.",
        {UNITS: "image_features, text_features"},
        **LOSS,
    ),
    Mistake(
        "images_only",
        "only the images are normalised",
        NORMALISED,
        "Texts with long vectors would decide.",
        "Do the same to the texts.",
        {"F.normalize(text_features, dim=-1)": "text_features"},
        **LOSS,
    ),
    Mistake(
        "texts_only",
        "only the texts are normalised",
        NORMALISED,
        "Images with long vectors would decide.",
        "Do the same to the images.",
        {"F.normalize(image_features, dim=-1)": "image_features"},
        **LOSS,
    ),
    Mistake(
        "columns_normalised",
        "each feature is normalised over the batch",
        NORMALISED,
        "The result for a pair would depend on the others' lengths.",
        "Look at dim.",
        {UNITS: "F.normalize(image_features, dim=0), F.normalize(text_features, dim=0)"},
        **LOSS,
    ),
    Mistake(
        "images_with_images",
        "images are compared with images",
        "images with texts",
        "Every image is like itself: the loss is small for nothing.",
        "Look at the product.",
        {"image @ text.T": "image @ image.T"},
        **LOSS,
    ),
    Mistake(
        "texts_with_texts",
        "texts are compared with texts",
        "images with texts",
        "Every text is like itself: the loss is small for nothing.",
        "Look at the product.",
        {"image @ text.T": "text @ text.T"},
        **LOSS,
    ),
)

MISTAKES = (
    *COSINES,
    Mistake(
        "table_normalised",
        "the table of products is normalised, not the features",
        NORMALISED,
        "A row of the table then depends on all texts of the batch.",
        "Divide each feature by its length before the product.",
        {
            UNITS: "image_features, text_features",
            TABLE: "F.normalize(image @ text.T, dim=-1) / temperature",
        },
        **LOSS,
    ),
    Mistake(
        "softmax_features",
        "softmax is applied to the features",
        NORMALISED,
        "Features are directions, not probabilities.",
        "Divide each row by its length.",
        {UNITS: "image_features.softmax(dim=-1), text_features.softmax(dim=-1)"},
        **LOSS,
    ),
    Mistake(
        "length_one_norm",
        "rows are divided by the sum of their sizes",
        NORMALISED,
        "A cosine needs the root of the sum of squares.",
        "Use F.normalize as it is.",
        {
            UNITS: "F.normalize(image_features, p=1, dim=-1), F.normalize(text_features, p=1, dim=-1)"
        },
        **LOSS,
    ),
    Mistake(
        "temperature_multiplied",
        "the cosines are multiplied by the temperature",
        "divided by the temperature",
        "A small temperature shall sharpen.",
        "Divide.",
        {"/ temperature": "* temperature"},
        **LOSS,
    ),
    Mistake(
        "temperature_ignored",
        "the temperature is left out",
        "cosines divided by the temperature",
        "Cosines lie between -1 and 1: softmax hardly prefers any.",
        "Use the argument.",
        {" / temperature": ""},
        **LOSS,
    ),
    Mistake(
        "temperature_exponential",
        "exp of the temperature is used",
        "cosines divided by the temperature",
        "CLIP's code learns the log of a scale; here the temperature itself is given.",
        "Divide by it.",
        {"/ temperature": "* math.exp(temperature)"},
        **LOSS,
    ),
    Mistake(
        "fixed_temperature",
        "the temperature is a constant",
        "the argument temperature",
        "Whoever calls chooses it.",
        "Use the argument.",
        {"/ temperature": "/ 0.07"},
        also=({"/ temperature": "* 100"},),
        **LOSS,
    ),
    Mistake(
        "temperature_root",
        "the cosines are divided by the root of the temperature",
        "divided by the temperature",
        "There is no root in it.",
        "Divide by it.",
        {"/ temperature": "/ temperature**0.5"},
        **LOSS,
    ),
    Mistake(
        "scaled_by_width",
        "the cosines are divided by the root of the width",
        "cosines / temperature",
        "That belongs to attention; cosines do not grow with the width.",
        "Leave it out.",
        {"/ temperature": "/ temperature / image.shape[-1] ** 0.5"},
        **LOSS,
    ),
    Mistake(
        "images_to_texts_only",
        "only images look for their texts",
        "the mean of both directions",
        "Texts look for their images, too: the columns.",
        "Add the loss of logits.T.",
        {BOTH: "F.cross_entropy(logits, labels)"},
        **LOSS,
    ),
    Mistake(
        "texts_to_images_only",
        "only texts look for their images",
        "the mean of both directions",
        "Images look for their texts, too: the rows.",
        "Add the loss of logits.",
        {BOTH: "F.cross_entropy(logits.T, labels)"},
        **LOSS,
    ),
    Mistake(
        "added_not_averaged",
        "both directions are added",
        "their mean",
        "Chance would cost 2 log B.",
        "Halve the sum.",
        {" / 2": ""},
        **LOSS,
    ),
    Mistake(
        "summed",
        "the losses of the batch are added",
        "the mean over the batch",
        "A larger batch would cost more for that alone.",
        "Use the mean.",
        {
            BOTH: '(F.cross_entropy(logits, labels, reduction="sum") + F.cross_entropy(logits.T, labels, reduction="sum")) / 2'
        },
        **LOSS,
    ),
    Mistake(
        "labels_zero",
        "every image is asked for the first text",
        "row i with text i",
        "The pairs stand on the diagonal.",
        "Use torch.arange.",
        {
            "labels = torch.arange(len(logits), device=logits.device)": "labels = torch.zeros(len(logits), dtype=torch.long, device=logits.device)"
        },
        **LOSS,
    ),
    Mistake(
        "labels_reversed",
        "the pairs are taken from the other diagonal",
        "row i with text i",
        "The pairs stand on the diagonal.",
        "Use torch.arange.",
        {"device=logits.device)": "device=logits.device).flip(0)"},
        **LOSS,
    ),
    families.SOFTMAX_TWICE.by({TABLE: f"({TABLE}).softmax(dim=-1)"}, **LOSS),
    families.SIGN.by(
        {BOTH: "-" + BOTH}, why="Pairs would be driven apart.", look="Look for a minus.", **LOSS
    ),
    Mistake(
        "distances",
        "similar pairs get small logits",
        "a large logit for a large cosine",
        "A distance grows where the cosine falls.",
        "Use the cosine.",
        {TABLE: "(1 - image @ text.T) / temperature"},
        **LOSS,
    ),
    Mistake(
        "cosines_alone",
        "the mean of 1 - cosine of the pairs is returned",
        "cross-entropy over the whole batch",
        "Without the other pairs, all features may become equal.",
        "Use the table of all pairs.",
        {BOTH: "(1 - (image * text).sum(dim=-1)).mean()"},
        **LOSS,
    ),
    Mistake(
        "sigmoid",
        "each pair is judged by itself",
        "softmax over the batch",
        "That is SigLIP's loss.",
        "Use cross_entropy.",
        {
            BOTH: "-F.logsigmoid((2 * torch.eye(len(logits), dtype=logits.dtype, device=logits.device) - 1) * logits).sum() / len(logits)"
        },
        **LOSS,
    ),
    Mistake(
        "overflows",
        "large logits overflow",
        "a finite loss at small temperatures",
        "exp(89) is infinite in float32.",
        "Use cross_entropy or logsumexp.",
        {
            BOTH: "-((logits.exp() / logits.exp().sum(dim=1, keepdim=True)).log().diagonal().mean() + (logits.exp() / logits.exp().sum(dim=0, keepdim=True)).log().diagonal().mean()) / 2"
        },
        part="temperatures",
    ),
    families.PYTHON_NUMBER.by({BOTH: f"({BOTH}).item()"}),
)


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


LENGTHS = "image_features: B D; text_features: B D; temperature = "


def _unequal(x: torch.Tensor) -> torch.Tensor:
    """Give every row a length of its own."""
    return x * (0.4 + torch.arange(len(x), dtype=x.dtype))[:, None] / len(x) * 3


def _twins(x: torch.Tensor) -> torch.Tensor:
    """Make the second row equal to the first."""
    return torch.cat([x[:1], x[:1], x[2:]])


VALUES = {"image_features": _unequal, "text_features": _unequal}
TWINS = {"image_features": _twins, "text_features": _twins}

# the same unit vectors and the same sum, written otherwise
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

CHECKER = Checker(
    "clip_loss",
    cases=shaped(
        LENGTHS + "t / 10",
        also("values", ""),
        also("temperatures", "a small temperature", shapes=LENGTHS + "0.01"),
        also(
            "temperatures",
            "a temperature that makes logits of 10,000",
            shapes=LENGTHS + "1e-4",
            rtol=1e-3,
            atol=2e-2,
        ),
        also("temperatures", "a large temperature", shapes=LENGTHS + "10.0"),
        also(
            "temperatures",
            "temperature 1, by keyword",
            shapes=LENGTHS + "1.0",
            keywords=("temperature",),
        ),
        also(
            "other sizes",
            "features of length 1",
            values={"image_features": F.normalize, "text_features": F.normalize},
        ),
        also("other sizes", "as many pairs as features", B="D"),
        also("other sizes", "two equal images, two equal texts", values=TWINS),
        *USUAL,
        ranges={"B": (4, 7), "D": (3, 6), "t": (2, 6)},
        values=VALUES,
        name="{B:pair} of {D} features",
        rtol=2e-4,
        atol=2e-5,
    ),
    proves={
        "values": "the mean of both cross-entropies over cosines / temperature",
        "temperatures": "finite and right for temperatures from 0.0001 to 10",
        "other sizes": "also for one pair, for features of length 1, and float64",
    },
    equivalent=SAME_PAIRS,
    special="len(image_features) == 1; len(image_features) == image_features.shape[1]; "
    "temperature == 1",
)
