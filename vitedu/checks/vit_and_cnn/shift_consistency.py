from copy import deepcopy

import numpy as np
import torch

from vitedu.checks import families, inputs
from vitedu.checks.kit import Case, Checker, Mistake, classifier_state, distinct, draw, normal


def cases(g: torch.Generator) -> list[Case]:
    """Draw classifiers that read every pixel by itself, so that every shift changes some predictions."""

    def case(
        words,
        B,
        keep,
        part="values",
        shift=None,
        dtype=torch.float32,
        stays=None,
        sure=1.0,
        **extra,
    ):
        state = classifier_state(g, C * H * W, hidden, K, norm=True, dtype=dtype)
        state["head.weight"] *= sure
        images, shift = normal(g, many, C, H, W, dtype=dtype), shift or (dy, dx)
        if stays is not None:  # images that a shift leaves in their class, or none of them
            before, after = (
                inputs.predicted(state, x) for x in (images, images.roll(shift, (2, 3)))
            )
            images = images[(before == after) == stays]
        args = {"model": None, "images": images[:B], "shift": shift}
        extra = {"keep": (keep,), "training": False} | extra
        name = f"{words}, {B} image(s) of {H} x {W} px, shift {shift}"
        return Case(name, args, part, driver="evaluation", state=state, extra=extra, number=True)

    C, (H, W), (dy, dx) = draw(g, 2, 3), distinct(g, 2, 6, 8), distinct(g, 2, 1, 2)
    K, hidden = distinct(g, 2, 4, 6)
    # so many that two shifts seldom leave the same number of predictions as they were
    many, few = draw(g, 201, 300), draw(g, 3, 5)
    return [
        case("a model in eval mode", many, "results"),
        case("up and to the left", many, "results", shift=(-dx, -dy)),
        case("farther to the right", many, "results", shift=(dy, dx + 2)),
        *inputs.mode_cases(case, many, few),
        case("one image", 1, "results", "other sizes"),
        case("two images", 2, "results", "other sizes"),
        case("no class changes", few, "results", "other sizes", stays=True),
        case("the class does not change", 1, "results", "other sizes", stays=True),
        case("every class changes", few, "results", "other sizes", stays=False),
        case("no shift at all", few, "results", "other sizes", shift=(0, 0)),
        case("to the right alone", many, "results", "other sizes", shift=(0, 3)),
        case("once around and on", many, "results", "other sizes", shift=(H + dy, W + dx)),
        case("logits in the hundreds", many, "results", "other sizes", sure=200.0),
        case("float64", many, "results", "other sizes", dtype=torch.float64),
    ]


ROLL = "images.roll(shift, dims=(-2, -1))"
SAME = "model(images).argmax(dim=-1) == model(shifted).argmax(dim=-1)"

