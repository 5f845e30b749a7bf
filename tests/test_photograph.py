"""The larger photographs that come with the package."""

import numpy as np
import pytest
import torch

from vitedu.data.photograph import FOLDER, PHOTOGRAPHS, load_photograph
from vitedu.patches import patchify, unpatchify


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


def test_photograph_becomes_196_patches_and_comes_back():
    """At 224 px and 16 px a patch: (1, 196, 768), and back to the last bit."""
    photograph = load_photograph()
    image = torch.from_numpy(photograph).permute(2, 0, 1)[None]  # (1, 3, 224, 224)
    patches = patchify(image, 16)
    assert patches.shape == (1, 196, 768)
    back = unpatchify(patches, 16, (224, 224))[0].permute(1, 2, 0)
    assert np.array_equal(back.numpy(), photograph)
