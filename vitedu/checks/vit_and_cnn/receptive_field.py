"""6.1 receptive_field: what a cell may depend on."""

from vitedu.checks.writing.kit import also, shaped

cases = shaped(
    # for these two no rule of thumb is right by chance
    "kernel_sizes = [2*a + 1, 2*b + 3, 3, 2*a + 3]; strides = [2, s, 1, t]",
    also("values", "", shapes="kernel_sizes = [2*a, 2*b + 1, 5]; strides = [s + 1, 1, 2]"),
    also("other stacks", "no strides", shapes="kernel_sizes = [a + b] * n; strides = [1] * n"),
    also("other stacks", "a patch embedding", shapes="kernel_sizes = [2*n]; strides = [2*n]"),
    also("other stacks", "", shapes="kernel_sizes = [3] * n; strides = [2] * n"),
    also("other stacks", "", shapes="kernel_sizes = [a, 1, 1, a]; strides = [1, 2, 1, 1]"),
    also("tuples", "in tuples", shapes="kernel_sizes = (2*a + 3, 3); strides = (2, 2)"),
    ranges={"a": (2, 4), "b": (1, 3), "s": (2, 3), "t": (4, 5), "n": (6, 9)},
    number=True,
)

weights = {"values": 5}
