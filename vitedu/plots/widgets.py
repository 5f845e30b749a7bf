"""Explorers: a picture to click into, and one setting to change.

Role: one interface with two forms. Where a kernel answers, controls of ipywidgets redraw the figure
for every cell and setting. Elsewhere (exported pages, front ends without ipywidgets) frames that
were drawn beforehand travel in the cell's output with a few lines of JavaScript, and where no
script runs the first frame stays as a still picture. Not here: any drawing; figures come from the
module of their chapter.
"""

import base64
import functools
import html
import io
import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.font_manager import findfont
from matplotlib.image import AxesImage
from matplotlib.text import Text
from PIL import Image, ImageDraw, ImageFont

from vitedu.hardware import current_profile
from vitedu.plots.attention import entropy, softmax_figure, where_it_looks_figure
from vitedu.plots.efficient import blocks_figure
from vitedu.plots.inside import inside_figure
from vitedu.plots.less_data import neighbours_figure
from vitedu.plots.patches import patch_row_figure
from vitedu.plots.style import DOTS, DPI, PICTURE, WIDTH, FigureAndMove
from vitedu.plots.training import schedule_figure
from vitedu.plots.transfer import similarity_figure

WIDGET = "application/vnd.jupyter.widget-view+json"
SPOTS = ((0.5, 0.5), (0.22, 0.5), (0.15, 0.15), (0.9, 0.85))  # row, column in the picture

left, bottom, width, height = (100 * part for part in PICTURE)
STYLE = f"""<style>
.vitedu-stage {{ position: relative; overflow: visible }}
.vitedu-stage img {{ width: 100%; max-width: 100% }}
.vitedu-cells {{ position: absolute !important; left: {left}%; top: {100 - bottom - height}%;
  width: {width}% !important; height: {height}% !important; display: grid !important;
  grid-gap: 0; margin: 0; overflow: visible }}
.vitedu-cells button {{ width: auto; height: auto; min-width: 0; margin: 0; padding: 0;
  border: 0; background: transparent; color: transparent; box-shadow: none; cursor: pointer }}
.vitedu-cells button:hover, .vitedu-cells button:focus {{ background: transparent;
  color: transparent; box-shadow: none; outline: 2px solid #E69F00 }}
</style>"""
# The sliders of ipywidgets have no name for screen readers, and its pictures no description.
# Version 7's sliders are none at all for them. The script is an output of its own: a widget of HTML
# runs none, and one of version 7 that holds outputs does not either.
LABELS = """<script>
(function (script) {
  // on Colab a cell's outputs are a page
  const outputs = script.closest(".jp-OutputArea") ?? document.body
  function set(element, values) {
    for (const [name, value] of Object.entries(values))
      if (element.getAttribute(name) !== value) element.setAttribute(name, value)
  }
  function label() {
    const sliders = ".vitedu-explorer .widget-slider, .vitedu-explorer .widget-hslider"
    for (const slider of outputs.querySelectorAll(sliders)) {
      const value = slider.querySelector(".widget-readout")
      const handle = slider.querySelector(".noUi-handle, .ui-slider-handle")
      if (!handle || !value) continue
      const name = slider.querySelector("label, .widget-label").textContent
      set(handle, {"aria-label": name, "aria-valuetext": value.textContent})
      const percent = String(parseFloat(handle.style.left))  // of its way
      if (handle.matches(".ui-slider-handle"))
        set(handle, {role: "slider", "aria-valuenow": percent})
    }
    for (const box of outputs.querySelectorAll(".vitedu-explorer")) {
      for (const cells of box.querySelectorAll(".vitedu-cells"))
        set(cells, {"aria-hidden": "true"})  // the slider says it all
      const words = box.querySelector("[role=status]"), picture = box.querySelector("img")
      if (words && picture) set(picture, {alt: words.textContent})
    }
  }
  const all = {childList: true, subtree: true, characterData: true}
  new MutationObserver(label).observe(outputs, all)
  label()
})(document.currentScript)
</script>"""


