"""9.5 layerwise_lr_groups: small steps below, large ones above."""

from torch import Generator

from vitedu.checks.training.parameter_groups_driver import Network, rates
from vitedu.checks.writing.kit import Case, Checker, draw


def cases(g: Generator) -> list[Case]:
    """Draw models of several depths, a learning rate and a decay."""

    def case(kind, words, part="other models", decay=None):
        decay = draw(g, 60, 85) / 100 if decay is None else decay
        model, base_lr = Network(kind, 2 * draw(g, 2, 4)), draw(g, 2, 9) / 1000
        args = {"model": model, "base_lr": base_lr, "decay": decay}
        name = f"{words}, base_lr={base_lr:g}, decay={decay:g}"
        return Case(name, args, part, driver=rates.__name__)

    return [
        case("shallow", "three blocks", "values"),
        case("encoder", "one block"),
        case("deep", "twelve blocks"),
        case("shallow", "three blocks", decay=1.0),
        case("frozen_below", "four blocks, the lower ones frozen", "frozen parameters"),
    ]


CHECKER = Checker()
