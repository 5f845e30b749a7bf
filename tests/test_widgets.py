"""Explorers answer a click; without a kernel one picture says what to run."""

import base64
import html
import io
import re
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from vitedu.extras.fast import rotary_table, rotate
from vitedu.inside import position_similarity
from vitedu.patches import sincos_positions, sincos_positions_2d
from vitedu.plots import explorer as skeleton
from vitedu.plots.explorer import WIDGET
from vitedu.plots.style import DOTS, DPI, MARGIN
from vitedu.plots.widgets import explore_maps, explore_patches

pytestmark = pytest.mark.slow


@pytest.fixture
def explorer():
    """The patches of a small image in two sizes."""
    image = (torch.arange(3 * 32 * 32) % 256).reshape(3, 32, 32).to(torch.uint8)
    return explore_patches(image, patch_sizes=(16, 8))


def maps_of_codes(**options):
    """Explore how alike positions of three kinds are."""
    grid, D = (4, 4), 16
    turned = rotate(torch.ones(16, D), rotary_table(grid, D))
    codes = {"1-D": sincos_positions(16, D), "2-D": sincos_positions_2d(grid, D), "rotary": turned}
    maps = {k: position_similarity(code[None], grid).flatten(1) for k, code in codes.items()}
    return explore_maps(torch.rand(3, 16, 16), maps, grid, "positions", **options)


def looking(**options):
    """Explore sixteen patches that look at themselves, sharply or evenly."""
    maps = {t: torch.softmax(torch.eye(16) / t, dim=-1) for t in (0.1, 1.0)}
    return explore_maps(
        torch.rand(3, 32, 32), maps, (4, 4), "temperature", uniform=1 / 16, **options
    )


def part(widget, kind):
    """Give the widgets of one kind inside a live explorer."""
    inside = [found for child in getattr(widget, "children", ()) for found in part(child, kind)]
    return inside + [widget] * (type(widget).__name__ == kind)


def test_still_form_is_one_picture_with_words(explorer):
    """The picture is sharp and as wide as the live one; its words say what to run.

    Drawing it leaves the frames of the live form as they are.
    """
    before = explorer.frame(8, 10)
    data, known = explorer.still().forms()
    still = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    live, about = Image.open(io.BytesIO(before)), known["image/png"]
    assert still.width == DOTS * about["width"] and 0 < about["width"] - live.width < 20
    said = "Patch 10 of 16 (row 2, column 2) is row 10 of the sequence: 192 numbers."
    words = "A still picture: run this cell, in profile laptop or gpu, to click into it."
    assert about["alt"] == data["text/plain"] == f"{said} {words}"
    assert explorer.frame(8, 10) == before


def test_words_below_a_still_picture_are_drawn(explorer):
    """Every line has ink on the card, and none at its edges; the figure above stays."""
    explorer.describe = lambda setting, cell: "many words " * 30

    def drawn(figure):
        sharp = Image.open(io.BytesIO(figure.png(DOTS * DPI))).convert("L")
        return np.asarray(sharp.reduce(DOTS)).astype(int)

    still = explorer.still()
    with_words, alone = drawn(still), drawn(explorer.figure(explorer.start, 10))
    lines, height = still.below.count("\n"), len(alone) - round(MARGIN * DPI)
    assert lines == 4 and len(with_words) - len(alone) == pytest.approx(18 * lines, abs=1)
    for line in np.array_split(with_words[height : height + 18 * lines], lines):
        assert line.min() < 100 and line[:, :12].min() == line[:, -12:].min() == 255


def test_live_form_answers_a_click(explorer):
    """A button of the picture moves the slider, the picture and the sentence."""
    live = explorer.widget_view()
    (cell,), (picture,) = part(live, "IntSlider"), part(live, "Image")
    button = part(live, "Button")[3]
    button.click()
    assert cell.value == 3
    assert picture.value == explorer.frame(8, 3)
    assert "Patch 3 of 16" in part(live, "HTML")[-1].value


def test_live_form_has_a_button_for_each_cell_and_keeps_its_place(explorer):
    """A coarser grid has fewer buttons, and the patch that lies where the old one lay."""
    live = explorer.widget_view()
    (setting,), (cell,) = (part(live, k) for k in ("SelectionSlider", "IntSlider"))

    def seen():
        (grid,) = (box for box in part(live, "GridBox") if box.layout.visibility == "visible")
        return [button.tooltip for button in grid.children]

    assert seen() == [f"patch {k}" for k in range(16)]
    cell.value = 15
    setting.value = 16
    assert len(seen()) == 4
    assert (cell.value, cell.max) == (3, 3)
    setting.value = 8
    assert (cell.value, cell.max) == (15, 15)


