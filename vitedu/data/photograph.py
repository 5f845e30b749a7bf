"""Four larger photographs that come with the package, and photographs of the reader's own.

Role: give one of them, at the size a Vision Transformer takes. Not here: data sets, normalisation;
who took them and their licences (``photographs/SOURCES.md``).
"""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vitedu.data.image_folder import read_photo, to_square

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


def square_photograph(source: Any, image_size: int) -> np.ndarray:
    """Bring a photograph to the square that a model takes, from the middle of it.

    Args:
        source: a path; one of ``PHOTOGRAPHS``; a PIL image; pixels (H, W), (H, W, 3) or (3, H, W),
            an array or a tensor, integers from 0 to 255 or floats in [0, 1].
        image_size: side of the square, in pixels.

    Returns:
        (3, image_size, image_size), uint8.

    Raises:
        ValueError: there is no such file, it is no image, or the pixels have another shape or go
            far beyond 1.

    Example:
        >>> square_photograph("chelsea", 32).shape, square_photograph(np.ones((9, 5)), 4).shape
        ((3, 32, 32), (3, 4, 4))
    """
    if isinstance(source, str | Path):
        path = FOLDER / f"{source}.jpg" if source in PHOTOGRAPHS else Path(source).expanduser()
        square = read_photo(path, lambda photo: to_square(photo, image_size))
    elif isinstance(source, Image.Image):
        square = to_square(source, image_size)
    else:
        pixels = source.numpy(force=True) if hasattr(source, "detach") else np.asarray(source)
        if pixels.ndim == 2:
            pixels = pixels[None]  # (H, W) -> (1, H, W)
        if pixels.ndim == 3 and pixels.shape[0] in (1, 3):
            pixels = pixels.transpose(1, 2, 0)  # (C, H, W) -> (H, W, C)
        if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
            shapes = "pixels (H, W), (H, W, 3) or (3, H, W)"
            raise ValueError(f"a photograph is a path, or {shapes} (got shape {pixels.shape}).")
        if pixels.dtype.kind in "iu":
            pixels = pixels.clip(0, 255).astype(np.uint8)
        elif pixels.max() > 2:  # a little above 1 is what rounding does
            raise ValueError(f"floats must lie in [0, 1] (got {pixels.max():g}); divide by 255.")
        else:
            pixels = (255 * pixels.clip(0, 1)).round().astype(np.uint8)
        pixels = np.broadcast_to(pixels, (*pixels.shape[:2], 3))
        square = to_square(Image.fromarray(pixels), image_size)
    return np.ascontiguousarray(square.transpose(2, 0, 1))  # (S, S, 3) -> (3, S, S)
