import torch

from vitedu.checks.kit import Case, Checker, FeatureMap, Mistake, distinct, draw, normal, usual


def cases(g: torch.Generator) -> list[Case]:
    """Draw feature maps and images. Grids are wide enough for the middle to differ from the rim."""

    def case(B, C, gh, gw, part="other sizes", dtype=torch.float32, note="", **rest):
        M, D, P = distinct(g, 3, 2, 4)
        first = normal(g, M, C, 3, 3, dtype=dtype) / (9 * C) ** 0.5
        second = normal(g, D, M, P, P, dtype=dtype)
        images = 2 * normal(g, B, C, gh * P, gw * P, dtype=dtype)
        args = {"feature_map": FeatureMap(first, second), "images": images}
        name = f"a grid of {gh} x {gw} cells, {B} image(s) of {C} channel(s), {gh * P} x {gw * P} px{note}"
        return Case(name, args, part, **rest)

    # the middle of either side is a place of the other, too: exchanged, they raise no error
    gh, gw = (2 * side + 1 for side in distinct(g, 2, 2, 4))
    B, C = draw(g, 3, 5), draw(g, 2, 4)
    return [
        case(B, C, gh, gw, "values"),
        case(C + 1, B, gw, gh, "values"),
        case(1, C, 5, 5, note=", square"),
        case(B, 1, gh, gh),
        case(B, C, 1, 3, note=", one row of cells"),
        case(B, C, 1, 1, note=", one cell that every pixel reaches"),
        *usual(case, B, C, gh, gw),
    ]


CENTRE = "features[:, :, gh // 2, gw // 2].sum()"
SIZE = "gradient.abs().sum(dim=1).mean(dim=0)"

MISTAKES = (
    Mistake(
        "no_absolute",
        "the gradient keeps its sign",
        "absolute values",
        "Positive and negative gradients would cancel between images and channels.",
        "Take the absolute value before anything is added up.",
        {SIZE: "gradient.sum(dim=1).mean(dim=0)"},
    ),
    Mistake(
        "absolute_after_channels",
        "the absolute value is taken after the sum over channels",
        "the absolute value of each single gradient",
        "Colour channels with opposite signs would cancel.",
        "Take the absolute value before the sum.",
        {SIZE: "gradient.sum(dim=1).abs().mean(dim=0)"},
    ),
    Mistake(
        "absolute_after_batch",
        "the absolute value is taken after the mean over the batch",
        "the absolute value of each single gradient",
        "Images with opposite signs would cancel.",
        "Take the absolute value before the mean.",
        {SIZE: "gradient.mean(dim=0).abs().sum(dim=0)"},
    ),
    Mistake(
        "absolute_last",
        "the absolute value is taken after both sums",
        "the absolute value of each single gradient",
        "Opposite signs in channels or images would cancel.",
        "Take the absolute value before anything is added up.",
        {SIZE: "gradient.sum(dim=1).mean(dim=0).abs()"},
    ),
    Mistake(
        "squared",
        "the gradient is squared",
        "the absolute gradient",
        "Squares make the middle look larger and the rim smaller.",
        "Use abs().",
        {"gradient.abs()": "gradient.square()"},
    ),
    Mistake(
        "first_cell",
        "the cell in the corner is used",
        "the cell in the middle of the grid",
        "At the rim, half of the receptive field lies outside the image.",
        "Its place is (gh // 2, gw // 2).",
        {"gh // 2, gw // 2": "0, 0"},
    ),
    Mistake(
        "all_cells",
        "all cells are added up",
        "the cell in the middle alone",
        "Every pixel lies under some cell, so the map would be flat.",
        "Pick one cell before the sum.",
        {CENTRE: "features.sum()"},
    ),
    Mistake(
        "next_to_the_middle",
        "a cell beside the middle is used",
        "the cell in the middle of the grid",
        "The middle of gh cells, counted from 0, is gh // 2 where gh is odd.",
        "Try a grid of 3: the middle is cell 1.",
        {"gh // 2, gw // 2": "gh // 2 - 1, gw // 2 - 1"},
    ),
    Mistake(
        "one_middle",
        "the middle of one side is taken for both",
        "row gh // 2, column gw // 2",
        "It works on square grids only.",
        "A grid has a height and a width: give each its own middle.",
        {"gh // 2, gw // 2": "gh // 2, gh // 2"},
        also=({"gh // 2, gw // 2": "gw // 2, gw // 2"},),
    ),
    Mistake(
        "rows_and_columns_swapped",
        "a place is counted from the other side of the grid",
        "row gh // 2, column gw // 2",
        "It works on square grids only.",
        "Look at the order of the two indices.",
        {"gh, gw =": "gw, gh ="},
    ),
    Mistake(
        "first_feature",
        "only the first channel of the cell is used",
        "the sum over all channels of the cell",
        "Each channel looks at something else.",
        "Sum over channels.",
        {"features[:, :,": "features[:, :1,"},
    ),
    Mistake(
        "features_absolute",
        "the absolute values of the features are added",
        "the sum of the features themselves",
        "The text takes the absolute value of the gradient, not of the features.",
        "Look at where abs() stands.",
        {CENTRE: "features[:, :, gh // 2, gw // 2].abs().sum()"},
    ),
    Mistake(
        "first_image",
        "only the first image counts",
        "the mean over the batch",
        "One image is a small sample.",
        "Average over dim 0.",
        {".mean(dim=0)": "[0]"},
    ),
    Mistake(
        "first_channel",
        "only the first channel of the images counts",
        "the sum over the images' channels",
        "A pixel has several channels.",
        "Sum over dim 1.",
        {".sum(dim=1)": "[:, 0]"},
    ),
    Mistake(
        "not_divided",
        "it is not divided by its maximum",
        "a largest value of 1",
        "Maps of two networks could not be compared.",
        "Divide by the largest value.",
        {" / size.max()": ""},
    ),
    Mistake(
        "divided_by_sum",
        "it is divided by its sum",
        "a largest value of 1",
        "The text asks for the maximum as the unit.",
        "Divide by the largest value.",
        {"size.max()": "size.sum()"},
    ),
    Mistake(
        "minimum_subtracted",
        "the smallest value is subtracted",
        "the values divided by their maximum, and nothing else",
        "A pixel with a small gradient is not a pixel without one.",
        "Leave out the minimum.",
        {"return size / size.max()": "return (size - size.min()) / (size.max() - size.min())"},
    ),
    Mistake(
        "divided_for_each_image",
        "every image is divided by its own maximum",
        "one division, at the end",
        "An image to which the cell hardly reacts would count as much as any other.",
        "Average first, then divide.",
        {
            SIZE: "(lambda s: (s / s.amax(dim=(1, 2), keepdim=True)).mean(dim=0))(gradient.abs().sum(dim=1))"
        },
    ),
    Mistake(
        "batch_left_in",
        "a map for each image is returned",
        "one map of shape (H, W)",
        "The text asks for the mean over the batch.",
        "Average over dim 0.",
        {".mean(dim=0)": ""},
    ),
)


