"""Sizes and the look of all figures, and how a figure opens and shows itself.

Role: one look for the whole course. Not here: its colours (``vitedu.plots.ink``), any figure, and
what figures draw alike (``vitedu.plots.parts``).
"""

import base64
import contextlib
import functools
import html
import io
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from PIL import Image

from vitedu.plots import ink
from vitedu.plots.png import small_png

WIDTH = 8.0  # inches: the width of a notebook column
DPI = 100  # dots an inch of the page
DOTS = 2  # of a picture for one of the page: sharp on screens of any kind
LINE = 0.18  # inches: of words below a figure
MARGIN = 0.08  # inches of paper around a figure that a cell shows: a dark page begins beyond it

# Every figure is a white card with dark ink, in light and dark themes alike: the ink is set here
# too, so that a dark style of the reader's own cannot turn it white.
INK = "text.color axes.labelcolor axes.edgecolor xtick.color ytick.color patch.edgecolor".split()
PAPER = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
RC: dict[Any, Any] = {  # matplotlib's types list every key
    **dict.fromkeys(INK, ink.BLACK),
    **dict.fromkeys(PAPER, "white"),
    "lines.color": ink.BLUE,
    "savefig.transparent": False,
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
    "figure.dpi": DPI,
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(color=ink.CYCLE),
    "image.interpolation": "nearest",
    "legend.frameon": False,
}

Drawing = TypeVar("Drawing", bound=Callable[..., Any])


def styled(draw: Drawing) -> Drawing:
    """Draw in the course's style: ``@styled`` stands above every function that draws a figure.

    The summary of its docstring, without its verb, says to screen readers what the figure is.
    """

    @functools.wraps(draw)
    def draw_in_style(*args, **kwargs):
        is_set = all(plt.rcParams[name] == value for name, value in RC.items())
        with contextlib.nullcontext() if is_set else plt.rc_context(RC):
            drawn = draw(*args, **kwargs)
        if isinstance(drawn, CourseFigure) and draw.__doc__:
            summary = draw.__doc__.partition("\n\n")[0].split()
            drawn.about = " ".join(summary[1:])
        return drawn

    return cast(Drawing, draw_in_style)


class CourseAxes(Axes):
    """Axes that give the course's style to what a cell adds when the helper is done, too."""


class CourseFigure(Figure):
    """A figure that shows itself as the value of a cell, whatever the backend."""

    about = ""  # what it is, in a sentence
    below = ""  # what stands below it and says all that it shows

    @property
    def card(self) -> Bbox:
        """Give the figure's white card, in inches."""
        card = self.bbox_inches.padded(MARGIN)
        card.y0 -= LINE * self.below.count("\n")
        return card

    def png(self, dpi: float = DPI) -> bytes:
        """Give the figure on its white card as a PNG file."""
        buffer, quick = io.BytesIO(), {"compress_level": 1}
        with plt.rc_context(RC):
            self.savefig(buffer, format="png", dpi=dpi, bbox_inches=self.card, pil_kwargs=quick)
        return small_png(Image.open(buffer))

    def write_below(self, words: str, why: str) -> None:
        """Write words below the figure, and why to run its cell; screen readers hear these."""
        words = f"{words} A still picture: run this cell, in profile laptop or gpu, {why}."
        self.below = "".join(f"{line}\n" for line in textwrap.wrap(words, 108))
        self.text(0.01, 0, self.below, va="top", fontsize=9)

    def words(self) -> str:
        """Say in words what the figure is, and each panel's title, axes and curves."""
        parts = (self.get_suptitle(), *map(_words_of_panel, self.axes))
        read_off = " ".join(f"{part}." for part in parts if part)
        return " ".join((self.below or f"Figure: {self.about} {read_off}").split())

    def forms(self, dots: int = DOTS) -> tuple[dict[str, Any], dict[str, dict]]:
        """Give the figure as a cell shows it, ``dots`` for one of the page; its width and words."""
        words, width = self.words(), round(self.card.width * DPI)
        picture = base64.b64encode(self.png(dots * DPI)).decode()
        known = {"width": width, "alt": words}
        return {"image/png": picture, "text/plain": words}, {"image/png": known}

    def outputs(self, dots: int = DOTS) -> list[dict[str, str]]:
        """Give the figure as outputs that a cell replaces: the picture, and its words."""
        data, _ = self.forms(dots)
        return [data, read_aloud(data["text/plain"])]

    def _ipython_display_(self) -> None:
        from IPython.display import display

        data, known = self.forms()
        display(data, metadata=known, raw=True)
        display(read_aloud(data["text/plain"]), raw=True)


