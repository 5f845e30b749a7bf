"""Small PNG files of figures: fewer colours, where no eye sees the difference.

Role: pixels in, a file out. Most figures are lines and words on white: 256 colours in a palette
draw them, and the file shrinks to a third. Photographs have more colours; they keep the first six
bits of each. Not here: what is drawn (``vitedu.plots.style``).
"""

import io

import numpy as np
from PIL import Image

UNSEEN = 8  # of 255: the largest change of any pixel; in a photograph it is 2
MANY = 4096  # colours that no palette of 256 stands for
FREQUENT = 16  # colours that come first and stay as they are: paper, ink, lines


def small_png(picture: Image.Image) -> bytes:
    """Give an opaque picture as a PNG file, with a palette where that changes nothing to be seen.

    Example:
        >>> small_png(Image.new("RGB", (3, 2), "white"))[:4]
        b'\\x89PNG'
    """
    pixels = np.asarray(picture.convert("RGB"))
    colours, places, counts = np.unique(
        pixels.reshape(-1, 3).astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32),
        return_inverse=True,
        return_counts=True,
    )
    palette = None
    if len(colours) <= MANY:
        colours = colours[:, None] >> np.array([16, 8, 0], np.uint32) & 255
        palette, nearest, change = choose(colours.astype(np.int16), counts)
    if palette is None or change > UNSEEN:
        small = Image.fromarray((np.rint(pixels / 4) * 4).clip(0, 255).astype(np.uint8))
    else:
        small = Image.fromarray(nearest[places].reshape(pixels.shape[:2]))
        small.putpalette(palette.astype(np.uint8).tobytes())
    buffer = io.BytesIO()
    small.save(buffer, format="png")
    return buffer.getvalue()


def choose(colours: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Choose 256 of a picture's colours: frequent ones, then always the one that lies farthest.

    Args:
        colours: (n, 3), signed, each once.
        counts: (n,), how many pixels have it.

    Returns:
        The palette (256, 3); for each colour its place there (n,), uint8; and the largest change.

    Example:
        >>> palette, nearest, change = choose(np.array([[0, 0, 0], [9, 9, 9]]), np.array([1, 5]))
        >>> palette[nearest].tolist(), change
        ([[0, 0, 0], [9, 9, 9]], 0)
    """
    order = np.argsort(-counts)
    change, nearest, chosen = np.full(len(colours), 256), np.zeros(len(colours), np.uint8), []
    for place in range(256):
        chosen.append(order[place] if place < min(FREQUENT, len(order)) else change.argmax())
        distance = np.abs(colours - colours[chosen[-1]]).max(axis=-1)
        closer = distance < change
        nearest[closer], change[closer] = place, distance[closer]
    return colours[chosen], nearest, int(change.max())
