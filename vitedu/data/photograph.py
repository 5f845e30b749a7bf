"""Four larger photographs that come with the package.

Role: give one of them, at the size a Vision Transformer takes. Not here: data sets, normalisation;
who took them and their licences (``photographs/SOURCES.md``).
"""

from pathlib import Path

import numpy as np
from PIL import Image

FOLDER = Path(__file__).with_name("photographs")
PHOTOGRAPHS = ("grace_hopper", "chelsea", "coffee", "rocket")  # chelsea is a cat


def load_photograph(image_size: int = 224, name: str = "grace_hopper") -> np.ndarray:
    """Load a photograph as an array of pixels, the form in which Python reads image files.

    Args:
        image_size: side of the square, in pixels: the largest that the picture holds, in the
            middle of its width and at the top of its height.
        name: of ``PHOTOGRAPHS``.

    Returns:
        (image_size, image_size, 3), uint8: rows, columns, then red, green and blue.

    Raises:
        ValueError: no photograph has this name.

    Example:
        >>> load_photograph(64, "chelsea").shape
        (64, 64, 3)
    """
    if name not in PHOTOGRAPHS:
        raise ValueError(f"no photograph named {name!r}. Choices: {', '.join(PHOTOGRAPHS)}.")
    with Image.open(FOLDER / f"{name}.jpg") as picture:
        side = min(picture.size)
        left = (picture.width - side) // 2
        square = picture.convert("RGB").crop((left, 0, left + side, side))
        return np.array(square.resize((image_size, image_size), Image.Resampling.BICUBIC))
