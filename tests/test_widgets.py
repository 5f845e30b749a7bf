"""Explorers answer a click, and say the same without a kernel."""

import base64
import re
import sys

import numpy as np
import pytest
import torch

from vitedu.plots import widgets
from vitedu.plots.widgets import SPOTS, WIDGET, explore_attention, explore_inside, explore_patches


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


def test_frames_follow_cell_and_setting_and_nothing_else(explorer):
    """The order in which frames are asked for changes no pixel."""
    first = explorer.frame(8, 5)
    others = {first, explorer.frame(8, 6), explorer.frame(16, 1)}
    assert len(others) == 3
    assert explorer.frame(8, 5) == first


def test_still_form_carries_every_frame_and_needs_no_network(explorer):
    """The page holds all frames and sentences itself and loads nothing."""
    page = explorer.still()
    frames = {explorer.frame(P, explorer.cell_at(P, *spot)) for P in (16, 8) for spot in SPOTS}
    found = set(re.findall(r"data:image/jpeg;base64,([\w+/=]+)", page))
    assert {base64.b64decode(text) for text in found} == frames
    assert "http" not in page


def test_still_form_stands_without_scripts_and_has_words(explorer):
    """One picture with a description, and a label for each control."""
    still = re.sub(r"<script>.*?</script>", "", explorer.still(), flags=re.DOTALL)
    (said,) = re.findall(r'<img [^>]*alt="([^"]+)"', still)
    assert said == "Patch 10 of 16 (row 2, column 2) is row 10 of the sequence: 192 numbers."
    assert f">{said}</p>" in still
    assert still.count("<label>") == still.count("<input ") == 2


def test_still_form_cannot_end_its_script(explorer):
    """A sentence is text, whatever it says."""
    explorer.describe = lambda setting, cell: "</script><b>"
    page = explorer.still()
    assert page.count("</script>") == 1
    assert "<b>" not in re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL)


def test_live_form_answers_a_click(explorer):
    """A button of the picture moves the slider, the picture and the sentence."""
    live = explorer.live()
    (cell,), (picture,) = part(live, "IntSlider"), part(live, "Image")
    button = part(live, "Button")[3]
    button.click()
    assert cell.value == 3
    assert picture.value == explorer.frame(8, 3)
    assert "Patch 3 of 16" in part(live, "HTML")[-1].value


def test_live_form_has_a_button_for_each_cell_and_keeps_its_place(explorer):
    """A coarser grid has fewer buttons, and the patch that lies where the old one lay."""
    live = explorer.live()
    (setting,), (cell,), (grid,) = (
        part(live, k) for k in ("SelectionSlider", "IntSlider", "GridBox")
    )
    assert [button.tooltip for button in grid.children] == [f"patch {k}" for k in range(16)]
    cell.value = 15
    setting.value = 16
    assert len(grid.children) == 4
    assert (cell.value, cell.max) == (3, 3)
    setting.value = 8
    assert (cell.value, cell.max) == (15, 15)


def test_live_attention_follows_the_temperature(looking):
    """The sentence and the picture come from the table of the chosen temperature."""
    live = looking.live()
    (setting,), (picture,) = part(live, "SelectionSlider"), part(live, "Image")
    said = []
    for temperature in (0.1, 1.0):
        setting.value = temperature
        said.append(part(live, "HTML")[-1].value)
        assert picture.value == looking.frame(temperature, 10)
    assert "0.999 to itself" in said[0] and "0.153 to itself" in said[1]


def test_map_shows_the_weights_of_the_query(looking):
    """The hottest cell of the map is the patch with the largest weight."""
    figure, move = looking.draw(0.1)
    shown, *_ = move(6)
    assert np.unravel_index(shown.get_array().argmax(), (4, 4)) == (1, 2)


@pytest.mark.parametrize("profile", ["quick", "laptop"])
def test_bundle_has_the_live_form_only_where_a_kernel_answers(explorer, profile, monkeypatch):
    """Without a kernel, and in the quick profile, the still form stands alone."""
    monkeypatch.setenv("VITEDU_PROFILE", profile)
    assert set(explorer._repr_mimebundle_()) == {"text/plain", "text/html"}

    class Shell:
        kernel = object()

    monkeypatch.setattr("IPython.get_ipython", Shell)
    assert (WIDGET in explorer._repr_mimebundle_()) == (profile == "laptop")


def test_no_kernel_answers_without_ipywidgets(monkeypatch):
    """A missing library leaves the still form."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert not widgets.kernel_answers()


def test_explorer_rejects_a_start_that_is_no_setting(looking):
    """The message lists the settings."""
    with pytest.raises(ValueError, match=r"one of \[1, 2\] \(got 3\)"):
        widgets.Explorer(looking.draw, looking.describe, [1, 2], "n", looking.grid, start=3)


def test_inside_explorer_follows_picture_and_patch():
    """The setting is the picture; the sentence says what is answered at the clicked patch."""
    weights = torch.rand(2, 3, 2, 5, 5).softmax(dim=-1).numpy()  # (n, L, nh, T, T)
    said = [[[f"p{i}b{b}k{k}" for k in range(4)] for b in range(3)] for i in range(2)]
    models = {"trained": weights, "untrained": weights[:, ::-1]}
    explorer = explore_inside(
        torch.rand(2, 3, 8, 8), models, {"trained": said, "untrained": said}, (2, 2)
    )
    assert explorer.cell_at(1, 0.9, 0.1) == 2
    assert "answers p1b2k2 after its last block" in explorer.describe(1, 2)
    assert len({explorer.frame(0, 0), explorer.frame(0, 3), explorer.frame(1, 0)}) == 3
    assert explorer.still().count("<img") == 1