@dataclass(repr=False, eq=False)
class Explorer:
    """A figure that follows a click into its picture, and one setting.

    Raises:
        ValueError: ``start`` is none of the settings.
    """

    # Gives the figure for a setting, its picture where PICTURE says. What moves with a cell are
    # pictures that fill their axes, lines of text on their baselines, and anything else.
    draw: Callable[[Any], FigureAndMove]
    describe: Callable[[Any, int], str]  # says what that figure shows, for screen readers too
    settings: Sequence
    setting_name: str  # such as "patch size (px)"
    grid: Callable[[Any], tuple[int, int]]  # rows and columns of the picture's cells in a setting
    start: Any = None  # the setting that is shown first; by default the first one
    cell_name: str = "patch"  # what a cell of the picture is called
    # setting and dots -> canvas, function that moves its figure, and pixels that never change
    drawn: dict = field(default_factory=dict)

    def __post_init__(self):
        self.start = self.settings[0] if self.start is None else self.start
        if self.start not in self.settings:
            raise ValueError(f"start must be one of {list(self.settings)} (got {self.start!r}).")

    def __repr__(self) -> str:
        return f"Explorer({self.setting_name}: {', '.join(str(s) for s in self.settings)})"

    def cell_at(self, setting, row: float, column: float) -> int:
        """Give the cell at a place in the picture; row and column run from 0 to 1."""
        rows, columns = self.grid(setting)
        return int(row * rows) * columns + int(column * columns)

    def frame(self, setting, cell: int, dots: int = 1) -> bytes:
        """Draw one frame, as a JPEG; only what the cell changes is drawn anew.

        A browser takes nearly twice as long to show one with two dots for one of the page, so only
        frames that are drawn beforehand have them.
        """
        if (setting, dots) not in self.drawn:
            figure, move = self.draw(setting)
            figure.set_dpi(dots * DPI)
            canvas = FigureCanvasAgg(figure)
            for artist in move(cell):
                artist.set_animated(True)  # left out of the background
            canvas.draw()
            self.drawn[setting, dots] = canvas, move, canvas.copy_from_bbox(figure.bbox)
        canvas, move, background = self.drawn[setting, dots]
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
        write(words, picture)
        buffer = io.BytesIO()
        picture.save(buffer, format="jpeg", quality=80)
        return buffer.getvalue()

    def _ipython_display_(self) -> None:
        show_labelled(self._repr_mimebundle_())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        live = {WIDGET: view_of(self.live())} if kernel_answers() else {}
        return {"text/plain": repr(self), "text/html": self.still(), **live}

    # -- without a kernel -------------------------------------------------------------------------

    def still(self) -> str:
        """Give the form for pages: every setting at a few cells, drawn beforehand, as HTML."""
        places = [[(s, self.cell_at(s, *spot)) for spot in SPOTS] for s in self.settings]
        pictures = [[self.frame(*place, DOTS) for place in row] for row in places]
        words = [[self.describe(*place) for place in row] for row in places]
        names, first = list(map(str, self.settings)), list(self.settings).index(self.start)
        width = round(WIDTH * DPI)
        return still_page(pictures, words, names, self.setting_name, width, first, SPOTS)

    # -- with a kernel ----------------------------------------------------------------------------

    def live(self):
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
        words, style = widgets.HTML(), widgets.HTML(STYLE)
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
            said = html.escape(self.describe(setting.value, cell.value))
            words.value = f'<p role="status" aria-live="polite">{said}</p>'

        def regrid(change=None):
            rows, columns = self.grid(setting.value)
            if change:  # the same place in the finer or coarser grid
                old_rows, old_columns = self.grid(change.old)
                row, column = divmod(cell.value, old_columns)
                place = (row + 0.5) / old_rows, (column + 0.5) / old_columns
            else:
                place = SPOTS[0]
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


def write(words: Sequence[Text], picture: Image.Image) -> None:
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


