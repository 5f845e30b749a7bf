"""4.6 weight_decay_groups: what to shrink and what not."""

from torch import Generator

from vitedu.checks.training.parameter_groups_driver import Network, groups
from vitedu.checks.writing.kit import Case, Checker, draw


def cases(g: Generator) -> list[Case]:
    """Draw models and a weight decay."""

    def case(kind, words, part="values", **extra):
        decay = draw(g, 6, 30) / 100
        args = {"model": Network(kind, 2 * draw(g, 2, 4)), "weight_decay": decay}
        name = f"{words}, weight_decay={decay:g}"
        return Case(name, args, part, driver=groups.__name__, extra=extra)

    return [
        case("encoder", "a model with the names of a ViT"),
        case("nested", "a ViT inside another model", "nested parts"),
        case("other_names", "a model with other names", "other names"),
        case("frozen", "a ViT with a frozen patch embedding", "frozen or shared"),
        case("shared", "a ViT with a matrix that two parts share", "frozen or shared"),
        case("encoder", "the order of the groups", "order", order=True),
    ]


CHECKER = Checker()
