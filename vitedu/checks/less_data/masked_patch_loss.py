import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import Case, Checker, Mistake, distinct, normal, plural, usual


def cases(g: torch.Generator) -> list[Case]:
    """Draw patches, and masks that hide another number of them in every image."""
    B, N, P = distinct(g, 3, 4, 9)

    def case(note="", part="other sizes", B=B, P=P, mask=None, dtype=torch.float32, **rest):
        if mask is None:
            hidden = torch.randint(1, N, (B, 1), generator=g)
            hidden[0] = 1 if B > 1 else hidden[0]
            hidden[-1] = N - 1  # no two averages of averages agree with the mean over all
            mask = torch.rand(B, N, generator=g).argsort(dim=1) < hidden
        prediction = normal(g, B, N, P, dtype=dtype)
        target = 2 * normal(g, B, N, P, dtype=dtype) + 1
        if rest.pop("exact", False):
            prediction[0, 0] = target[0, 0]
        mask = mask.to(rest.pop("kind", dtype))
        args = {"prediction": prediction, "target": target, "mask": mask}
        name = f"{plural(B, 'image')}, {N} patches of {P} values{note}"
        return Case(name, args, part, **rest)

    one = torch.zeros(B, N)
    one[1, 2] = 1
    none_in_first = torch.ones(B, N)
    none_in_first[0] = 0
    return [
        # the second call has other values: a mask of numbers would be one no more
        case(", a boolean mask", "values", gradients=("prediction",), kind=torch.bool),
        case(part="values", gradients=("prediction",)),
        case(", all hidden", mask=torch.ones(B, N)),
        case(", all hidden, one predicted exactly", mask=torch.ones(B, N), exact=True),
        case(", one patch hidden", mask=one),
        case(", nothing hidden in the first image", mask=none_in_first),
        case(B=1),
        case(", one value each", P=1),
        *usual(case),
    ]