def test_live_maps_follow_the_setting():
    """The sentence and the picture come from the map of the chosen setting."""
    explorer = looking()
    live = explorer.widget_view()
    (setting,), (picture,) = part(live, "SelectionSlider"), part(live, "Image")
    said = []
    for temperature in (0.1, 1.0):
        setting.value = temperature
        said.append(part(live, "HTML")[-1].value)
        assert picture.value == explorer.frame(temperature, 10)
    assert "most at patch 0 (row 0, column 0), 0.00." in said[0] and ", 0.90." in said[1]


def test_map_shows_the_weights_of_the_query():
    """The hottest cell of the map, relative to uniform attention, is the patch itself, framed."""
    explorer = looking(start=1.0)
    ax = explorer.figure(1.0, 6).axes[1]
    (shown,), (frame,) = ax.images, ax.patches
    values = shown.get_array()
    assert np.unravel_index(values.argmax(), (4, 4)) == (1, 2) and frame.get_xy() == (0.5, 0.5)
    assert values.max() == pytest.approx(16 * np.e / (np.e + 15)) and explorer.start == 1.0


def test_maps_of_another_shape_and_sentences_of_ones_own():
    """A row of maps for each block follows picture and patch; a picture stands for a setting."""
    pictures = {"a": torch.zeros(3, 8, 8), "b": torch.ones(3, 8, 8)}
    maps = {name: {"x": torch.rand(4, 6, 3), "y": torch.rand(4, 6, 3)} for name in pictures}
    explorer = explore_maps(pictures, maps, (2, 2), "picture", says=lambda name, k: f"{name}{k}")
    left, first, second, _ = explorer.figure("b", 3).axes
    assert left.images[0].get_array().min() == 1 and explorer.cell_at("b", 0.9, 0.1) == 2
    assert np.array_equal(second.images[0].get_array(), maps["b"]["y"][3]) and not first.patches
    assert explorer.describe("b", 3) == "b3"
    with pytest.raises(ValueError, match="must be square"):
        explore_maps(torch.zeros(3, 8, 4), maps, (2, 2), "picture")


@pytest.mark.parametrize("profile", ["quick", "laptop"])
def test_live_form_is_there_only_where_a_kernel_answers(profile, monkeypatch):
    """Without a kernel, and in the quick profile, the still picture stands alone."""
    monkeypatch.setenv("VITEDU_PROFILE", profile)
    assert not skeleton.kernel_answers()

    class Shell:
        kernel = object()

    monkeypatch.setattr("IPython.get_ipython", Shell)
    assert skeleton.kernel_answers() == (profile == "laptop")
    monkeypatch.setenv("VITEDU_STILL", "1")  # pages are being made
    assert not skeleton.kernel_answers()


def test_no_kernel_answers_without_ipywidgets(monkeypatch):
    """A missing library leaves the still form."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert not skeleton.kernel_answers()


def test_every_cell_and_setting_has_its_picture_and_words():
    """No two frames and no two sentences are the same, and a click answers in the live form too."""
    explorer = maps_of_codes()
    places = [(setting, cell) for setting in explorer.settings for cell in range(16)]
    assert len({explorer.describe(*place) for place in places}) == len(places)
    assert len({explorer.frame(*place) for place in places}) == len(places)
    live = explorer.widget_view()
    part(live, "Button")[1].click()
    assert explorer.describe(explorer.start, 1) in html.unescape(part(live, "HTML")[-1].value)


def test_sentence_names_the_most_alike_of_the_others():
    """The 1-D code takes a row's end for a neighbour of the next row; the others do not."""
    explorer = maps_of_codes()
    said = {name: explorer.describe(name, 4) for name in explorer.settings}
    assert said["2-D"].startswith("Patch 4 (row 1, column 0), positions 2-D: most at patch ")
    seam = {name: re.search(r"most at patch (\d+)", each)[1] for name, each in said.items()}
    assert seam["1-D"] in ("3", "5")
    assert {seam["2-D"], seam["rotary"]} <= {"0", "5", "8"}


@pytest.fixture
def shown(monkeypatch):
    """Give a list that every display adds its forms to."""
    outputs = []

    def display(data, **more):
        outputs.append(data) if more else data._ipython_display_()

    monkeypatch.setattr("IPython.display.display", display)
    return outputs


@pytest.mark.parametrize("answers", [True, False], ids=["kernel", "no kernel"])
def test_live_form_is_followed_by_its_labels(explorer, answers, shown, monkeypatch):
    """The script that names the sliders is an output of its own: inside a widget none runs.

    A still picture is followed by its words.
    """
    monkeypatch.setattr(skeleton, "kernel_answers", lambda: answers)
    explorer._ipython_display_()
    forms, below = shown
    assert set(forms) == {"text/plain", "image/png", *([WIDGET] if answers else [])}
    assert ("aria-label" in below["text/html"]) == answers
    assert ('alt="Patch 10 of 16' in below["text/html"]) != answers