def still_page(
    pictures: Sequence[Sequence[bytes]],
    words: Sequence[Sequence[str]],
    names: Sequence[str],
    setting_name: str,
    width: int,
    first: int = 0,
    spots: Sequence[tuple[float, float]] = (),
) -> str:
    """Write frames drawn beforehand as HTML: a slider for the setting, and one for the place.

    JupyterLab takes arrow keys for its own unless the focused element has
    ``data-lm-suppress-shortcuts``.

    Args:
        pictures: for each setting the pictures of all places, as JPEG or PNG files.
        words: what each picture shows.
        names: of the settings.
        setting_name: what the setting is.
        width: of the pictures on a page that is wide enough, in its pixels.
        first: the setting that is shown first.
        spots: row and column of each place in the picture, 0 to 1; none for one place.
    """
    addresses = [[data_address(picture) for picture in row] for row in pictures]
    key = f"explorer-{uuid.uuid4().hex}"
    name, said = html.escape(setting_name), html.escape(words[first][0])
    place = ""
    if spots:
        place = f"""
  <label>place: <span>1</span>
    <input data-lm-suppress-shortcuts
      type="range" min="0" max="{len(spots) - 1}" value="0" step="1"></label>"""
    return f"""
<div id="{key}">
  <label>{name}: <span>{html.escape(names[first])}</span>
    <input data-lm-suppress-shortcuts
      type="range" min="0" max="{len(names) - 1}" value="{first}" step="1"></label>{place}<br>
  <img src="{addresses[first][0]}" alt="{said}" style="width: {width}px; max-width: 100%">
  <p role="status" aria-live="polite">{said}</p>
  <script>
    (function (box) {{
      const pictures = {script_json(addresses)}, words = {script_json(words)};
      const names = {script_json(names)}, spots = {script_json(spots)};
      const picture = box.querySelector("img"), said = box.querySelectorAll("label span");
      const [setting, place] = box.querySelectorAll("input");
      function show() {{
        const here = place ? place.value : 0;
        picture.src = pictures[setting.value][here];
        picture.alt = words[setting.value][here];
        box.querySelector("p").textContent = words[setting.value][here];
        said[0].textContent = setting.ariaValueText = names[setting.value];
        if (place) said[1].textContent = place.ariaValueText = Number(here) + 1;
      }}
      setting.oninput = show;
      if (!place) return;
      place.oninput = show;
      picture.onclick = function (event) {{  // the place that is drawn and lies nearest
        const frame = picture.getBoundingClientRect();
        const x = ((event.clientX - frame.left) / frame.width - {PICTURE[0]}) / {PICTURE[2]};
        const top = {1 - PICTURE[1] - PICTURE[3]:.4f}, height = {PICTURE[3]};
        const y = ((event.clientY - frame.top) / frame.height - top) / height;
        const far = spots.map(([row, column]) => Math.hypot(row - y, column - x));
        place.value = far.indexOf(Math.min(...far));
        show();
      }};
    }})(document.getElementById("{key}"));
  </script>
</div>"""


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


def show_labelled(bundle: dict[str, Any]) -> None:
    """Show a bundle of forms as a cell's output, a live form with the script that labels it."""
    from IPython.display import display

    display(bundle, raw=True)
    if WIDGET in bundle:
        display({"text/html": LABELS, "text/plain": ""}, raw=True)


def data_address(picture: bytes) -> str:
    """Give a picture, a JPEG or PNG file, as an address that holds all of it."""
    kind = "png" if picture.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"


def view_of(widget) -> dict[str, Any]:
    """Give what a notebook's page needs to show a widget, under ``WIDGET``."""
    return {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}


def script_json(value) -> str:
    """Write a value as JSON that cannot end the script it stands in."""
    return json.dumps(value).replace("</", "<\\/")


def position(k: int, columns: int) -> str:
    """Say where cell k of a grid lies."""
    return f"row {k // columns}, column {k % columns}"


def explore_patches(image, patch_sizes: Sequence[int] = (56, 32, 16)) -> Explorer:
    """Show an image, its patches, and the row of the sequence that the clicked patch becomes.

    Args:
        image: (C, H, W), uint8 or floats in [0, 1]; H and W divisible by every size.
        patch_sizes: the sizes to choose from, in pixels.
    """
    C, H, W = image.shape

    def describe(P, k):
        row = f"row {k} of the sequence: {C * P * P} numbers"
        return f"Patch {k} of {(H // P) * (W // P)} ({position(k, W // P)}) is {row}."

    def draw(P):
        return patch_row_figure(image, P)

    def grid(P):
        return H // P, W // P

    return Explorer(draw, describe, patch_sizes, "patch size (px)", grid, patch_sizes[-1])


