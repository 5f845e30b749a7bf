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

from vitedu.fast import rotary_table, rotate
from vitedu.inside import position_similarity
from vitedu.patches import sincos_positions, sincos_positions_2d
from vitedu.plots import explorer as skeleton
from vitedu.plots import widgets
from vitedu.plots.explorer import WIDGET
from vitedu.plots.style import DOTS, DPI, MARGIN
from vitedu.plots.widgets import explore_attention, explore_patches
from vitedu.training import warmup_cosine

pytestmark = pytest.mark.slow


@pytest.fixture
def explorer():
    """The patches of a small image in two sizes."""
    image = (torch.arange(3 * 32 * 32) % 256).reshape(3, 32, 32).to(torch.uint8)
    return explore_patches(image, patch_sizes=(16, 8))


@pytest.fixture
def looking():
    """Sixteen patches that look at themselves, sharply or evenly."""

    def weights_at(temperature):
        return torch.softmax(torch.eye(16) / temperature, dim=-1)

    return explore_attention(torch.rand(3, 32, 32), weights_at, (0.1, 1.0), (4, 4))


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


def test_live_attention_follows_the_temperature(looking):
    """The sentence and the picture come from the table of the chosen temperature."""
    live = looking.widget_view()
    (setting,), (picture,) = part(live, "SelectionSlider"), part(live, "Image")
    said = []
    for temperature in (0.1, 1.0):
        setting.value = temperature
        said.append(part(live, "HTML")[-1].value)
        assert picture.value == looking.frame(temperature, 10)
    assert "0.999 to itself" in said[0] and "0.153 to itself" in said[1]


def test_map_shows_the_weights_of_the_query(looking):
    """The hottest cell of the map is the patch with the largest weight."""
    shown, *_ = looking.figure(0.1, 6).axes[1].images
    assert np.unravel_index(shown.get_array().argmax(), (4, 4)) == (1, 2)


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


def one_of_each():
    """Give an explorer of each kind that is clicked into a table or compares positions."""
    scores = {d: torch.arange(4.0) * d**0.5 for d in (4, 64)}
    scaled = {d: row / d**0.5 for d, row in scores.items()}
    softmax = widgets.explore_softmax(
        {"q·k": scores, "q·k / √d": scaled}, lambda s: s.softmax(-1), (0.5, 2)
    )
    schedule = widgets.explore_schedule(
        warmup_cosine, (20, 50), peaks=(2e-3, 1e-3), warmups=(0, 5, 10)
    )
    grid, D = (4, 4), 16
    turned = rotate(torch.ones(16, D), rotary_table(grid, D))
    codes = {"1-D": sincos_positions(16, D), "2-D": sincos_positions_2d(grid, D), "rotary": turned}
    cosines = {k: position_similarity(code[None], grid).flatten(1) for k, code in codes.items()}
    positions = widgets.explore_positions(torch.rand(3, 16, 16), cosines, grid)
    near = (torch.arange(16)[:, None] - torch.arange(16)).abs()
    blocks = widgets.explore_blocks(
        {f"{w} a block": near <= w * torch.ones(3, 1, 1).cumsum(0) for w in (1, 2)}, grid
    )
    return {"softmax": softmax, "schedule": schedule, "positions": positions, "blocks": blocks}


@pytest.mark.parametrize("kind", ["softmax", "schedule", "positions", "blocks"])
def test_every_cell_and_setting_has_its_picture_and_words(kind, explorers):
    """No two frames and no two sentences are the same, and a click answers in the live form too."""
    explorer = explorers[kind]
    cells = {setting: range(int(np.prod(explorer.grid(setting)))) for setting in explorer.settings}
    places = [(setting, cell) for setting in cells for cell in cells[setting]]
    assert len({explorer.describe(*place) for place in places}) == len(places)
    assert len({explorer.frame(*place) for place in places}) == len(places)
    live = explorer.widget_view()
    part(live, "Button")[1].click()
    assert explorer.describe(explorer.start, 1) in html.unescape(part(live, "HTML")[-1].value)


@pytest.fixture(scope="module")
def explorers():
    """Give an explorer of each kind."""
    return one_of_each()


def test_softmax_explorer_says_the_entropy(explorers):
    """The scale takes the width out of the weights; the temperature stays."""
    explorer = explorers["softmax"]
    said = [explorer.describe("q·k / √d", cell).split(": ")[1] for cell in range(4)]
    assert said[0] == said[2] != said[1] == said[3]
    weights = (torch.arange(4.0) / 2).softmax(-1)
    entropy = torch.distributions.Categorical(weights).entropy()
    assert f"{weights.max():.3f}, the entropy {entropy:.2f} of at most 1.39 nats" in said[1]


def test_schedule_explorer_says_first_highest_and_last(explorers):
    """The sentence has the rates of the schedule that was given."""
    said = explorers["schedule"].describe(50, 4)
    assert "50 steps, 5 of them warm-up, peak 0.001: the first step uses 2.0e-04, step 4 " in said


def test_positions_explorer_finds_the_neighbours(explorers):
    """The 1-D code takes a row's end for a neighbour of the next row; the others do not."""
    explorer = explorers["positions"]
    said = {name: explorer.describe(name, 4) for name in explorer.settings}
    seam = {name: re.search(r"most alike is patch (\d+)", each)[1] for name, each in said.items()}
    assert seam["1-D"] in ("3", "5")
    assert {seam["2-D"], seam["rotary"]} <= {"0", "5", "8"}


def test_blocks_explorer_counts_and_colours_what_each_block_adds(explorers):
    """A token that sees its neighbours sees one more on each side after every block."""
    explorer = explorers["blocks"]
    said, words = (
        explorer.describe("1 a block", 5),
        "after one block, 5 after two and 7 after three.",
    )
    assert said.endswith(f"row 1, column 1 sees 3 of 16 tokens {words}")
    shown, *_ = explorer.figure("1 a block", 5).picture.collections
    assert shown.get_array().flatten().tolist()[:10] == [3, 3, 2, 1, 0, 0, 0, 1, 2, 3]


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


def test_inside_explorer_follows_picture_and_patch():
    """The setting is the picture; the sentence says what is answered at the clicked patch."""
    weights = torch.rand(2, 3, 2, 5, 5).softmax(dim=-1).numpy()  # (n, L, nh, T, T)
    said = [[[f"p{i}b{b}k{k}" for k in range(4)] for b in range(3)] for i in range(2)]
    models = {"trained": weights, "untrained": weights[:, ::-1]}
    explorer = widgets.explore_inside(
        torch.rand(2, 3, 8, 8), models, {"trained": said, "untrained": said}, (2, 2)
    )
    assert explorer.cell_at(1, 0.9, 0.1) == 2
    assert "answers p1b2k2 after its last block" in explorer.describe(1, 2)
    assert len({explorer.frame(0, 0), explorer.frame(0, 3), explorer.frame(1, 0)}) == 3
    assert "Picture 0, patch 3" in explorer.still().words()
