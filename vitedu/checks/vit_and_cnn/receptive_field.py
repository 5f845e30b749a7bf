"""6.1 receptive_field: what a cell may depend on."""

from torch import Generator

from vitedu.checks.writing.kit import Case, Checker, draw


def cases(g: Generator) -> list[Case]:
    """Draw stacks of convolutions; for the first two no rule of thumb is right by chance."""

    def case(kernel_sizes, strides, part="values", note=""):
        words = f"kernel sizes {kernel_sizes}, strides {strides}{note}"
        return Case(words, {"kernel_sizes": kernel_sizes, "strides": strides}, part, number=True)

    def odd():
        return 2 * draw(g, 1, 3) + 1

    depth, patch, width = draw(g, 4, 9), 2 * draw(g, 2, 8), odd()
    return [
        case([odd(), odd() + 2, 3, odd()], [2, draw(g, 2, 3), 1, draw(g, 4, 5)]),
        case([2 * draw(g, 2, 4), odd(), 5], [draw(g, 3, 4), 1, 2]),
        case([width] * depth, [1] * depth, "other stacks", ", no strides"),
        case([patch], [patch], "other stacks", ", one layer, as a patch embedding"),
        case([3] * depth, [2] * depth, "other stacks", ", all of stride 2"),
        case([width, 1, 1, width], [1, 2, 1, 1], "other stacks", ", kernels of one pixel"),
        case((width + 2, 3), (2, 2), "tuples", ", in tuples"),
    ]


CHECKER = Checker(
    weights={"values": 5},
)
