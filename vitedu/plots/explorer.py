"""What all explorers have: a picture to click into, and one setting to change.

Role: where a kernel answers, controls of ipywidgets redraw the figure for every cell and setting.
Elsewhere (exported pages, front ends without ipywidgets) one picture stands in their place, and
says which cell to run. The left side of every figure is drawn here. Not here: the explorers
themselves (``vitedu.plots.widgets``).
"""

import functools
import html
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.font_manager import findfont
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from PIL import Image, ImageDraw, ImageFont

from vitedu.hardware import current_profile
from vitedu.plots import ink
from vitedu.plots.parts import draw_image, frame, write_cells
from vitedu.plots.style import DPI, WIDTH, CourseFigure, hide_ticks, styled

WIDGET = "application/vnd.jupyter.widget-view+json"
HEIGHT = 3.6  # inches: of a figure, as wide as a notebook column
PICTURE = 0.01, 0.06, 0.375, 0.8333  # in the figure: left, bottom, width, height of its picture
# a figure, and a function that moves it to cell k and gives the artists that changed
FigureAndMove = tuple[CourseFigure, Callable[[int], Sequence[Artist]]]


@dataclass(repr=False, eq=False)
class Explorer:
    """A figure that follows a click into its picture, and one setting."""

    # Gives the figure for a setting, its picture where PICTURE says. What moves with a cell are
    # pictures that fill their axes, lines of text on their baselines, and anything else.
    draw: Callable[[Any], FigureAndMove]
    describe: Callable[[Any, int], str]  # says what that figure shows, for screen readers too
    settings: Sequence
    setting_name: str  # such as "patch size (px)"
    # rows and columns of the picture's cells, or a function that gives them for a setting
    grid: Any
    start: Any = None  # the setting that is shown first; by default the first one
    cell_name: str = "patch"  # what a cell of the picture is called
    # setting -> canvas, function that moves its figure, and pixels that never change
    drawn: dict = field(default_factory=dict)

    def __post_init__(self):
        self.draw = styled(self.draw)
        if not callable(self.grid):
            self.grid = lambda setting, size=self.grid: size
        self.start = self.settings[0] if self.start is None else self.start

    def __repr__(self) -> str:
        return f"Explorer({self.setting_name}: {', '.join(str(s) for s in self.settings)})"

    def cell_at(self, setting, row: float, column: float) -> int:
        """Give the cell at a place in the picture; row and column run from 0 to 1."""
        rows, columns = self.grid(setting)
        return int(row * rows) * columns + int(column * columns)

    def frame(self, setting, cell: int) -> bytes:
        """Draw one frame, as a JPEG; only what the cell changes is drawn anew."""
        if setting not in self.drawn:
            figure, move = self.draw(setting)
            figure.set_dpi(DPI)  # with twice the dots a browser takes nearly twice as long
            canvas = FigureCanvasAgg(figure)
            for artist in move(cell):
                artist.set_animated(True)  # left out of the background
            canvas.draw()
            self.drawn[setting] = canvas, move, canvas.copy_from_bbox(figure.bbox)
        canvas, move, background = self.drawn[setting]
        canvas.restore_region(background)
        pixels, words = np.asarray(canvas.buffer_rgba()), []
        for artist in move(cell):
            if isinstance(artist, AxesImage):
                paste(artist, pixels)
            elif isinstance(artist, Text):
                words.append(artist)
            else:
                artist.axes.draw_artist(artist)
        picture = Image.frombuffer("RGBX", canvas.get_width_height(), pixels, "raw", "RGBX", 0, 1)
        write_lines(words, picture)
        buffer = io.BytesIO()
        picture.save(buffer, format="jpeg", quality=80)
        return buffer.getvalue()

    def still(self) -> CourseFigure:
        """Draw the form without a kernel: the first setting, the cell in the middle, and words."""
        cell = self.cell_at(self.start, 0.5, 0.5)
        figure, move = self.draw(self.start)
        move(cell)
        figure.write_below(self.describe(self.start, cell), "to click into it")
        return figure

    def _ipython_display_(self) -> None:
        show_live(self.still(), self.widget_view() if kernel_answers() else None)

    # -- with a kernel ----------------------------------------------------------------------------

    def widget_view(self):
        """Give the form for a running kernel: a widget of ipywidgets, 7.7 or later.

        The picture's cells are buttons, for the mouse; two sliders serve the keyboard.
        """
        import ipywidgets as widgets

        wide = {"description_width": "initial"}
        options = [(str(setting), setting) for setting in self.settings]
        setting = widgets.SelectionSlider(
            options=options, value=self.start, description=self.setting_name, style=wide
        )
        cell = widgets.IntSlider(description=self.cell_name, style=wide)
        picture = widgets.Image(format="jpeg", layout=widgets.Layout(width="100%"))
        words, style = widgets.HTML(), widgets.HTML(f"<style>{read_style()}</style>")
        shared = {"layout": widgets.Layout(), "style": widgets.ButtonStyle()}

        def button(k: int):
            tooltip = f"{self.cell_name} {k}"
            button = widgets.Button(description=str(k), tooltip=tooltip, **shared)
            if button.has_trait("tabbable"):
                button.tabbable = False  # one stop for the keyboard, the slider, not hundreds
            button.on_click(lambda _: setattr(cell, "value", k))
            return button

        def layer(rows: int, columns: int):
            box = widgets.GridBox([button(k) for k in range(rows * columns)])
            box.layout.grid_template_columns = f"repeat({columns}, 1fr)"
            box.layout.grid_template_rows = f"repeat({rows}, 1fr)"
            box.add_class("vitedu-cells")
            return box

        # a browser takes long to build buttons: every grid has its own, and one grid is in sight
        layers = {size: layer(*size) for size in dict.fromkeys(map(self.grid, self.settings))}
        # JupyterLab 3 makes an output as wide as a fixed width in it, and the page cuts it off
        at_most = widgets.Layout(width="calc(100% - 8px)", max_width=f"{WIDTH * DPI:g}px")
        stage = widgets.Box([picture, *layers.values()], layout=at_most)
        stage.add_class("vitedu-stage")

        def show(change=None):
            picture.value = self.frame(setting.value, cell.value)
            description = html.escape(self.describe(setting.value, cell.value))
            words.value = f'<p role="status" aria-live="polite">{description}</p>'

        def regrid(change=None):
            rows, columns = self.grid(setting.value)
            place = 0.5, 0.5
            if change:  # the same place in the finer or coarser grid
                old_rows, old_columns = self.grid(change.old)
                row, column = divmod(cell.value, old_columns)
                place = (row + 0.5) / old_rows, (column + 0.5) / old_columns
            cell.unobserve(show, "value")
            cell.max = rows * columns - 1
            cell.value = self.cell_at(setting.value, *place)
            cell.observe(show, "value")
            show()
            for size, box in layers.items():
                box.layout.visibility = "visible" if size == (rows, columns) else "hidden"

        setting.observe(regrid, "value")
        regrid()
        controls = widgets.HBox([setting, cell], layout=widgets.Layout(flex_flow="row wrap"))
        whole = widgets.VBox([style, controls, stage, words])
        whole.add_class("vitedu-explorer")
        return whole


