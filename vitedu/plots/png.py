"""Small PNG files of figures: fewer colours, where no eye sees the difference.

Role: a picture in, a file out. Most figures are lines and words on white: a palette of 256 colours
draws them, and the file shrinks to a third. Photographs need more; they keep six bits of each.
"""

import io

import numpy as np
from PIL import Image

UNSEEN = 8  # of 255: the largest change of any pixel; in a photograph it is 2
MANY = 4096  # colours that no palette of 256 stands for


def small_png(picture: Image.Image) -> bytes:
    """Give an opaque picture as a PNG file, with a palette where that changes nothing to be seen.

    Example:
        >>> small_png(Image.new("RGB", (3, 2), "white"))[:4]
        b'\\x89PNG'
    """
    picture = picture.convert("RGB")
    pixels, small = np.asarray(picture).astype(np.int16), picture
    if picture.getcolors(MANY):
        # the palette that comes near to every colour, also to a rare one; white stays white
        small = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        small.putpalette([255 if value > 252 else value for value in small.getpalette() or ()])
    if small is picture or np.abs(np.asarray(small.convert("RGB")) - pixels).max() > UNSEEN:
        small = Image.fromarray((np.rint(pixels / 4) * 4).clip(0, 255).astype(np.uint8))
    small.save(buffer := io.BytesIO(), format="png")
    return buffer.getvalue()
