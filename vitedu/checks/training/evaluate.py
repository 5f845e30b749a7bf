"""4.8 evaluate: measure without touching."""

import torch

from vitedu.checks.kit import Case, Checker, distinct, draw
from vitedu.checks.training import classifier_cases
from vitedu.checks.training.evaluation_driver import evaluation


def cases(g: torch.Generator) -> list[Case]:
    """Draw classifiers with running statistics, in all modes."""

    def case(words, sizes, aspect, part="values", dtype=torch.float32, **extra):
        state = classifier_cases.classifier_state(g, C * H * W, hidden, K, norm=True, dtype=dtype)
        batches = classifier_cases.draw_batches(g, state, sizes, (C, H, W))
        args = {"model": None, "batches": batches}
        name = f"{words} (batches of {', '.join(map(str, sizes))})"
        rest = {"number": True, "outputs": ("mean_loss", "accuracy"), "rtol": 1e-4, "atol": 1e-5}
        extra = {"aspects": (aspect,), "training": False} | extra
        return Case(name, args, part, driver=evaluation.__name__, state=state, extra=extra, **rest)

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    return [
        case("a model in eval mode", [five, four, three], "results"),
        case(
            "batches that can be read once", [four, five, 1], "results", "any iterable", once=True
        ),
        *classifier_cases.mode_cases(case, [four, three, five], [four, three]),
        case("one batch, float64", [four], "results", "other sizes", dtype=torch.float64),
        case("one image", [1], "results", "other sizes"),
        case("one batch, a model in train mode", [four], "results", "other sizes", training=True),
    ]


CHECKER = Checker(
    "evaluate",
    idea={
        "any iterable": "batches may come from a generator, and be of any size",
        "values": "mean loss and accuracy over all images, each counting the same",
        "eval mode": "measured in eval mode, parameters and running statistics untouched",
        "modes restored": "every part back in its mode, frozen parts too",
        "no gradients": "no graph is built, and gradients work again afterwards",
        "other sizes": "also for one batch, one image, and float64",
    },
    advice={
        "modes restored": (
            "The results are right; what the caller does next meets the model in another mode.",
            (
                "Go through model.modules(), which gives the model, its parts and the parts inside "
                "them."
            ),
        ),
    },
)
