"""The larger photographs that come with the package."""

import numpy as np
import pytest
import torch
from PIL import Image

from vitedu.data.photograph import FOLDER, PHOTOGRAPHS, load_photograph, square_photograph


@pytest.mark.parametrize("size", [32, 224])
@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_load_photograph_has_the_size_asked_for(name, size):
    """Rows, columns and three colours, in bytes, and no flat surface."""
    photograph = load_photograph(size, name)
    assert photograph.shape == (size, size, 3)
    assert photograph.dtype == np.uint8
    assert photograph.std() > 30


def test_load_photograph_names_the_choices():
    """A name that is none of them, and all that are."""
    with pytest.raises(ValueError, match="named 'cat'. Choices: grace_hopper, chelsea, coffee, ro"):
        load_photograph(name="cat")


def test_each_photograph_is_small_and_its_source_and_licence_are_said():
    """At most 100 kB each; a row of one file says who took it and what is allowed."""
    sources = (FOLDER / "SOURCES.md").read_text(encoding="utf-8")
    files = sorted(FOLDER.glob("*.jpg"))
    assert {file.stem for file in files} == set(PHOTOGRAPHS)
    for file in files:
        assert file.stat().st_size <= 100_000
        (row,) = [line for line in sources.splitlines() if f"| `{file.name}` |" in line]
        assert "| CC0 |" in row or "| public domain |" in row


RED = np.zeros((9, 5, 3), np.uint8)
RED[2:7, :, 0] = 200  # the middle of a portrait
SOURCES = {
    "array": RED,
    "tensor": torch.from_numpy(RED).permute(2, 0, 1),
    "floats": RED / 255,
    "integers": RED.astype(np.int64),
    "PIL image": Image.fromarray(RED),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_form_of_a_photograph_gives_the_square_in_its_middle(source):
    """A portrait loses its top and bottom; channels come first."""
    square = square_photograph(source, 5)
    assert square.dtype == np.uint8 and square.flags.writeable
    assert np.array_equal(square, RED[2:7].transpose(2, 0, 1))


def test_a_file_a_name_and_grey_pixels_are_photographs(tmp_path):
    """Grey ones get three equal channels."""
    Image.fromarray(RED).save(tmp_path / "red.png")
    assert np.array_equal(
        square_photograph(str(tmp_path / "red.png"), 5), square_photograph(RED, 5)
    )
    assert np.array_equal(
        square_photograph("coffee", 8), square_photograph(FOLDER / "coffee.jpg", 8)
    )
    for grey in (RED[..., 0], RED[None, ..., 0], RED[..., :1]):
        assert np.array_equal(square_photograph(grey, 5), np.stack([RED[2:7, :, 0]] * 3))


@pytest.mark.parametrize("shape", [(0, 4, 3), (4,), (2, 3, 4, 4), (4, 4, 2)], ids=str)
def test_pixels_of_another_shape_are_refused(shape):
    """One line that says the shapes there are and the one that came."""
    with pytest.raises(ValueError, match="pixels .* or \\(3, H, W\\) \\(got shape \\("):
        square_photograph(np.zeros(shape), 32)


def test_floats_beyond_one_are_refused():
    """They would all be white."""
    with pytest.raises(ValueError, match="got 200.; divide by 255"):
        square_photograph(RED.astype(np.float32), 5)