for _kind, _methods in (
    (CourseAxes, "text annotate axhline axvline legend set_xticks set_yticks"),
    (CourseFigure, "text legend colorbar"),
):
    for _method in _methods.split():
        setattr(_kind, _method, styled(getattr(_kind, _method)))


def read_aloud(words: str) -> dict[str, str]:
    """Give an output that shows nothing and is read: JupyterLab gives a picture no words."""
    page = Path(__file__).with_name("words.html").read_text(encoding="utf-8")
    return {"text/html": page.replace("WORDS", html.escape(words)), "text/plain": ""}


def _words_of_panel(axes) -> str:
    """Say what the words around one panel say, without mathematical notation's dollars."""
    title = " ".join(axes.get_title(loc).strip() for loc in ("left", "center", "right")).strip()
    x, y = axes.get_xlabel(), axes.get_ylabel()
    named = f"{y} against {x}" if x and y and axes.axison else (x or y) if axes.axison else ""
    legend = axes.get_legend_handles_labels()[1]
    if title.isdigit() and not named:
        return ""
    inside = dict.fromkeys(text.get_text() for text in axes.texts)  # each once
    written = "; ".join(text for text in inside if any(map(str.isalpha, text)))
    parts = (title, named, f"curves: {'; '.join(legend)}" if legend else "", written)
    return ": ".join(" ".join(part.split()) for part in parts if part).replace("$", "")


def figure(
    rows: int = 1,
    columns: int = 1,
    *,
    size: tuple[float, float] | None = None,
    ticks: bool = True,
    **kwargs: Any,
) -> tuple[CourseFigure, np.ndarray]:
    """Open a figure in the course's style, detached from pyplot's list of open figures.

    A detached figure is shown once, as the value of its cell, and needs no ``plt.close``.

    Args:
        rows: rows of axes.
        columns: columns of axes.
        size: width and height in inches; by default the column width and three inches a row.
        ticks: whether the axes have ticks and frames; pictures need none.
        **kwargs: passed to ``Figure.subplots`` (``sharex``, ``width_ratios``, ...).

    Returns:
        The figure and its axes, always a (rows, columns) array.

    Example:
        >>> fig, axes = figure(1, 2)
        >>> axes.shape
        (1, 2)
    """
    with plt.rc_context(RC):
        fig = CourseFigure(figsize=size or (WIDTH, 3.0 * rows), layout="constrained")
        look = {"axes_class": CourseAxes}
        axes = fig.subplots(rows, columns, squeeze=False, subplot_kw=look, **kwargs)
    for ax in () if ticks else axes.flat:
        hide_ticks(ax)
    return fig, axes


def panel(width: float = WIDTH, height: float = 3.0) -> tuple[CourseFigure, Any]:
    """Open a figure of one panel, its sides in inches; give the figure and its axes."""
    fig, axes = figure(size=(width, height))
    return fig, axes[0, 0]


def to_picture(image: Any) -> np.ndarray:
    """Turn an image tensor (C, H, W) into what ``imshow`` takes: (H, W, 3) or (H, W), in [0, 1].

    Args:
        image: (C, H, W) with C = 1 or 3, a tensor or an array; uint8, or floats that are
            clipped to [0, 1].

    Example:
        >>> to_picture(np.zeros((3, 4, 6), dtype=np.uint8)).shape
        (4, 6, 3)
    """
    if hasattr(image, "detach"):
        image = image.detach().cpu().numpy()
    image = np.asarray(image)
    picture = image / 255.0 if image.dtype == np.uint8 else image.clip(0, 1)
    return picture[0] if picture.shape[0] == 1 else picture.transpose(1, 2, 0)


def hide_ticks(ax: Axes) -> None:
    """Take ticks and frame off an axes that shows a picture, and leave its labels."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
