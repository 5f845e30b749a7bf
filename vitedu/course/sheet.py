"""All figures of a run of the course on one picture, so that one look finds what does not fit.

Role: take the pictures out of executed notebooks and lay them out. Not here: the run (``tour.py``),
the figures' style (``vitedu.plots.style``).
"""

import base64
import io
from collections.abc import Iterable
from pathlib import Path

from nbformat import NotebookNode
from PIL import Image, ImageDraw, ImageFont

WIDTH = 3200  # pixels of the sheet
HEIGHT = 320  # pixels of each figure on it
GAP = 12
GROUND = "#D0D0D0"  # the figures are white cards: the ground shows their edges


def extract_pictures(notebook: NotebookNode) -> list[tuple[str, Image.Image]]:
    """Give the pictures of an executed notebook in their order, each with the id of its cell."""
    return [
        (cell.id, Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))).convert("RGB"))
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]


def draw_sheet(notebooks: Iterable[tuple[str, NotebookNode]], path: Path) -> int:
    """Draw the pictures of executed notebooks, each under its notebook's name and its cell's.

    Args:
        notebooks: name and notebook, in the order of the sheet.
        path: where the PNG file goes; its folder is made.

    Returns:
        How many pictures it holds.
    """
    font = ImageFont.load_default(size=18)
    placements: list[tuple[int, int, str, Image.Image]] = []
    top = 0
    for name, notebook in notebooks:
        left = GAP
        top += GAP
        for each, picture in extract_pictures(notebook):
            width = min(round(picture.width * HEIGHT / picture.height), WIDTH - 2 * GAP)
            size = width, round(picture.height * width / picture.width)
            if left + width + GAP > WIDTH:
                left, top = GAP, top + HEIGHT + 40
            placements.append((left, top, f"{name}: {each}", picture.resize(size)))
            left += width + GAP
        top += HEIGHT + 40
    sheet = Image.new("RGB", (WIDTH, max(top, 1)), GROUND)
    pen = ImageDraw.Draw(sheet)
    for left, top, words, picture in placements:
        pen.text((left, top), words, fill="black", font=font)
        sheet.paste(picture, (left, top + 26))
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path, optimize=True)
    return len(placements)
