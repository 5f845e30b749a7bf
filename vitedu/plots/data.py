"""Figures of the data: sample images.

Role: look before you train. Not here: loading (``vitedu.data``), predictions (``plots.training``).
"""

from matplotlib.figure import Figure

from vitedu.plots.parts import draw_image
from vitedu.plots.style import DPI, WIDTH, figure, styled


@styled
def show_samples(data) -> Figure:
    """Draw the first images of a split, each under the name of its class.

    Args:
        data: what ``load_data`` returns; its first images show every class before any comes twice.
    """
    images, labels = data.train.images[:20], data.train.labels[:20]
    rows = -(-len(labels) // 10)
    fig, axes = figure(rows, 10, size=(WIDTH, rows * (WIDTH / 10 + 20 / DPI)), ticks=False)
    for ax, image, label in zip(axes.flat, images, labels, strict=False):
        draw_image(ax, image, data.class_names[label], size=8)
    return fig
