"""Small PNG files look as what was drawn."""

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw

from vitedu.plots.png import UNSEEN, small_png


def read_back(picture):
    """Give the mode of the file, its largest change, and its bytes beside those of a plain one."""
    small, plain = small_png(picture), io.BytesIO()
    picture.save(plain, format="png")
    read = Image.open(io.BytesIO(small))
    pixels = [np.asarray(each.convert("RGB")).astype(int) for each in (read, picture)]
    assert (pixels[0][pixels[1] == 255] == 255).all()
    return read.mode, np.abs(pixels[0] - pixels[1]).max(), len(small) / plain.tell()


def test_lines_on_white_get_a_palette_and_lose_nothing_that_is_seen():
    """Ink whose edges fade has few colours; one dot of a rare colour stays too."""
    large = Image.new("RGB", (1600, 800), "white")
    ImageDraw.Draw(large).line((10, 10, 1500, 700), fill="#0072B2", width=9)
    picture = large.resize((800, 400), Image.Resampling.BILINEAR)
    picture.putpixel((790, 10), (213, 94, 0))
    mode, change, share = read_back(picture)
    assert mode == "P" and change <= 2 and share < 0.7


def test_shades_that_no_eye_tells_apart_share_a_colour():
    """More than 256 colours that lie close together: no pixel changes by more than is allowed."""
    shades = np.linspace(0, 255, 256).round().astype(np.uint8)
    pixels = np.stack([shades, shades, shades[::-1]], axis=-1)[None].repeat(8, axis=0)
    pixels[4:, :, 1] = pixels[4:, :, 1] // 4 * 4 + 3
    mode, change, _ = read_back(Image.fromarray(pixels))
    assert mode == "P" and 0 < change <= UNSEEN


@pytest.mark.parametrize("side", [20, 90], ids=["many colours", "too many to choose from"])
def test_photograph_keeps_its_colours(side):
    """No palette draws them; each changes by 2 of 255 at most, white stays, the file shrinks."""
    pixels = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    pixels[0, 0] = 255
    mode, change, share = read_back(Image.fromarray(pixels).resize((8 * side, 8 * side)))
    assert mode == "RGB" and change <= 2 and share < 1
