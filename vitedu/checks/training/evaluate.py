"""4.3 evaluate: measure without touching."""

from functools import partial

from torch import Generator

from vitedu.checks.training import classifier_cases
from vitedu.checks.training.evaluation_driver import evaluation
from vitedu.checks.writing.kit import Case, draw


def cases(g: Generator) -> list[Case]:
    """Draw classifiers with running statistics, in all modes."""
    make = partial(classifier_cases.draw_case, g, classifier_cases.draw_sizes(g))
    case = partial(make, evaluation.__name__, norm=True)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    many = draw(g, 9, 17)
    return [
        case("a model in eval mode", [five, four, three]),
        case("read once", [four, many, 1], "any iterable", "once"),
        *classifier_cases.mode_cases(case, [four, three, five], [four, three]),
        case("one batch, a model in train mode", [many], "other sizes", training=True),
        case("equal batches", [four, four], "other sizes"),
        case("one image", [1], "batch of one"),
    ]
