"""Figures of the data: sample images, object masks, the balance of the classes.

Role: look before you train. Not here: loading (``vitedu.data``), predictions (``plots.training``).
"""

import numpy as np

from vitedu.plots.style import CYCLE, DPI, WIDTH, figure, hide_ticks, styled, to_picture

SPLITS = ("train", "validation", "test")


@styled
def show_samples(data, *, split: str = "train", count: int = 20, columns: int = 10):
    """Draw the first images of a split, each under the name of its class.

    Args:
        data: what ``load_data`` returns; its first images show every class before any comes twice.
        split: ``"train"``, ``"validation"`` or ``"test"``.
        count: images at most.
        columns: images in a row.

    Returns:
        A matplotlib Figure.
    """
    chosen = _split(data, split)
    count = min(count, len(chosen.labels))
    fig, axes = _grid(-(-count // columns), columns)
    for ax, image, label in zip(axes.flat, chosen.images[:count], chosen.labels, strict=False):
        ax.imshow(to_picture(image))
        ax.set_title(data.class_names[label], fontsize=8)
    return fig


@styled
def show_masks(data, *, split: str = "train", count: int = 10):
    """Draw images above their object masks, and below what the mask keeps of them.

    Args:
        data: what ``load_data("shapes")`` returns.
        split: ``"train"``, ``"validation"`` or ``"test"``.
        count: images at most.

    Returns:
        A matplotlib Figure.

    Raises:
        ValueError: the data has no masks.
    """
    chosen = _split(data, split)
    if chosen.masks is None:
        raise ValueError(f"the data {data.name!r} has no masks; load_data('shapes') has.")
    count = min(count, len(chosen.labels))
    fig, axes = _grid(3, count)
    for column in range(count):
        picture, mask = to_picture(chosen.images[column]), np.asarray(chosen.masks[column])
        axes[0, column].set_title(data.class_names[chosen.labels[column]], fontsize=8)
        axes[0, column].imshow(picture)
        axes[1, column].imshow(mask, cmap="gray", vmin=0, vmax=1)
        axes[2, column].imshow(np.where(mask[:, :, None], picture, 1.0))
    for ax, name in zip(axes[:, 0], ("image", "mask", "object"), strict=True):
        ax.set_ylabel(name)
    return fig


@styled
def show_class_balance(data):
    """Draw how many images of each class every split has.

    Args:
        data: what ``load_data`` returns.

    Returns:
        A matplotlib Figure.
    """
    K = len(data.class_names)
    fig, axes = figure(1, 3, size=(WIDTH, 1.0 + 0.22 * K), sharey=True)
    for ax, split, colour in zip(axes[0], SPLITS, CYCLE, strict=False):
        labels = np.asarray(_split(data, split).labels)
        bars = ax.barh(range(K), np.bincount(labels, minlength=K), color=colour)
        ax.bar_label(bars, padding=2, fontsize=8)
        ax.set(title=f"{split}: {len(labels):,} images", xlabel="images")
        ax.margins(x=0.2)
    axes[0, 0].set_yticks(range(K), data.class_names)
    axes[0, 0].invert_yaxis()
    return fig


def _split(data, name: str):
    if name not in SPLITS:
        raise ValueError(f"no split named {name!r}. Choices: {', '.join(SPLITS)}.")
    return getattr(data, name)


def _grid(rows: int, columns: int):
    side = WIDTH / columns
    fig, axes = figure(rows, columns, size=(WIDTH, rows * (side + 20 / DPI)))
    for ax in axes.flat:
        hide_ticks(ax)
    return fig, axes
