"""4.3 evaluate: measure without touching."""

from torch import Generator

from vitedu.checks.training import classifier_cases
from vitedu.checks.training.evaluation_driver import evaluation
from vitedu.checks.writing.kit import Case, Checker, distinct, draw


def cases(g: Generator) -> list[Case]:
    """Draw classifiers with running statistics, in all modes."""

    def case(words, sizes, aspects, part="values", **extra):
        state = classifier_cases.classifier_state(g, C * H * W, hidden, K, norm=True)
        batches = classifier_cases.draw_batches(g, state, sizes, (C, H, W))
        args = {"model": None, "batches": batches}
        name = f"{words} (batches of {', '.join(map(str, sizes))})"
        rest = {"number": True, "outputs": ("mean_loss", "accuracy"), "rtol": 1e-4, "atol": 1e-5}
        extra = {"aspects": aspects, "training": False} | extra
        return Case(name, args, part, driver=evaluation.__name__, state=state, extra=extra, **rest)

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    many, results = draw(g, 9, 17), ("results",)
    return [
        case("a model in eval mode", [five, four, three], results),
        case("read once", [four, many, 1], results, "any iterable", once=True),
        *classifier_cases.mode_cases(case, [four, three, five], [four, three]),
        case("one batch, a model in train mode", [many], results, "other sizes", training=True),
        case("equal batches", [four, four], results, "other sizes"),
        case("one image", [1], results, "batch of one"),
    ]


CHECKER = Checker()
