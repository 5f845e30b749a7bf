"""Small PNG files of figures: fewer colours, where no eye sees the difference.

Role: a picture in, a file out. Most figures are lines and words on white: a palette of 256 colours
draws them, and the file shrinks to a third. Photographs need more; they keep six bits of each.
"""

import io

import numpy as np
from PIL import Image

UNSEEN = 8  # of 255: the largest change of any pixel; in a photograph it is 2
MANY = 4096  # colours that no palette of 256 stands for
FREQUENT = 16  # colours that come first and stay as they are: paper, ink, lines


def small_png(picture: Image.Image) -> bytes:
    """Give an opaque picture as a PNG file, with a palette where that changes nothing to be seen.

    The palette has frequent colours, then always the one that lies farthest from all chosen.

    Example:
        >>> small_png(Image.new("RGB", (3, 2), "white"))[:4]
        b'\\x89PNG'
    """
    pixels = np.asarray(picture.convert("RGB"))
    packed = pixels.reshape(-1, 3) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    values, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    colours = np.stack([values >> 16, values >> 8 & 255, values & 255], axis=1).astype(np.int16)
    change, nearest = np.full(len(values), 256), np.zeros(len(values), np.uint8)
    palette = []
    for place in range(256 if len(values) <= MANY else 0):
        k = (counts if place < FREQUENT else change).argmax()
        palette += colours[k].tolist()
        counts[k] = 0
        distance = np.abs(colours - colours[k]).max(axis=1)
        closer = distance < change
        nearest[closer], change[closer] = place, distance[closer]
    if change.max() <= UNSEEN:
        small = Image.fromarray(nearest[places].reshape(pixels.shape[:2]))
        small.putpalette(palette)
    else:
        small = Image.fromarray((np.rint(pixels / 4) * 4).clip(0, 255).astype(np.uint8))
    small.save(buffer := io.BytesIO(), format="png")
    return buffer.getvalue()
