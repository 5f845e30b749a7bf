"""The model of drawn shapes that comes with the package."""

import pytest
import torch

from vitedu.data import load_data
from vitedu.pretrained.reading import read_course_model
from vitedu.vit import VisionTransformer

pytestmark = pytest.mark.slow


def test_model_that_notebook_05_looks_into_knows_shapes_it_has_not_seen():
    """An 8 x 8 grid, four blocks of four heads, and well above 90 % on another draw."""
    config, weights, known = read_course_model("shapes_patch4")
    assert (config.grid_size, config.depth, config.num_heads) == ((8, 8), 4, 4)
    model = VisionTransformer(config).eval()
    model.load_state_dict(weights)
    test = load_data("shapes", seed=1, limit=10, held_out=200).test
    mean, std = (torch.tensor(known[key]).view(-1, 1, 1) for key in ("mean", "std"))
    with torch.no_grad():
        answers = model((test.images[:200] / 255 - mean) / std).argmax(dim=1)
    assert (answers == test.labels[:200]).float().mean() > 0.93
