"""9.5 layerwise_lr_groups: small steps below, large ones above."""

from torch import Generator

from vitedu.checks.training.parameter_groups_driver import Network, groups
from vitedu.checks.writing.kit import Case, draw


def cases(g: Generator) -> list[Case]:
    """Draw models of several depths, a learning rate and a decay."""

    def case(depth, words, part="other models", decay=None, **how):
        decay = draw(g, 60, 85) / 100 if decay is None else decay
        model, base_lr = Network(2 * draw(g, 2, 4), depth, **how), draw(g, 2, 9) / 1000
        args = {"model": model, "base_lr": base_lr, "decay": decay}
        name = f"{words}, base_lr={base_lr:g}, decay={decay:g}"
        return Case(name, args, part, driver=groups.__name__)

    below = ("cls_token", "pos_embed", "patch_embed", "blocks.0", "blocks.1")
    return [
        case(3, "three blocks", "values"),
        case(1, "one block"),
        case(12, "twelve blocks"),  # that has numbers of two digits
        case(3, "three blocks", decay=1.0),
        case(4, "four blocks, the lower ones frozen", "frozen parameters", frozen=below),
    ]
