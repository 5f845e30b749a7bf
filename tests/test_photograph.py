"""The photograph that ships with an installed library."""

import numpy as np
import pytest
import torch

from vitedu.data.photograph import load_photograph
from vitedu.patches import patchify, unpatchify


@pytest.mark.parametrize("size", [32, 224])
def test_load_photograph_has_the_size_asked_for(size):
    """Rows, columns and three colours, in bytes, and no flat surface."""
    photograph = load_photograph(size)
    assert photograph.shape == (size, size, 3)
    assert photograph.dtype == np.uint8
    assert photograph.std() > 30


def test_photograph_becomes_196_patches_and_comes_back():
    """At 224 px and 16 px a patch: (1, 196, 768), and back to the last bit."""
    photograph = load_photograph()
    image = torch.from_numpy(photograph).permute(2, 0, 1)[None]  # (1, 3, 224, 224)
    patches = patchify(image, 16)
    assert patches.shape == (1, 196, 768)
    back = unpatchify(patches, 16, (224, 224))[0].permute(1, 2, 0)
    assert np.array_equal(back.numpy(), photograph)
