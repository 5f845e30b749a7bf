"""What all explorers have: a picture to click into, and one setting to change.

Role: where a kernel answers, controls of ipywidgets redraw the figure for every cell and setting.
Elsewhere (exported pages, front ends without ipywidgets) one picture stands in their place, and
says which cell to run. Both come from one description, an ``Explorer``. Not here: the explorers
themselves (``vitedu.plots.widgets``).
"""

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
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from vitedu.ground.hardware import current_profile
from vitedu.plots.parts import frame
from vitedu.plots.style import DPI, WIDTH, CourseFigure, hide_ticks, styled

WIDGET = "application/vnd.jupyter.widget-view+json"
HEIGHT = 3.6  # inches: of a figure, as wide as a notebook column
PICTURE = 0.01, 0.06, 0.375, 0.8333  # in the figure: left, bottom, width, height of its picture


class ExplorerFigure(CourseFigure):
    """A figure with a picture to click into, at its left, and artists that follow the click."""

    def __init__(self, grid_size: tuple[int, int]):
        super().__init__(figsize=(WIDTH, HEIGHT))
        self.followers: list[tuple[Artist, dict[str, Any]]] = []
        self.picture = self.add_axes(PICTURE)
        hide_ticks(self.picture)
        self.frame_in(self.picture, grid_size)

    def follow(self, artist: Artist, **values: Any) -> None:
        """Let an artist follow the click: name of a property -> its value for each cell."""
        self.followers.append((artist, values))

    def frame_in(self, ax: Axes, grid_size: tuple[int, int]) -> None:
        """Frame the clicked cell of a grid that fills some axes."""
        rows, columns = grid_size
        corners = [
            (k % columns / columns, 1 - (k // columns + 1) / rows) for k in range(rows * columns)
        ]
        look = {"transform": ax.transAxes, "zorder": 3, "linewidth": min(2.5, 40 / rows)}
        self.follow(frame(ax, 0, 0, 1 / columns, 1 / rows, **look), xy=corners)

    def move(self, cell: int) -> list[Artist]:
        """Move what follows to a cell; give it, what is in front last."""
        for artist, values in self.followers:
            artist.set(**{name: column[cell] for name, column in values.items()})
        return sorted((artist for artist, _ in self.followers), key=Artist.get_zorder)


@dataclass(repr=False, eq=False)
class Explorer:
    """A figure that follows a click into its picture, and one setting."""

    draw: Callable[[ExplorerFigure, Any], None]  # draws into an empty figure, for a setting
    describe: Callable[[Any, int], str]  # says what that figure shows, for screen readers too
    settings: Sequence
    setting_name: str  # such as "patch size (px)"
    grid: Callable[[Any], tuple[int, int]]  # rows and columns of the picture's cells
    start: Any = None  # the setting that is shown first; by default the first one
    cell_name: str = "patch"  # what a cell of the picture is called
    # setting -> canvas, and pixels that never change
    drawn: dict = field(default_factory=dict)

    def __post_init__(self):
        self.start = self.settings[0] if self.start is None else self.start

    def __repr__(self) -> str:
        return f"Explorer({self.setting_name}: {', '.join(str(s) for s in self.settings)})"

    def cell_at(self, setting: Any, row: float, column: float) -> int:
        """Give the cell at a place in the picture; row and column run from 0 to 1."""
        rows, columns = self.grid(setting)
        return int(row * rows) * columns + int(column * columns)

    @styled
    def figure(self, setting: Any, cell: int) -> ExplorerFigure:
        """Draw the figure of a setting, moved to a cell."""
        figure = ExplorerFigure(self.grid(setting))
        self.draw(figure, setting)
        figure.move(cell)
        return figure

    def frame(self, setting: Any, cell: int) -> bytes:
        """Draw one frame, as a JPEG; only what the cell changes is drawn anew."""
        if setting not in self.drawn:
            figure = self.figure(setting, cell)
            figure.set_dpi(DPI)  # with twice the dots a browser takes nearly twice as long
            canvas = FigureCanvasAgg(figure)
            for artist in figure.move(cell):
                artist.set_animated(True)  # left out of the background
            canvas.draw()
            self.drawn[setting] = canvas, canvas.copy_from_bbox(figure.bbox)
        canvas, background = self.drawn[setting]
        canvas.restore_region(background)
        for artist in canvas.figure.move(cell):
            artist.axes.draw_artist(artist)
        picture = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
        picture.save(buffer := io.BytesIO(), format="jpeg", quality=80)
        return buffer.getvalue()

    def still(self) -> CourseFigure:
        """Draw the form without a kernel: the first setting, the cell in the middle, and words."""
        cell = self.cell_at(self.start, 0.5, 0.5)
        figure = self.figure(self.start, cell)
        figure.write_below(self.describe(self.start, cell), "to click into it")
        return figure

    def _ipython_display_(self) -> None:
        show_live(self.still(), self.widget_view() if kernel_answers() else None)

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
        middle = self.cell_at(self.start, 0.5, 0.5)
        cell = widgets.IntSlider(middle, max=middle, description=self.cell_name, style=wide)
        picture = widgets.Image(format="jpeg", layout=widgets.Layout(width="100%"))
        words, style = widgets.HTML(), widgets.HTML(f"<style>{read_style()}</style>")
        shared = {"layout": widgets.Layout(), "style": widgets.ButtonStyle()}

        def button(k: int):
            button = widgets.Button(description=str(k), tooltip=f"{self.cell_name} {k}", **shared)
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
            said = html.escape(self.describe(setting.value, cell.value))
            words.value = f'<p role="status" aria-live="polite">{said}</p>'

        def regrid(before):
            size, (rows, columns) = self.grid(setting.value), self.grid(before)
            row, column = divmod(cell.value, columns)
            cell.unobserve(show, "value")
            cell.max = size[0] * size[1] - 1
            # the same place in the finer or coarser grid
            cell.value = self.cell_at(setting.value, (row + 0.5) / rows, (column + 0.5) / columns)
            cell.observe(show, "value")
            show()
            for each, box in layers.items():
                box.layout.visibility = "visible" if each == size else "hidden"

        setting.observe(lambda change: regrid(change.old), "value")
        regrid(self.start)
        controls = widgets.HBox([setting, cell], layout=widgets.Layout(flex_flow="row wrap"))
        whole = widgets.VBox([style, controls, stage, words])
        whole.add_class("vitedu-explorer")
        return whole


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