def explore_attention(
    image, weights_at: Callable, temperatures: Sequence[float], grid_size: tuple[int, int]
) -> Explorer:
    """Show an image, and where the clicked patch looks at the chosen temperature.

    Args:
        image: (C, H, W), uint8 or floats in [0, 1].
        weights_at: temperature -> weights (N, N), row i is what patch i attends to.
        temperatures: the values to choose from.
        grid_size: (gh, gw), N = gh*gw.
    """
    tables = {temperature: weights_at(temperature) for temperature in temperatures}

    def describe(temperature, k):
        row = tables[temperature][k]
        most = int(row.argmax())
        return (
            f"Temperature {temperature:g}: patch {k} gives its largest weight, {row[most]:.3f}, to "
            f"patch {most}, and {row[k]:.3f} to itself. Uniform would be {1 / len(row):.3f}."
        )

    def draw(temperature):
        return where_it_looks_figure(image, tables[temperature], grid_size)

    middle = temperatures[len(temperatures) // 2]
    return Explorer(draw, describe, temperatures, "temperature", lambda _: grid_size, middle)


def explore_inside(
    images,
    weights: Mapping[str, np.ndarray],
    answers: Mapping[str, Sequence],
    grid_size: tuple[int, int],
) -> Explorer:
    """Show for the clicked patch where every head of every block looks, and what is answered there.

    Args:
        images: n pictures (C, H, W), uint8 or floats in [0, 1].
        weights: name of the model -> (n, L, nh, T, T); the last N tokens are patches.
        answers: name of the model -> for each picture, block and patch the answer in words.
        grid_size: (gh, gw).
    """
    first = next(iter(answers))

    def draw(i):
        tables = {name: table[i] for name, table in weights.items()}
        words = {name: said[i] for name, said in answers.items()}
        return inside_figure(images[i], tables, words, grid_size)

    def describe(i, k):
        said = f"the {first} model answers {answers[first][i][-1][k]} after its last block"
        return f"Picture {i}, patch {k} ({position(k, grid_size[1])}): read at this patch, {said}."

    return Explorer(draw, describe, range(len(images)), "picture", lambda _: grid_size)


def explore_reach(image, tables: dict[str, Any], grid_size: tuple[int, int]) -> Explorer:
    """Show an image, and how strongly the clicked cell of a network depends on every place.

    Args:
        image: (C, H, W), uint8 or floats in [0, 1].
        tables: network -> (N, N), row i holds the shares of all places in what moves cell i.
        grid_size: (gh, gw), N = gh*gw.
    """
    titles = ("click a cell", "what it depends on", "share")

    def describe(name, k):
        row = tables[name][k]
        reached = f"{int((row > 0).sum())} of {len(row)} places"
        return f"{name}: cell {k} depends on {reached}, and with {row[k]:.0%} on its own."

    def draw(name):
        return where_it_looks_figure(image, tables[name], grid_size, titles)

    names = list(tables)
    return Explorer(draw, describe, names, "network", lambda _: grid_size, cell_name="cell")


def explore_blocks(tables: Mapping[str, Any], grid_size: tuple[int, int]) -> Explorer:
    """Show after how many blocks the clicked token of a grid sees every other one.

    Args:
        tables: kind of attention -> (3, N, N) boolean; entry (n, i, j) says that token i depends on
            token j after n+1 blocks.
        grid_size: (gh, gw), N = gh*gw.
    """

    def describe(kind, k):
        one, two, three = tables[kind][:, k].sum(dim=-1).tolist()
        return (
            f"{kind}: the token in {position(k, grid_size[1])} sees {one} of "
            f"{tables[kind].shape[-1]} tokens after one block, {two} after two and {three} after "
            "three."
        )

    def draw(kind):
        return blocks_figure(tables[kind], grid_size)

    kinds = list(tables)
    return Explorer(draw, describe, kinds, "attention", lambda _: grid_size, cell_name="token")


def explore_neighbours(
    images, gallery, tables: dict[str, Any], names: Sequence[str], truth: Sequence[str]
) -> Explorer:
    """Show a square of images, and what lies nearest to the clicked one, by features of the chosen
    kind.

    Args:
        images: (n*n, C, H, W), uint8 or floats in [0, 1].
        gallery: (m, C, H, W), what is searched.
        tables: kind of features -> (n*n, k) indices into the gallery, the nearest first.
        names: class of each image of the gallery.
        truth: class of each image of the square.
    """
    kinds, side = list(tables), round(len(images) ** 0.5)

    def describe(kind, i):
        found = [names[index] for index in tables[kind][i].tolist()]
        same = found.count(truth[i])
        return f"{kind}: {same} of the {len(found)} nearest images are of its class, {truth[i]}."

    def draw(kind):
        return neighbours_figure(images, gallery, tables[kind], names, f"nearest by {kind}")

    return Explorer(draw, describe, kinds, "features", lambda _: (side, side), kinds[-1])


def explore_similarity(
    images, tables: Sequence[Mapping[str, np.ndarray]], grid_size: tuple[int, int]
) -> Explorer:
    """Show for the clicked patch which patches have features like its own, for every model.

    Args:
        images: n pictures (C, H, W), uint8 or floats in [0, 1].
        tables: for each picture, name of the model -> (N, N) cosines between its patches.
        grid_size: (gh, gw).
    """

    def describe(i, k):
        counts = {name: int((table[k] > 0.5).sum()) - 1 for name, table in tables[i].items()}
        alike = ", ".join(f"{count} ({name})" for name, count in counts.items())
        patch = f"Picture {i}, patch {k} ({position(k, grid_size[1])})"
        return f"{patch}: patches with a cosine above 0.5: {alike}."

    def draw(i):
        return similarity_figure(images[i], tables[i], grid_size)

    return Explorer(draw, describe, range(len(images)), "picture", lambda _: grid_size)


def explore_softmax(
    scores: Mapping[str, Mapping[int, Any]], softmax: Callable, temperatures: Sequence[float]
) -> Explorer:
    """Show the weights that a query gives to some keys, for the clicked width and temperature.

    Args:
        scores: how the scores are scaled -> width d -> the scores of all keys (T,).
        softmax: turns scores (T,) into weights (T,).
        temperatures: the values to choose from; scores are divided by them.
    """
    scales, widths = list(scores), list(next(iter(scores.values())))
    # scale -> (widths, temperatures, T), what softmax receives and what it gives
    divided = {s: [[scores[s][d] / t for t in temperatures] for d in widths] for s in scales}
    weights = {
        s: np.array([[softmax(x).numpy() for x in row] for row in divided[s]]) for s in scales
    }

    def describe(scale, k):
        row, column = divmod(k, len(temperatures))
        w = weights[scale][row, column]
        return (
            f"Scores {scale}, d = {widths[row]}, temperature {temperatures[column]:g}: the largest "
            f"of {len(w)} weights is {w.max():.3f}, the entropy {entropy(w):.2f} of at most "
            f"{np.log(len(w)):.2f} nats."
        )

    def draw(scale):
        received = np.array([[x.numpy() for x in row] for row in divided[scale]])
        return softmax_figure(received, weights[scale], widths, temperatures)

    def grid(scale):
        return len(widths), len(temperatures)

    return Explorer(draw, describe, scales, "scores", grid, cell_name="width and temperature")


def explore_schedule(
    schedule: Callable, lengths: Sequence[int], peaks: Sequence[float], warmups: Sequence[int]
) -> Explorer:
    """Show the learning rate of every step, for the clicked peak and warm-up.

    Args:
        schedule: gives the rate for (step, total_steps, warmup_steps, peak_lr).
        lengths: numbers of steps to choose from.
        peaks: the largest rates to choose from.
        warmups: steps of warm-up to choose from, less than every length.
    """

    def rates_of(length):
        runs = [[(length, warmup, peak) for warmup in warmups] for peak in peaks]
        return np.array(
            [[[schedule(step, *run) for step in range(length)] for run in row] for row in runs]
        )

    rates = {length: rates_of(length) for length in lengths}  # (peaks, warmups, length)

    def describe(length, k):
        row, column = divmod(k, len(warmups))
        rate = rates[length][row, column]
        return (
            f"{length} steps, {warmups[column]} of them warm-up, peak {peaks[row]:g}: the first "
            f"step uses {rate[0]:.1e}, step {rate.argmax()} the most, the last {rate[-1]:.1e}; the "
            f"mean is {rate.mean():.1e}."
        )

    def draw(length):
        return schedule_figure(rates[length], peaks, warmups)

    def grid(length):
        return len(peaks), len(warmups)

    middle = lengths[len(lengths) // 2]
    return Explorer(draw, describe, lengths, "length (steps)", grid, middle, "peak and warm-up")


def explore_positions(image, tables: Mapping[str, Any], grid_size: tuple[int, int]) -> Explorer:
    """Show which positions are like that of the clicked patch, for one way of giving positions.

    Args:
        image: (C, H, W), uint8 or floats in [0, 1].
        tables: name of the way -> (N, N) cosines between the positions of all patches.
        grid_size: (gh, gw).
    """

    def describe(name, k):
        cosines = np.array(tables[name][k])
        cosines[k] = np.nan  # with itself
        said = [
            f"{which} alike is patch {i} ({position(i, grid_size[1])}), cosine {cosines[i]:.2f}"
            for which, i in (("most", np.nanargmax(cosines)), ("least", np.nanargmin(cosines)))
        ]
        return f"{name}, patch {k} ({position(k, grid_size[1])}): {'; '.join(said)}."

    def draw(name):
        return similarity_figure(image, {name: tables[name]}, grid_size)

    return Explorer(draw, describe, list(tables), "positions", lambda _: grid_size)
