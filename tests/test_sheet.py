"""The sheet shows every figure of a run once, in order, as it is, with its place in the course."""

import base64
import io

import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from vitedu.course import sheet


def picture(colour, size=(40, 20)):
    """Write a picture of one colour as a cell's output."""
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, format="png")
    return new_output(
        "display_data", {"image/png": base64.b64encode(buffer.getvalue()).decode("ascii")}
    )


def notebook(*colours, size=(40, 20)):
    """Build an executed notebook with a figure of each colour, among other outputs."""
    text = new_output("stream", text="words\n")
    cells = [new_code_cell(id=f"cell-{c}", outputs=[text, picture(c, size)]) for c in colours]
    return new_notebook(cells=[new_markdown_cell("words"), *cells])


@pytest.mark.slow
def test_every_figure_stands_on_the_sheet_in_its_shape(tmp_path):
    """Six figures of twice their height need two rows; none is cut or stretched."""
    colours = ("red", "blue", "lime", "yellow", "cyan", "magenta")
    path = tmp_path / "new" / "figures.png"
    assert sheet.draw_sheet([("01", notebook(*colours)), ("02", notebook("navy"))], path) == 7
    drawn = np.asarray(Image.open(path))
    assert drawn.shape[1] == sheet.WIDTH
    tops = []
    for colour in (*colours, "navy"):
        rows, columns = np.nonzero(
            (drawn == Image.new("RGB", (1, 1), colour).getpixel((0, 0))).all(-1)
        )
        assert np.ptp(rows) + 1 == sheet.HEIGHT
        assert np.ptp(columns) + 1 == 2 * sheet.HEIGHT
        tops.append(rows.min())
    assert len(set(tops)) == 3
    assert tops == sorted(tops)


def test_a_wide_figure_is_made_to_fit(tmp_path):
    """A strip that is wider than the sheet keeps its shape, too."""
    sheet.draw_sheet([("01", notebook("red", size=(800, 20)))], tmp_path / "figures.png")
    drawn = np.asarray(Image.open(tmp_path / "figures.png"))
    rows, columns = np.nonzero((drawn == (255, 0, 0)).all(-1))
    assert np.ptp(columns) + 1 == sheet.WIDTH - 2 * sheet.GAP
    assert np.ptp(rows) + 1 == round((sheet.WIDTH - 2 * sheet.GAP) / 40)


def test_no_figures_make_an_empty_sheet(tmp_path):
    """A notebook that stopped at its first cell is no reason to lose the pages."""
    assert sheet.draw_sheet([("01", new_notebook())], tmp_path / "figures.png") == 0
    assert (tmp_path / "figures.png").exists()
