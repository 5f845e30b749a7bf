from functools import reduce

import torch

from vitedu.checks import families
from vitedu.checks.kit import Case, Checker, Mistake, distinct, normal, plural, usual


def cases(g: torch.Generator) -> list[Case]:
    """Draw weights of several layers: rows that sum to 1, and rows that do not."""
    B, nh, T, L = distinct(g, 4, 2, 5)

    def case(note="", part="other sizes", B=B, nh=nh, L=L, dtype=torch.float32, lost=False, **rest):
        layers = [(2 * normal(g, B, nh, T, T, dtype=dtype)).softmax(dim=-1) for _ in range(L)]
        if lost:  # every row keeps a share of its own
            layers = [w * (0.3 + torch.rand(B, nh, T, 1, generator=g)).to(dtype) for w in layers]
        name = f"{plural(L, 'layer')}, {plural(B, 'image')}, {plural(nh, 'head')}, {T} tokens{note}"
        return Case(name, {"layers": layers}, part, **rest)

    return [
        case(", rows that do not sum to 1", "values", lost=True, gradients=("layers",)),
        case(", rows that sum to 1", "softmax's rows"),
        case(L=1),
        case(nh=1),
        case(B=1, L=2),
        case(B=T, nh=T, L=2),
        *usual(case),
    ]


STEP = "(weights.mean(dim=1) + identity) / 2"
SUMS = "step / step.sum(dim=-1, keepdim=True)"
MISTAKES = (
    Mistake(
        "order_reversed",
        "the layers are multiplied in the wrong order",
        "the last layer leftmost",
        "Row i of the result would belong to a token of the first layer.",
        "The matrix of a layer acts on what the layers before it made, so it stands to their left.",
        {"step @ rollout": "rollout @ step"},
    ),
    Mistake(
        "no_identity",
        "the residual path is left out",
        "weights and identity, half each",
        "A block adds what attention brings to what the token was. Without the identity, every token forgets itself.",
        "Add the identity before you multiply.",
        {STEP: "weights.mean(dim=1)"},
    ),
    Mistake(
        "identity_once",
        "the identity is added once, to the product",
        "the identity in every layer",
        "Every block has a residual path of its own.",
        "Move the addition into the loop.",
        {STEP: "weights.mean(dim=1)", "return rollout": "return (rollout + identity) / 2"},
    ),
    Mistake(
        "not_normalised",
        "the rows are not divided by their sum",
        "rows that sum to 1, whatever came in",
        "Maps from which something was cut have smaller rows, and the product shrinks layer by layer.",
        "Divide each row by its own sum after adding the identity.",
        {SUMS: "step"},
        also=({STEP: "weights.mean(dim=1) + identity", SUMS: "step"},),
    ),
    Mistake(
        "softmax_of_rows",
        "the rows go through softmax",
        "each row divided by its sum",
        "Softmax makes rows of small numbers nearly even.",
        "Divide by the sum.",
        {SUMS: "step.softmax(dim=-1)"},
        also=({STEP: "weights.mean(dim=1) + identity", SUMS: "step.softmax(dim=-1)"},),
    ),
    Mistake(
        "heads_apart",
        "each head is followed alone, and the mean is taken at the end",
        "the mean over the heads in every layer",
        "What one head has moved, another may move on in the next layer.",
        "Average the heads before you multiply.",
        {STEP: "(weights + identity) / 2", "return rollout": "return rollout.mean(dim=1)"},
    ),
    Mistake(
        "normalised_too_early",
        "the rows are normalised before the identity is added",
        "identity first, then the division",
        "A row that lost most of its weights would count as much as a whole one.",
        "Add the identity and halve, then divide by the sums.",
        {
            STEP: "(weights.mean(dim=1) / weights.mean(dim=1).sum(dim=-1, keepdim=True) + identity) / 2"
        },
    ),
    Mistake(
        "columns_normalised",
        "the columns are divided by their sums",
        "rows that sum to 1",
        "A row belongs to one token and says where its content comes from.",
        "Look at the dim of the sum.",
        {"sum(dim=-1": "sum(dim=-2"},
    ),
    Mistake(
        "largest_head",
        "the largest head is taken at every place",
        "the mean over the heads",
        "It is a variant that others use. The text asks for the mean.",
        "Use mean over the axis of heads.",
        {".mean(dim=1)": ".amax(dim=1)"},
    ),
    Mistake(
        "smallest_head",
        "the smallest head is taken at every place",
        "the mean over the heads",
        "It is a variant that others use. The text asks for the mean.",
        "Use mean over the axis of heads.",
        {".mean(dim=1)": ".amin(dim=1)"},
    ),
    Mistake(
        "heads_summed",
        "the heads are summed",
        "the mean over the heads",
        "With many heads the identity would hardly count.",
        "Use mean instead of sum.",
        {".mean(dim=1)": ".sum(dim=1)"},
    ),
    Mistake(
        "first_head",
        "only the first head is used",
        "the mean over the heads",
        "The others take part too.",
        "Use mean over the axis of heads.",
        {".mean(dim=1)": "[:, 0]"},
    ),
    Mistake(
        "batch_averaged",
        "the images are averaged too",
        "one matrix for every image",
        "Each image has attention of its own.",
        "Average over dim 1 alone.",
        {".mean(dim=1)": ".mean(dim=(0, 1)).expand_as(weights[:, 0])"},
    ),
    Mistake(
        "last_layer_only",
        "only the last layer counts",
        "a product over all layers",
        "Each pass through the loop starts anew.",
        "Multiply with what the loop has so far.",
        {"step @ rollout": "step"},
    ),
    families.FIRST_LEFT_OUT.by(
        {
            "in layers:": "in layers[1:]:",
            "rollout = identity": "rollout = identity.expand_as(first[:, 0])",
        }
    ),
    families.LAST_LEFT_OUT.by(
        {
            "in layers:": "in layers[:-1]:",
            "rollout = identity": "rollout = identity.expand_as(first[:, 0])",
        }
    ),
    Mistake(
        "multiplied_by_elements",
        "the matrices are multiplied place by place",
        "matrix products",
        "A place-by-place product follows no path from token to token.",
        "Use @, not *.",
        {"step @ rollout": "step * rollout"},
        also=({"rollout = identity": "rollout = 1", "step @ rollout": "step * rollout"},),
    ),
    Mistake(
        "averaged_layers",
        "the layers are averaged, not multiplied",
        "a product over all layers",
        "A mean over layers does not follow content from one layer to the next.",
        "Multiply the matrices.",
        {
            "rollout = identity": "rollout = 0 * identity",
            "step @ rollout": "rollout + step / len(layers)",
        },
    ),
    Mistake(
        "transposed",
        "the matrices are transposed",
        "a row for every query",
        "A column says who looks at a token.",
        "Leave the matrices as they are.",
        {"step @ rollout": "step.mT @ rollout"},
    ),
    Mistake(
        "class_token_only",
        "only the row of the class token is returned",
        "(B, T, T), a row for every token",
        "The other rows are asked for too.",
        "Return the whole product.",
        {"return rollout": "return rollout[:, 0]"},
    ),
    families.FIRST_OF_BATCH.by({"return rollout": "return rollout[:1].expand_as(rollout)"}),
)


