"""The gallery draws every picture of its list."""

import numpy as np
import pytest
from PIL import Image, ImageColor

from vitedu.bench import gallery
from vitedu.course.sheet import GROUND


@pytest.mark.slow
def test_gallery_draws_all_of_its_pictures(tmp_path):
    """Nothing shipped is needed; each entry gives pictures, and the one of text lies beside."""
    path = tmp_path / "gallery.png"
    assert gallery.draw_gallery(path) >= 2 * len(gallery.PICTURES)
    assert (tmp_path / "pipeline.svg").read_text(encoding="utf-8").startswith("<svg")
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    ground = (pixels == ImageColor.getrgb(GROUND)).all(axis=-1)
    assert 0.2 < ground.mean() < 0.8 and len(np.unique(pixels.reshape(-1, 3), axis=0)) > 1000
