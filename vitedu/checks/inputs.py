"""Random inputs of a probe: sizes that differ from each other, values from a generator."""

import torch

SPLIT = 2**24  # a seed of at least this much has two halves: of a class, and of one student in it


class Deal(torch.Generator):
    """The generator of a check: one stream for values, another one for sizes.

    The sizes of a class are the same for all, so that the same answer has the same points. The values are each student's.

    Example:
        >>> one, other = Deal(5 * SPLIT + 1), Deal(5 * SPLIT + 2)
        >>> draw(one, 0, 10**6) == draw(other, 0, 10**6), bool((normal(one, 3) == normal(other, 3)).any())
        (True, False)
    """

    sizes: torch.Generator

    def __new__(cls, seed: int) -> "Deal":
        return super().__new__(cls)

    def __init__(self, seed: int):
        self.manual_seed(seed % 2**63)
        one_stream = 0 <= seed < SPLIT  # as in a notebook
        self.sizes = self if one_stream else torch.Generator().manual_seed(seed // SPLIT % 2**63)


def _of_sizes(generator: torch.Generator) -> torch.Generator:
    return generator.sizes if isinstance(generator, Deal) else generator


def draw(generator: torch.Generator, low: int, high: int) -> int:
    """Draw an integer from low .. high, both included."""
    return int(torch.randint(low, high + 1, (), generator=_of_sizes(generator)))


def distinct(generator: torch.Generator, count: int, low: int, high: int) -> list[int]:
    """Draw different integers from low .. high, so that a swapped axis cannot go unnoticed."""
    return (torch.randperm(high - low + 1, generator=_of_sizes(generator))[:count] + low).tolist()


def normal(
    generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Draw standard normal values."""
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def put_last_class(generator: torch.Generator, labels: torch.Tensor, num_classes: int) -> None:
    """Give one of the labels the last class, in place: whether it occurs is then no matter of luck."""
    labels[draw(generator, 0, len(labels) - 1)] = num_classes - 1


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    Example:
        >>> plural(1, "image"), plural(3, "image")
        ('1 image', '3 images')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