def paste(image: AxesImage, pixels: np.ndarray) -> None:
    """Draw a picture of some cells. It colours cells, where matplotlib would colour every pixel.

    Args:
        image: fills its axes; its cells keep sharp edges.
        pixels: (H, W, 4), uint8, of the whole figure; changed in place.
    """
    colours = image.to_rgba(np.ma.asarray(image.get_array()), bytes=True)  # (rows, columns, 4)
    colours = np.where(colours[..., 3:] == 0, 255, colours)  # paper where there is no value
    left, low, right, high = np.rint(image.get_window_extent().extents).astype(int)
    height, width = high - low, right - left
    row = (2 * np.arange(height) + 1) * colours.shape[0] // (2 * height)
    column = (2 * np.arange(width) + 1) * colours.shape[1] // (2 * width)
    top = len(pixels) - high
    pixels[top : top + height, left:right] = colours[row[:, None], column]


def write_lines(words: Sequence[Text], picture: Image.Image) -> None:
    """Write lines of text. It writes a line at once, where matplotlib would draw letter by letter.

    Args:
        words: each stands on its baseline.
        picture: of the whole figure; changed in place.
    """
    pen = ImageDraw.Draw(picture)
    for text in words:
        x, y = text.get_transform().transform(text.get_position())
        size = float(text.get_fontsize()) * text.figure.dpi / 72
        font = typeface(findfont(text.get_fontproperties()), size)
        anchor = text.get_horizontalalignment()[0].replace("c", "m") + "s"
        pen.text((x, picture.height - y), text.get_text(), to_hex(text.get_color()), font, anchor)


