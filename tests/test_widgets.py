"""Pictures with a slider."""

import re

import pytest
import torch

from vitedu.plots.style import figure
from vitedu.plots.widgets import FrameSlider, explore_patch_size


def frames(count):
    """Some figures that differ."""
    figures = []
    for k in range(count):
        fig, axes = figure(size=(1, 1))
        axes[0, 0].set_title(str(k))
        figures.append(fig)
    return figures


def test_slider_carries_every_frame_and_needs_no_network():
    """The page holds all frames and labels itself and loads nothing."""
    page = FrameSlider(frames(3), ["one", "two", "three"], "number")._repr_html_()
    assert len(set(re.findall(r"data:image/png;base64,[\w+/=]+", page))) == 3
    assert all(label in page for label in ("one", "two", "three"))
    assert "http" not in page


def test_slider_falls_back_to_its_first_frame():
    """Without scripts the start frame stands as a still picture, in HTML and as a PNG."""
    slider = FrameSlider(frames(3), ["a", "b", "c"], "letter", start=1)
    still = re.sub(r"<script>.*?</script>", "", slider._repr_html_(), flags=re.DOTALL)
    assert still.count("<img ") == 1
    assert slider._repr_png_() == slider.frames[1]
    assert repr(slider) == "FrameSlider(letter: a, b, c)"


def test_slider_label_can_not_end_its_script():
    """A label is text, whatever it says."""
    page = FrameSlider(frames(1), ["</script><b>"], "label")._repr_html_()
    assert page.count("</script>") == 1
    assert "<b>" not in re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("labels", "start", "complaint"),
    [(["a"], 0, "2 figures and 1 labels"), (["a", "b"], 2, r"0 \.\. 1 \(got 2\)")],
    ids=["labels", "start"],
)
def test_slider_rejects_what_does_not_fit(labels, start, complaint):
    """Too few labels and an impossible start are named with their numbers."""
    with pytest.raises(ValueError, match=complaint):
        FrameSlider(frames(2), labels, "name", start=start)


def test_explore_patch_size_offers_every_size():
    """One frame for each patch size, the middle one first."""
    slider = explore_patch_size(torch.zeros(3, 32, 32, dtype=torch.uint8), patch_sizes=(16, 8))
    assert slider.labels == ["16 px", "8 px"]
    assert slider.start == 1