MISTAKES = (
    *families.MODES_BANK,
    Mistake(
        "axes_swapped",
        "dy and dx are swapped",
        "dy rows down and dx columns to the right",
        "Rows are the axis -2, columns the axis -1.",
        "Look at the order of dims.",
        {"(-2, -1)": "(-1, -2)"},
    ),
    Mistake(
        "other_way",
        "the image moves up and to the left",
        "a positive shift moves down and to the right",
        "torch.roll moves what stands at i to i + shift.",
        "Look for a minus.",
        {"roll(shift": "roll((-shift[0], -shift[1])"},
    ),
    Mistake(
        "empty_border",
        "what leaves the image is lost",
        "what leaves on one side comes in on the other",
        "The text asks for images that are rolled: no pixel is lost, so only the place changes.",
        "Use torch.roll.",
        {
            ROLL: ROLL
            + "\ndy, dx = shift\nrows, columns = torch.arange(images.shape[2]), torch.arange(images.shape[3])"
            "\nis_kept = ((rows - dy >= 0) & (rows - dy < len(rows)))[:, None] & ((columns - dx >= 0) & (columns - dx < len(columns)))"
            "\nshifted = shifted * is_kept.to(images.dtype)"
        },
    ),
    Mistake(
        "down_alone",
        "the images move down and not to the right",
        "a shift by (dy, dx)",
        "Half of the shift is missing.",
        "Roll both axes.",
        {"roll(shift, dims=(-2, -1))": "roll(shift[0], dims=-2)"},
    ),
    Mistake(
        "right_alone",
        "the images move to the right and not down",
        "a shift by (dy, dx)",
        "Half of the shift is missing.",
        "Roll both axes.",
        {"roll(shift, dims=(-2, -1))": "roll(shift[1], dims=-1)"},
    ),
    Mistake(
        "axes_one_too_early",
        "channels and rows are rolled",
        "rows and columns: the last two axes",
        "Images are (B, C, H, W), so the rows stand on axis 2 and the columns on axis 3.",
        "Look at dims.",
        {"(-2, -1)": "(1, 2)"},
    ),
    Mistake(
        "changed_counted",
        "the share of changed predictions is returned",
        "the share of unchanged predictions",
        "A model that never changes its mind has consistency 1.",
        "Look at the comparison.",
        {"==": "!="},
    ),
    Mistake(
        "counted",
        "a count is returned",
        "a share in [0, 1]",
        "It grows with the number of images.",
        "Take the mean, not the sum.",
        {"mean()": "sum()"},
    ),
    families.PERCENT.by({".mean().item()": ".mean().item() * 100"}),
    Mistake(
        "one_verdict",
        "one verdict for all images is returned",
        "a share in [0, 1]",
        "A single image would decide it.",
        "Take the mean, not any() or all().",
        {"float().mean()": "any()"},
        also=({"float().mean()": "all()"},),
    ),
    Mistake(
        "logits_compared",
        "logits are compared, not classes",
        "the most likely class of each image",
        "Logits almost never stay the same to the last digit.",
        "Take argmax over the classes.",
        {SAME: "model(images) == model(shifted)"},
    ),
    Mistake(
        "argmax_over_batch",
        "argmax runs over the images",
        "argmax over the classes, the last axis",
        "It would say which image is the best example of a class.",
        "Look at the dim of argmax.",
        {SAME: SAME.replace("-1", "0")},
    ),
    Mistake(
        "compared_with_itself",
        "the shifted images are compared with themselves",
        "predictions before and after the shift",
        "That share is always 1.",
        "One of the two calls takes the images as they are.",
        {"model(images)": "model(shifted)"},
    ),
)


def both_at_once(model, images, shift):
    awake = [part for part in model.modules() if part.training]
    dy, dx = shift
    try:
        model.train(False)
        with torch.inference_mode():
            moved = torch.roll(torch.roll(images, dy, 2), dx, 3)
            first, second = model(torch.cat([images, moved])).max(dim=1).indices.chunk(2)
    finally:
        for part in awake:
            part.training = True
    return (first == second).double().mean()


def by_a_copy(model, images, shift):
    twin = deepcopy(model).eval().requires_grad_(False)
    before, after = (twin(x).topk(1).indices for x in (images, images.roll(shift, (2, 3))))
    return torch.eq(before, after).sum() / len(images)


def image_by_image(model, images, shift):
    modes = {name: part.training for name, part in model.named_modules()}
    model.eval()
    hits = []
    with torch.no_grad():
        for image in images:
            pair = torch.stack([image, torch.roll(image, shift, dims=(1, 2))])
            a, b = model(pair).argmax(1).tolist()
            hits.append(a == b)
    for name, part in model.named_modules():
        part.training = modes[name]
    return np.mean(hits)


def by_indices(model, images, shift):
    modes = [part.training for part in model.modules()]
    model.apply(lambda part: setattr(part, "training", False))
    H, W = images.shape[2:]
    rows = (torch.arange(H, device=images.device) - shift[0]) % H
    columns = (torch.arange(W, device=images.device) - shift[1]) % W
    with torch.set_grad_enabled(False):
        before, after = model(images), model(images[:, :, rows][..., columns])
    for part, training in zip(model.modules(), modes, strict=True):
        part.training = training
    same = before.argmax(-1) == after.argmax(-1)
    return float(same.sum()) / same.numel()


CHECKER = Checker(
    "shift_consistency",
    proves={
        "values": "the share of predictions that a shift by (dy, dx) leaves as they were",
        "eval mode": "measured in eval mode, parameters and running statistics untouched",
        "modes restored": "every part back in its mode, frozen parts too",
        "no gradients": "no graph is built, and gradients work again afterwards",
        "other sizes": "also for one image, no shift, one direction and float64",
    },
    equivalent={
        "a share of so few images has all its digits in float32": ("same.double",),
    },
    left_open={families.TENSOR_AS_NUMBER: ("return same.float().mean()",)},
    special="shift == (0, 0); shift[0] == 0; shift[1] == 0; shift[0] == shift[1]; len(images) == 1",
)
