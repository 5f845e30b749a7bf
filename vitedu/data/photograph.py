"""One real photograph that needs no download.

Role: give the photograph that matplotlib ships, at the size a Vision Transformer takes. Not here:
data sets, normalisation.

The picture shows Rear Admiral Grace Hopper, a pioneer of compilers. James S. Davis took it for the
US Navy in 1984; it is in the public domain.
"""

import numpy as np
from matplotlib.cbook import get_sample_data
from PIL import Image


def load_photograph(image_size: int = 224) -> np.ndarray:
    """Load the photograph as an array of pixels, the form in which Python reads image files.

    Args:
        image_size: side of the square, in pixels.

    Returns:
        (image_size, image_size, 3), uint8: rows, columns, then red, green and blue.

    Example:
        >>> load_photograph(64).shape
        (64, 64, 3)
    """
    with Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)) as picture:
        square = picture.convert("RGB").crop((0, 0, 512, 512))  # the file has 512 x 600 pixels
        return np.array(square.resize((image_size, image_size), Image.Resampling.BICUBIC))
