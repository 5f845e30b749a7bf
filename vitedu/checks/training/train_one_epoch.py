"""4.2 train_one_epoch: learn from every batch once."""

from functools import partial

import torch
from torch import Generator

from vitedu.checks.training import classifier_cases
from vitedu.checks.training.train_one_epoch_driver import epoch
from vitedu.checks.writing.kit import Case, draw


def cases(g: Generator) -> list[Case]:
    """Draw classifiers and batches; each part of the contract shows in a case of its own."""
    net = classifier_cases.draw_sizes(g)
    make = partial(classifier_cases.draw_case, g, net)

    def case(words, sizes, part="values", *options, lr=0.0, factor=1.0, **more):
        more = {"training": True, "args": {"optimizer": lr, "scheduler": factor}} | more
        return make(epoch.__name__, words, sizes, part, *options, **more)

    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    many = draw(g, 9, 17)
    learning, left, mode = "learning", ("gradients left", "learning"), ("train mode", "mode")
    steps = {"lr": 0.5, "scales": (0.02, 3.0, 0.2, 30.0)}
    # images so dark that no gradient is clipped, not even to a norm of 0.5, and steps so large
    # that answers change
    before = {"part": "before the update", "lr": 100.0, "scales": (0.02,)}
    large = [5 * four, 5 * three, 5 * five]
    # a head in doubt and each label once: even the gradient of the sum is shorter than 1
    short = case("learning rate 0.5, small gradients", net[1][:1], learning, learning, lr=0.5)
    short.args["batches"] = [(0.01 * short.args["batches"][0][0], torch.arange(net[1][0]))]
    short.state.update({name: 0.01 * short.state[name] for name in ("head.weight", "head.bias")})
    return [
        case("learning rate 0", [five, four, three]),
        case("read once", [four, many, 1], "any iterable", "once"),
        case("learning rate 0.5", [four, three, five, three], learning, learning, **steps),
        short,
        case("learning rate 0.5, gradients left", [four, three], *left, left[0], **steps),
        case("results while it learns", large, **before),
        case("results while it learns, other weights", large, **before),
        case("a model that comes in eval mode", [four, three], *mode, training=False),
        case("a model with a part in eval mode", [four, three], *mode, other_mode=("body.1",)),
        case("the order of steps", [four, three, three], "order", "order", factor=0.5),
        case("one batch, a model in eval mode", [many], "any iterable", training=False),
    ]
