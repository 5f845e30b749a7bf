"""4.2 train_one_epoch: learn from every batch once."""

from functools import partial

from torch import Generator

from vitedu.checks.training import classifier_cases
from vitedu.checks.training.train_one_epoch_driver import epoch
from vitedu.checks.writing.kit import Case, draw


def cases(g: Generator) -> list[Case]:
    """Draw classifiers and batches; each part of the contract shows in a case of its own."""
    make = partial(classifier_cases.draw_case, g, classifier_cases.draw_sizes(g))

    def case(words, sizes, aspects, part="values", lr=0.0, factor=1.0, **more):
        more = {"training": True, "args": {"optimizer": lr, "scheduler": factor}} | more
        return make(epoch.__name__, words, sizes, aspects, part, **more)

    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    many, results = draw(g, 9, 17), ("results",)
    mode = {"aspects": ("mode",), "part": "train mode"}
    learning = {"aspects": ("learning",), "scales": (0.02, 3.0, 0.2, 30.0), "lr": 0.5}
    left = learning | {"part": "gradients left", "gradients_left": True}
    # images so dark that no gradient is clipped, not even to a norm of 0.5, and steps so large
    # that answers change
    before = {"part": "before the update", "lr": 100.0, "scales": (0.02,)}
    large = [5 * four, 5 * three, 5 * five]
    return [
        case("learning rate 0", [five, four, three], results),
        case("read once", [four, many, 1], results, "any iterable", once=True),
        case("learning rate 0.5", [four, three, five, three], part="learning", **learning),
        case("learning rate 0.5, gradients left", [four, three], **left),
        case("results while it learns", large, results, **before),
        case("results while it learns, other weights", large, results, **before),
        case("a model that comes in eval mode", [four, three], training=False, **mode),
        case("a model with a part in eval mode", [four, three], other_mode=("body.1",), **mode),
        case("the order of steps", [four, three, three], ("order",), "order", factor=0.5),
        case("one batch, a model in eval mode", [many], results, "any iterable", training=False),
    ]