def by_reduce(layers):
    matrices = []
    for weights in layers:
        mixed = torch.einsum("bhij->bij", weights) / weights.size(1)
        mixed = mixed + torch.diag(torch.ones_like(mixed[0, 0]))
        matrices.append(torch.nn.functional.normalize(mixed, p=1, dim=-1))
    return reduce(torch.matmul, reversed(matrices))


def from_the_left(layers):
    product = None
    for weights in reversed(list(layers)):
        step = 0.5 * weights.mean(1)
        step = step + 0.5 * torch.eye(step.shape[-1]).to(step)
        step = step / step.sum(2)[:, :, None]
        product = step if product is None else product.bmm(step)
    return product


def by_images(layers):
    maps = []
    for image in zip(*layers, strict=True):
        rollout = None
        for weights in image:
            step = sum(weights.unbind(0)) / len(weights)
            step = step + torch.diag(torch.ones_like(step[0]))
            step = torch.stack([row / row.sum() for row in step])
            rollout = step if rollout is None else torch.mm(step, rollout)
        maps.append(rollout)
    return torch.stack(maps)


def in_double(layers):
    stacked = torch.stack(list(layers)).double().mean(dim=2)  # (L, B, T, T)
    stacked = stacked + torch.eye(stacked.shape[-1], device=stacked.device).double()
    stacked = stacked / stacked.sum(dim=-1, keepdim=True)
    result = stacked[0]
    for step in stacked[1:]:
        result = step.matmul(result)
    return result.to(layers[0].dtype)


def by_recursion(layers):
    *earlier, last = layers
    step = last.mean(dim=1).clone()
    step.diagonal(dim1=-2, dim2=-1).add_(1)
    step = step / torch.linalg.vecdot(step, torch.ones_like(step))[..., None]
    return step @ by_recursion(earlier) if earlier else step


CHECKER = Checker(
    "attention_rollout",
    proves={
        "values": "the product of the layers with their residual paths, rows normalised, the last layer leftmost",
        "softmax's rows": "right for rows that sum to 1",
        "other sizes": "also for one layer, one head, a batch of one and float64",
    },
    equivalent={
        "weights are square": ("[-2], dtype", "[2], dtype"),
        "all layers have one shape": ("first = layers[-1]",),
        "rows are divided by their sum afterwards": (
            "step = weights.mean(dim=1) + identity",
            "step = (weights.mean(dim=1) + identity) * 2",
            *(f"step = (weights.mean(dim=1) + identity) / {n}" for n in (-2, -1, 1, 3, 4)),
        ),
        "no entry reaches 2": ("step = (weights.mean(dim=1) + identity) % 2",),
    },
    special="len(layers) == 1; len(layers[0]) == 1",
)
