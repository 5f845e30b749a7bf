import torch
from torch import nn

from vitedu.checks.kit import Case, Checker, Mistake, draw, families


def cases(g: torch.Generator) -> list[Case]:
    """Draw stacks of convolutions. In the first two, no rule of thumb gives the right number by chance."""

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
        case((width + 2, 3), (2, 2), "other stacks", ", in tuples"),
    ]


STEP_BY_STEP = "Draw three layers of kernel size 3 with strides 2, 2, 1 on paper: 15 pixels."
STEP = "step *= stride"
GROWS = "size += (kernel_size - 1) * step"

MISTAKES = (
    Mistake(
        "strides_ignored",
        "the strides are ignored",
        "a stride spreads all later layers over more pixels",
        "Behind a stride of 2, neighbouring cells are two pixels apart.",
        STEP_BY_STEP,
        {STEP: "pass"},
    ),
    Mistake(
        "own_stride_first",
        "a layer's own stride already widens its own kernel",
        "a layer's stride acts on the layers after it",
        "The taps of a kernel lie as far apart as the cells that it reads, whatever its own stride is.",
        "Add the layer's kernel first, then multiply by its stride.",
        {GROWS: STEP + "\n" + GROWS, STEP: "pass"},
    ),
    Mistake(
        "whole_kernel_added",
        "every layer adds its whole kernel size",
        "a layer adds kernel_size - 1 steps",
        "The first tap stands where the cell already was.",
        "Two 3 x 3 layers of stride 1 see 5 pixels, not 6 or 7.",
        {"(kernel_size - 1)": "kernel_size"},
    ),
    Mistake(
        "starts_at_zero",
        "one pixel is missing",
        "without any layer a cell sees one pixel: itself",
        "The steps between pixels are counted, not the pixels.",
        "Look at what the size starts from.",
        {"size, step = 1, 1": "size, step = 0, 1"},
    ),
    Mistake(
        "half_a_side",
        "the radius is returned, not the side",
        "the whole side of the square, in pixels",
        "Kernels reach to both sides of their middle.",
        "Two 3 x 3 layers of stride 1 see 5 pixels across.",
        {"return size": "return (size - 1) // 2"},
    ),
    Mistake(
        "area",
        "the pixels of the whole square are counted",
        "the side of the square",
        "The text asks for one direction.",
        "Leave out the square.",
        {"return size": "return size**2"},
    ),
    Mistake(
        "strides_added",
        "strides are added up, not multiplied",
        "the product of all strides before a layer",
        "Two strides of 2 put neighbours four pixels apart; two of 3 put them nine apart.",
        STEP_BY_STEP,
        {STEP: "step += stride - 1"},
        also=({STEP: "step += stride"},),
    ),
    Mistake(
        "last_stride_only",
        "only the stride just before a layer counts",
        "the product of all strides before a layer",
        "Every stride before a layer spreads it further.",
        STEP_BY_STEP,
        {STEP: "step = stride"},
    ),
    Mistake(
        "kernels_multiplied",
        "kernel sizes are multiplied",
        "every layer adds to the receptive field",
        "Neighbouring cells see overlapping pixels.",
        "Two 3 x 3 layers of stride 1 see 5 pixels, not 9.",
        {GROWS: "size *= kernel_size"},
    ),
    Mistake(
        "last_layer_first",
        "the layers are read from the last to the first",
        "first layer first",
        "A stride widens what comes after it, not what came before.",
        "Look at the order of the loop.",
        {
            "zip(kernel_sizes, strides, strict=True)": "zip(kernel_sizes[::-1], strides[::-1], strict=True)"
        },
    ),
    families.LAST_LEFT_OUT.by(
        {
            "zip(kernel_sizes, strides, strict=True)": "zip(kernel_sizes[:-1], strides[:-1], strict=True)"
        }
    ),
    Mistake(
        "always_three",
        "every kernel is taken for 3 x 3",
        "the kernel sizes as given",
        "A patch embedding has a kernel of 16.",
        "Use the argument kernel_sizes.",
        {"(kernel_size - 1)": "2"},
    ),
)


def from_the_back(kernel_sizes, strides):
    """One cell of the output needs ``(size - 1) * stride + kernel`` cells of the input."""
    size = 1
    for kernel_size, stride in zip(reversed(kernel_sizes), reversed(strides), strict=True):
        size = (size - 1) * stride + kernel_size
    return size


def by_a_sum(kernel_sizes, strides):
    ones = torch.ones(1, dtype=torch.long)
    steps = torch.cat([ones, torch.tensor(strides).cumprod(0)[:-1]])
    return 1 + ((torch.tensor(kernel_sizes) - 1) * steps).sum()


def by_intervals(kernel_sizes, strides):
    low, high = 0, 0
    for kernel_size, stride in list(zip(kernel_sizes, strides, strict=True))[::-1]:
        low, high = low * stride, high * stride + kernel_size - 1
    return float(high - low + 1)


def by_gradient(kernel_sizes, strides):
    side = 1
    for kernel_size, stride in list(zip(kernel_sizes, strides, strict=True))[::-1]:
        side = (side - 1) * stride + kernel_size  # just enough pixels for one cell
    pixels = torch.ones(1, 1, side + 6, requires_grad=True)
    x = pixels
    for kernel_size, stride in zip(kernel_sizes, strides, strict=True):
        conv = nn.Conv1d(1, 1, kernel_size, stride, bias=False)
        nn.init.constant_(conv.weight, 1 / kernel_size)
        x = conv(x)
    x[0, 0, 0].backward()
    return int(pixels.grad.nonzero()[-1, -1]) + 1


def by_recursion(kernel_sizes, strides):
    if not len(kernel_sizes):
        return 1
    return kernel_sizes[0] + strides[0] * (by_recursion(kernel_sizes[1:], strides[1:]) - 1)


CHECKER = Checker(
    "receptive_field",
    proves={
        "values": "every kernel adds to it, and every stride widens what comes after it",
        "other stacks": "also for one layer, no strides, strides alone and kernels of one pixel",
    },
    equivalent={"two numbers bound in the other order": ("step, size = (1, 1)",)},
    left_open={
        "nothing is said about lists of two lengths": ("strict=False", "(kernel_sizes, strides)"),
    },
    special="len(kernel_sizes) == 1; max(strides) == 1; 1 in kernel_sizes",
)