def by_backward(feature_map, images):
    pixels = images.clone()
    pixels.requires_grad_(True)
    cells = feature_map(pixels)
    cells[..., cells.shape[-2] // 2, cells.shape[-1] // 2].sum().backward()
    size = pixels.grad.abs().sum(1).mean(0)
    return size / torch.max(size)


def image_by_image(feature_map, images):
    total = 0
    for image in images:
        pixels = image[None].detach().requires_grad_()
        cell = feature_map(pixels)[0, :, :, :]
        cell = cell[:, (cell.shape[1] - 1) // 2, (cell.shape[2] - 1) // 2]
        (gradient,) = torch.autograd.grad(cell.sum(), pixels)
        total = total + gradient[0].abs().sum(dim=0)
    return total / total.max()


def by_a_mask(feature_map, images):
    pixels = images.detach().clone().requires_grad_()
    features = feature_map(pixels)
    mask = torch.zeros_like(features)
    mask[:, :, features.size(2) // 2, features.size(3) // 2] = 1
    features.backward(mask)
    return pixels.grad.norm(p=1, dim=1).mean(dim=0).div(pixels.grad.norm(p=1, dim=1).mean(0).amax())


def by_vjp(feature_map, images):
    def cell(x):
        features = feature_map(x)
        return features[:, :, features.shape[2] // 2, features.shape[3] // 2].sum(dim=1)

    out, pull = torch.func.vjp(cell, images)
    size = torch.einsum("bchw->hw", pull(torch.ones_like(out))[0].abs())
    return size / size.max()


CHECKER = Checker(
    "effective_receptive_field",
    proves={
        "values": "the middle cell's absolute gradient, over channels and images, largest value 1",
        "other sizes": "also for one image, one channel, one row of cells, a single cell and float64",
    },
    equivalent={
        "a common factor falls out in the division": (
            "sum(dim=0)",
            "().mean(dim=1)",
            "[:, :, gh // 2, gw // 2].mean",
        ),
        "the middle, counted from the end": ("gh // -2, gw", "gh // 2, gw // -2"),
        "a detached tensor is a leaf of its own": ("images = images.detach().requires_grad_()",),
    },
    left_open={
        "nothing is said about images that carry a graph, or about calls under no_grad": (
            "images = images.clone().requires_grad_()",
            "images = images.detach().clone().requires_grad_(); features = feature_map(images); gh, gw = features.shape[-2:]; centre = features[:, :, gh // 2, gw // 2].sum()",
        ),
    },
    special="len(images) == 1; images.shape[1] == 1; images.shape[2] == images.shape[3]",
)
