"""4.6 weight_decay_groups: what to shrink and what not."""

from torch import Generator

from vitedu.checks.training.parameter_groups_driver import Network, groups
from vitedu.checks.writing.kit import Case, draw


def cases(g: Generator) -> list[Case]:
    """Draw models and a weight decay."""

    def case(words, part="values", *options, **how):
        decay = draw(g, 6, 30) / 100
        args = {"model": Network(2 * draw(g, 2, 4), **how), "weight_decay": decay}
        name = f"{words}, weight_decay={decay:g}"
        return Case(name, args, part, driver=groups.__name__, options=options)

    rare = "frozen or shared"
    return [
        case("a model with the names of a ViT"),
        case("a ViT inside another model", "nested parts", kind="nested"),
        case("a model with other names", "other names", kind="other names"),
        case("a ViT with a frozen patch embedding", rare, frozen=("patch_embed",)),
        case("a ViT with a matrix that two parts share", rare, kind="shared"),
        case("the order of the groups", "order", "order"),
    ]