@functools.cache
def typeface(path: str, size: float) -> ImageFont.FreeTypeFont:
    """Open a font in a size, once."""
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


def read_style() -> str:
    """Read the style of live explorers, and fill in the place of the picture, in percent."""
    left, bottom, width, height = (100 * part for part in PICTURE)
    place = {"left": left, "top": 100 - bottom - height, "width": width, "height": height}
    text = Path(__file__).with_name("explorer.css").read_text(encoding="utf-8")
    return Template(text).substitute(place)


def kernel_answers() -> bool:
    """Say whether somebody may be looking through a kernel that has ipywidgets.

    Nobody looks where ``VITEDU_STILL`` is set, as by ``vitedu tour``, or in the quick profile.
    """
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return False
    if "VITEDU_STILL" in os.environ or current_profile().name == "quick":
        return False
    return hasattr(get_ipython(), "kernel")


def show_live(still: CourseFigure, widget: Any) -> None:
    """Show a still picture as a cell's output, or a widget with the script that labels it."""
    from IPython.display import display

    if widget is None:
        return display(still)
    data, known = still.forms()
    data[WIDGET] = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    display(data, metadata=known, raw=True)
    labels = Path(__file__).with_name("labels.js").read_text(encoding="utf-8")
    display({"text/html": f"<script>{labels}</script>", "text/plain": ""}, raw=True)


# -- the left side of a figure --------------------------------------------------------------------


def explorer_figure(title: str = "") -> tuple[CourseFigure, Any]:
    """Open the figure of an explorer, and the axes in it that is clicked into."""
    fig = CourseFigure(figsize=(WIDTH, HEIGHT))
    ax = fig.add_axes(PICTURE)
    ax.set_title(title)
    hide_ticks(ax)
    return fig, ax


def moving_frame(
    ax, columns: int, side: float = 1, *, corner: float = -0.5, linewidth: float = 2.5
) -> Callable[[int], Rectangle]:
    """Frame a cell of a picture; give a function that moves the frame to cell k and gives it.

    Args:
        ax: of the picture.
        columns: cells in a row; k counts row by row.
        side: of a cell, in the axes' units.
        corner: x and y of the picture's corner.
        linewidth: of the frame, in points.
    """
    moving = frame(ax, corner, corner, side, linewidth=linewidth)

    def move(k: int) -> Rectangle:
        row, column = divmod(k, columns)
        moving.set_xy((column * side + corner, row * side + corner))
        return moving

    return move


def image_to_click(
    image, grid_size: tuple[int, int], title: str = "click a patch"
) -> tuple[CourseFigure, Callable[[int], Rectangle]]:
    """Open an explorer's figure with an image (C, H, W) and a ``moving_frame``; give both."""
    fig, ax = explorer_figure()
    draw_image(ax, image, title)
    return fig, moving_frame(ax, grid_size[1], image.shape[-1] / grid_size[1])


def table_to_click(
    values: np.ndarray, words: np.ndarray, title: str, high: float
) -> tuple[CourseFigure, Callable[[int], Rectangle]]:
    """Open an explorer's figure with a table and a ``moving_frame``; give both.

    Args:
        values: (rows, columns), what colours the cells.
        words: of the same shape, what each cell says.
        title: what the colour means.
        high: where the colours end; they start at 0.
    """
    fig, ax = explorer_figure(title)
    ax.pcolormesh(values, cmap=ink.SEQUENTIAL, vmin=0, vmax=high, edgecolors="white")
    ax.invert_yaxis()
    write_cells(ax, words, values <= 0.6 * high, corner=0, fontsize=7.5)
    return fig, moving_frame(ax, values.shape[1], corner=0, linewidth=3)
