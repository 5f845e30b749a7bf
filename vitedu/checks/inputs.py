"""Random inputs of a probe: sizes that differ from each other, values from a generator."""

import torch


def draw(generator: torch.Generator, low: int, high: int) -> int:
    """Draw an integer from low .. high, both included."""
    return int(torch.randint(low, high + 1, (), generator=generator))


def distinct(generator: torch.Generator, count: int, low: int, high: int) -> list[int]:
    """Draw different integers from low .. high, so that a swapped axis can not go unnoticed."""
    return (torch.randperm(high - low + 1, generator=generator)[:count] + low).tolist()


def normal(
    generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Draw standard normal values."""
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    Example:
        >>> plural(1, "image"), plural(3, "image")
        ('1 image', '3 images')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
