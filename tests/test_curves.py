"""vitedu.fitting.curves: one figure below the cell, new after each epoch."""

import base64
from types import SimpleNamespace

from vitedu.fitting import curves
from vitedu.fitting import loop as fitting
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.curves import draw_curves
from vitedu.fitting.history import EpochResult, History


def history_of(epochs):
    rows = [EpochResult(i + 1, 1 / (i + 1), 0.5, 0.8, 0.4, 1e-3, 2.0, 100.0) for i in range(epochs)]
    return History(TrainConfig(), "cpu", "float32", rows=rows)


def test_curves_have_a_point_an_epoch():
    """Loss left, accuracy in per cent right, and the line of guessing where classes are known."""
    figure = draw_curves(history_of(3), num_classes=4, data="shapes")
    left, right = figure.axes
    assert list(left.lines[0].get_ydata()) == [1.0, 0.5, 1 / 3]
    assert list(right.lines[1].get_ydata()) == [40.0] * 3
    # training, validation, its best epoch, and the line of guessing
    assert len(right.lines) == 4 and len(draw_curves(history_of(3)).axes[1].lines) == 3


def test_curves_of_photographs_have_horizons(monkeypatch):
    """Those of the images that ``fit`` learns from, by their name."""
    monkeypatch.setattr(curves, "horizons", {"cifar10": {"CNN": 0.575}, "": {}}.get)
    words = [text.get_text() for text in draw_curves(history_of(2), 10, "cifar10").axes[1].texts]
    assert words == ["guessing 10%", "CNN 57%"]
    assert not draw_curves(history_of(2)).axes[1].texts


def test_fit_shows_curves_below_the_bar_in_a_notebook(monkeypatch):
    """One figure an epoch, none where progress is not wanted."""
    import torch
    from torch import nn

    shown = []
    monkeypatch.setattr(fitting, "notebook_display", lambda: lambda *both: shown.append(both))
    images = torch.arange(4 * 3 * 4 * 4, dtype=torch.uint8).view(4, 3, 4, 4)
    part = SimpleNamespace(images=images, labels=torch.tensor([0, 1, 0, 1]))
    data = SimpleNamespace(train=part, validation=part, mean=[0.5] * 3, std=[0.2] * 3)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    config = TrainConfig(epochs=2, device="cpu", crop_padding=None)
    fitting.fit(model, data, config)
    (first, _), (second, words) = shown
    assert base64.b64decode(second["image/png"]).startswith(b"\x89PNG")
    assert first["image/png"] != second["image/png"] and 'alt="Figure: ' in words["text/html"]
    fitting.fit(model, data, config, show_progress=False)
    assert len(shown) == 2
