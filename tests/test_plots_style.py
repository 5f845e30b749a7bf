"""The shared look of all figures."""

import base64
import html
import io
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from vitedu.plots import ink, style


def test_figure_leaves_no_trace_in_pyplot():
    """A figure is shown once, as the value of its cell, and the style lives in the figure alone."""
    before, settings = plt.get_fignums(), dict(plt.rcParams)
    fig, axes = style.figure(2, 3)
    assert axes.shape == (2, 3) and len(fig.axes) == 6
    assert (plt.get_fignums(), dict(plt.rcParams)) == (before, settings)
    assert len(set(ink.CYCLE)) == 8  # eight curves get eight colours


def test_to_picture_takes_tensors_and_bytes():
    """A (3, H, W) tensor becomes (H, W, 3) in [0, 1], a (1, H, W) one becomes (H, W)."""
    image = torch.full((3, 4, 6), 255, dtype=torch.uint8)
    assert style.to_picture(image).shape == (4, 6, 3)
    assert style.to_picture(image).max() == 1.0
    assert style.to_picture(torch.full((1, 4, 6), 7.0)).shape == (4, 6)
    assert style.to_picture(np.full((1, 4, 6), -3.0)).min() == 0.0


def test_styled_function_draws_in_style_and_leaves_settings_alone():
    """``@styled`` holds while a function draws, every time it is called, and no longer."""

    @style.styled
    def title_size():
        return plt.rcParams["axes.titlesize"]

    before = dict(plt.rcParams)
    assert title_size() == title_size() == style.RC["axes.titlesize"]
    assert dict(plt.rcParams) == before


def test_figure_draws_itself_for_a_notebook():
    """A notebook gets two dots for one of the page, the size, and words for who cannot see it."""
    fig, axes = style.figure(1, 2, size=(4, 3))
    axes[0, 0].plot([1, 2], label="train")
    axes[0, 0].set(title="loss", xlabel="epoch", ylabel="nats")
    axes[0, 1].set(title="the $T$\nimage", ylabel="hidden")
    axes[0, 1].axis("off")
    forms, metadata = fig.forms()
    picture, about = base64.b64decode(forms["image/png"]), metadata["image/png"]
    assert picture.startswith(b"\x89PNG")
    height, width, _ = plt.imread(io.BytesIO(picture)).shape
    assert (width, height) == (2 * about["width"], round(2 * style.DPI * (3 + 2 * style.MARGIN)))
    assert about["width"] == pytest.approx(style.DPI * (4 + 2 * style.MARGIN), abs=1)
    assert about["alt"] == "Figure: loss: nats against epoch: curves: train. the T image."
    assert set(forms) == {"image/png", "text/plain"}  # the picture once


def test_shown_figure_is_followed_by_its_words(monkeypatch):
    """JupyterLab reads words from HTML alone; nothing of that output is seen."""
    outputs = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, **known: outputs.append((data, known))
    )
    fig, axes = style.figure(size=(2, 2))
    axes[0, 0].set(title='a "b" < c')
    fig._ipython_display_()
    (picture, known), (below, _) = outputs
    assert known["metadata"]["image/png"]["alt"] == 'Figure: a "b" < c.'
    (words,) = re.findall(
        r'^<img class="vitedu-words" alt="([^"]+)" width="1" height="1"\s', below["text/html"]
    )
    assert html.unescape(words) == 'Figure: a "b" < c.'
    assert fig.outputs() == [picture, below]


def test_figure_says_what_the_first_line_about_it_says():
    """A drawing without titles has words too; panels that are only numbered add none."""

    @style.styled
    def draw():
        """Draw a box that is empty."""
        fig, axes = style.figure(1, 2)
        axes[0, 0].set(title="0")
        axes[0, 1].set(title="1", ylabel="words")
        for word in ("box", "0.5", "box"):
            axes[0, 1].text(0, 0, word)
        return fig

    assert draw().words() == "Figure: a box that is empty. 1: words: box."


def test_figure_is_dark_on_white_in_every_theme():
    """A reader's dark style changes neither paper nor ink, also of what a cell adds."""

    def draw():
        fig, ax = style.panel(2, 2)
        ax.set(title="title", xlabel="label", xticks=[0, 0.4])
        ax.text(0, 0, "words")
        ax.annotate("there", (0.5, 0.5))
        ax.axhline(0.3, label="level")
        ax.legend()
        ax.set_yticks([0, 1], ["none", "all"])
        fig.suptitle("above")
        fig.colorbar(ax.imshow(np.eye(2)), label="share")
        return fig

    with plt.style.context("dark_background"), plt.rc_context({"savefig.transparent": True}):
        dark = plt.imread(io.BytesIO(draw().png()))
    light = plt.imread(io.BytesIO(draw().png()))
    assert np.array_equal(dark, light)
    assert (light[0, 0] == 1).all() and light[:, :, :3].min() == 0


def test_shown_figure_keeps_a_margin():
    """Ink that reaches the edge of a figure does not reach the edge of its white card."""
    fig = style.CourseFigure(figsize=(1, 1))
    ax = fig.add_axes((0, 0, 1, 1))
    ax.imshow(np.zeros((2, 2)), cmap="gray")
    ax.axis("off")
    shown = plt.imread(io.BytesIO(fig.png()))[..., :3].mean(axis=-1)
    margin = round(style.MARGIN * style.DPI)
    inner = shown[margin:-margin, margin:-margin]
    assert inner.mean() < 0.1
    assert shown.sum() - inner.sum() == pytest.approx(shown.size - inner.size, rel=1e-3)
