"""6.3 shift_consistency: how many answers survive a shift?."""

from torch import Generator

from vitedu.checks.training import classifier_cases
from vitedu.checks.training.evaluation_driver import evaluation
from vitedu.checks.writing.kit import Case, distinct, draw, normal


def cases(g: Generator) -> list[Case]:
    """Draw classifiers that read each pixel by itself: each shift changes some predictions."""

    def case(words, B, part="values", *options, shift=None, is_stable=None, scale=1.0, **rest):
        state = classifier_cases.classifier_state(g, C * H * W, hidden, K, norm=True)
        state["head.weight"] *= scale
        images, shift = normal(g, many, C, H, W), shift or (dy, dx)
        if is_stable is not None:  # images that a shift leaves in their class, or none of them
            before, after = (
                classifier_cases.predict(state, x) for x in (images, images.roll(shift, (2, 3)))
            )
            images = images[(before == after) == is_stable]
        images = images[:B]
        args = {"model": None, "images": images, "shift": shift}
        rest |= {"driver": evaluation.__name__, "number": True, "options": options}
        name = f"{words}, {len(images)} image(s) of {H} x {W} px, shift {shift}"
        return Case(name, args, part, state=state, **rest)

    C, (H, W), (dy, dx) = draw(g, 2, 3), distinct(g, 2, 6, 8), distinct(g, 2, 1, 2)
    K, hidden = distinct(g, 2, 4, 6)
    # so many that two shifts seldom leave the same number of predictions as they were
    many, few = draw(g, 201, 300), draw(g, 3, 5)
    other, rare = "other shifts", "rare inputs"
    return [
        case("a model in eval mode", many),
        case("up and to the left", many, shift=(-dx, -dy)),
        case("farther to the right", many, shift=(dy, dx + 2)),
        *classifier_cases.mode_cases(case, many, few),
        case("no shift at all", few, other, shift=(0, 0)),
        case("to the right alone", many, other, shift=(0, 3)),
        case("as far down as to the right", few, other, shift=(dx, dx)),
        case("no class changes", few, other, is_stable=True),
        case("every class changes", few, other, is_stable=False),
        case("two images", 2, other),
        case("one image", 1, other, is_stable=True),
        case("one image", 1, other, is_stable=False),
        case("once around and on", many, rare, shift=(H + dy, W + dx)),
        case("logits in the hundreds", many, rare, scale=200.0),
        # many that all stay: no other shift leaves the same share by accident
        case("axes turned round in memory", many, "layout", turned=True, is_stable=True),
        case("no class changes, up and to the left", many, shift=(-dx, -dy), is_stable=True),
    ]