ERROR, MEAN = "(prediction - target) ** 2", "(per_patch * hidden).sum() / hidden.sum()"
ONLY = "hidden patches alone"
MISTAKES = (
    Mistake(
        "all_patches",
        "visible patches count as well",
        ONLY,
        "The encoder saw them; copying would be rewarded.",
        "Multiply by the mask.",
        {MEAN: "per_patch.mean()"},
    ),
    Mistake(
        "visible_patches",
        "the visible patches count instead of the hidden ones",
        ONLY,
        "The mask is 1 where a patch was hidden.",
        "Look for 1 - mask.",
        {"hidden = mask": "hidden = 1 - mask"},
    ),
    Mistake(
        "over_all_patches",
        "the sum is divided by all patches",
        "divided by the number of hidden ones",
        "The loss would shrink with the mask ratio.",
        "Divide by mask.sum().",
        {MEAN: "(per_patch * hidden).mean()"},
    ),
    families.SUM_NOT_MEAN.by({MEAN: "(per_patch * hidden).sum()"}),
    Mistake(
        "summed_in_patch",
        "the errors inside a patch are added up",
        "the mean inside a patch",
        "The loss would grow with the size of a patch.",
        "Take the mean over the last axis.",
        {"error.mean(dim=-1)": "error.sum(dim=-1)"},
    ),
    Mistake(
        "divided_by_batch",
        "the sum is divided by the number of images",
        "divided by the number of hidden patches",
        "The loss would grow with the mask ratio.",
        "Divide by mask.sum().",
        {MEAN: "(per_patch * hidden).sum() / len(mask)"},
    ),
    families.MEAN_OF_MEANS.by(
        {MEAN: "((per_patch * hidden).sum(dim=1) / hidden.sum(dim=1)).nanmean()"},
        name="images are averaged one by one, then together",
        expected="the mean over all hidden patches of the batch together",
        also=(
            {MEAN: "((per_patch * hidden).sum(dim=1) / hidden.sum(dim=1).clamp(min=1)).mean()"},
            {MEAN: "((per_patch * hidden).sum(dim=1) / hidden.sum(dim=1)).mean()"},
        ),
    ),
    Mistake(
        "absolute",
        "absolute differences are taken",
        "squared differences",
        "That is another loss: the median instead of the mean.",
        "Square the differences.",
        {ERROR: "(prediction - target).abs()"},
    ),
    Mistake(
        "not_squared",
        "the differences are not squared",
        "squared differences",
        "Errors of both signs would cancel.",
        "Square the differences.",
        {ERROR: "prediction - target"},
    ),
    Mistake(
        "root",
        "a root is taken",
        "the mean of squares",
        "The text asks for the squared error.",
        "Leave out the root.",
        {"error.mean(dim=-1)": "error.mean(dim=-1).sqrt()"},
        also=({MEAN: f"({MEAN}).sqrt()"},),
    ),
    Mistake(
        "targets_normalised",
        "the target patches are normalised",
        "pixels as they are",
        "The paper has it as an option; here the target is the image.",
        "Leave the target as it is.",
        {
            ERROR: "(prediction - (target - target.mean(dim=-1, keepdim=True)) / (target.var(dim=-1, keepdim=True) + 1e-6).sqrt()) ** 2"
        },
    ),
    Mistake(
        "halved",
        "the error is halved",
        "the mean of squares",
        "Some texts halve it for the derivative; this one does not.",
        "Leave out the half.",
        {ERROR: f"0.5 * {ERROR}"},
    ),
    Mistake(
        "masked_prediction",
        "the prediction is set to 0 in visible patches, and all count",
        ONLY,
        "The target of a visible patch is not 0.",
        "Mask the error, not the prediction.",
        {"error = (prediction": "error = (prediction * mask[..., None]", MEAN: "per_patch.mean()"},
    ),
    Mistake(
        "patch_errors",
        "an error for each patch comes back",
        "one number",
        "A loss is one number for the batch.",
        "Average over the hidden patches.",
        {MEAN: "per_patch * hidden"},
    ),
    families.PYTHON_NUMBER.by({MEAN: f"({MEAN}).item()"}),
    families.FIRST_IMAGE.by(
        {MEAN: "(per_patch * hidden)[0].sum() / hidden[0].sum().clamp(min=1)"},
        expected="all hidden patches of the batch",
    ),
    Mistake(
        "no_boolean",
        "a boolean mask ends in an error",
        "boolean masks work like float ones",
        "A mask is a question of yes and no.",
        "Turn it into numbers with mask.to(...).",
        {"mask.to(per_patch.dtype)": "1 - (1 - mask)"},
    ),
)


def by_indexing(prediction, target, mask):
    hidden = mask.bool()
    return F.mse_loss(prediction[hidden], target[hidden])


def by_loop(prediction, target, mask):
    hidden = [(b, n) for b in range(len(mask)) for n in range(mask.shape[1]) if mask[b, n]]
    return torch.stack([(prediction[i] - target[i]).pow(2).mean() for i in hidden]).mean()


def by_weights(prediction, target, mask):
    weights = mask.to(prediction.dtype) / mask.sum()
    return torch.einsum("bnp,bn->", (target - prediction).square(), weights) / target.shape[-1]


def by_where(prediction, target, mask):
    gap = torch.where(mask.unsqueeze(-1) > 0, prediction - target, torch.zeros_like(target))
    return (gap * gap).sum() / (mask.sum() * prediction.size(-1))


CHECKER = Checker(
    "masked_patch_loss",
    proves={
        "values": "the mean of the squared errors of the hidden patches, with boolean masks and float ones",
        "other sizes": "also where all are hidden, one, or none of an image; for one image, and float64",
    },
    special="len(mask) == 1; mask.all(); mask.dtype == torch.bool",
    equivalent={
        "a square has no sign": ("error = (target - prediction) ** 2",),
        "a mask of either kind takes the dtype of what it multiplies": (
            "hidden = mask",
            "hidden = mask.to()",
        ),
    },
)
