"""4.2 train_one_epoch: learn from every batch once."""

from torch import Generator

from vitedu.checks.training import classifier_cases
from vitedu.checks.training.train_one_epoch_driver import epoch
from vitedu.checks.writing.kit import Case, Checker, distinct, draw


def cases(g: Generator) -> list[Case]:
    """Draw classifiers and batches; each part of the contract shows in a case of its own."""

    def case(words, sizes, aspects, lr=0.0, factor=1.0, training=True, once=False, **rest):
        state = classifier_cases.classifier_state(g, C * H * W, hidden, K, bias=True)
        scales = rest.pop("scales", (2.0,))
        batches = classifier_cases.draw_batches(g, state, sizes, (C, H, W), scales)
        args = {"model": None, "batches": batches, "optimizer": lr, "scheduler": factor}
        extra = {
            "aspects": aspects,
            "training": training,
            "once": once,
            "other_mode": rest.pop("other_mode", ()),
            "gradients_left": words.endswith("gradients left"),
        }
        rest |= {"number": True, "outputs": ("mean_loss", "accuracy"), "rtol": 1e-4, "atol": 1e-5}
        name = f"{words} (batches of {', '.join(map(str, sizes))})"
        return Case(name, args, driver=epoch.__name__, state=state, extra=extra, **rest)

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    many, results = draw(g, 9, 17), {"aspects": ("results",)}
    iterable = results | {"part": "any iterable"}
    mode = {"aspects": ("mode",), "part": "train mode"}
    learning = {"aspects": ("learning",), "scales": (0.02, 3.0, 0.2, 30.0), "lr": 0.5}
    # images so dark that no gradient is clipped, not even to a norm of 0.5, and steps so large
    # that answers change
    before = results | {"lr": 100.0, "part": "before the update", "scales": (0.02,)}
    large = [5 * four, 5 * three, 5 * five]
    return [
        case("learning rate 0", [five, four, three], **results),
        case("read once", [four, many, 1], once=True, **iterable),
        case("learning rate 0.5", [four, three, five, three], part="learning", **learning),
        case("learning rate 0.5, gradients left", [four, three], part="gradients left", **learning),
        case("results while it learns", large, **before),
        case("results while it learns, other weights", large, **before),
        case("a model that comes in eval mode", [four, three], training=False, **mode),
        case("a model with a part in eval mode", [four, three], other_mode=("body.1",), **mode),
        case("the order of steps", [four, three, three], ("order",), factor=0.5, part="order"),
        case("one batch, a model that comes in eval mode", [many], training=False, **iterable),
    ]


CHECKER = Checker()
