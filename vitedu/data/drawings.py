"""A folder of drawings of three kinds, as a folder of one's own pictures is laid out.

Role: ``draw_folder``, for ``vitedu train --example``. Not here: reading it (``image_folder``), the
drawn data set (``shapes``).
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

# polygons in a square of side 1, x and y of each corner; y points down
KINDS = {
    "boat": ("15 65 85 65 72 82 28 82", "48 20 52 20 52 65 48 65", "54 20 82 60 54 60"),
    "house": ("25 50 75 50 75 86 25 86", "18 50 50 20 82 50", "45 64 56 64 56 86 45 86"),
    "tree": ("45 60 55 60 55 90 45 90", "50 10 72 42 28 42", "50 28 80 66 20 66"),
}


def draw_folder(folder: Path, count: int = 23, seed: int = 0) -> Path:
    """Draw ``count`` pictures of each kind into class folders, unless the folder is there.

    Colours, place, size and turn are drawn by chance, alike for all, so that none tells the kind.
    """
    rng = np.random.default_rng(seed)
    for kind, parts in {} if folder.exists() else KINDS.items():
        (folder / kind).mkdir(parents=True)
        for number in range(1, count + 1):
            light, dark = rng.integers(180, 256, 3), rng.integers(0, 150, (3, 3))
            picture = Image.new("RGB", (200, 160), tuple(light))
            angle, side = rng.uniform(-0.1, 0.1), rng.uniform(120, 160)
            middle = [100, 80] + rng.uniform(-10, 10, 2)
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            for part, colour in zip(parts, dark, strict=True):
                corners = np.array(part.split(), float).reshape(-1, 2) / 100 - 0.5
                corners = side * corners @ turn + middle
                ImageDraw.Draw(picture).polygon([*map(tuple, corners)], fill=tuple(colour))
            picture.save(folder / kind / f"{kind}_{number:02}.jpg")
    return folder
