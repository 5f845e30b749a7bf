"""The first screen of notebook 01: what stands below each photograph is what the model says."""

import numpy as np
import pytest
import torch

from vitedu.data import load_data
from vitedu.fitting.evaluating import predict
from vitedu.fitting.naming import show_names
from vitedu.vit import VisionTransformer, ViTConfig


def test_names_are_the_models_and_so_are_the_shares():
    """Sixteen photographs and one of the reader's own, each with what it is called."""
    torch.manual_seed(0)
    data = load_data(limit=10, held_out=20)
    model = VisionTransformer(ViTConfig(patch_size=8, embed_dim=16, depth=1, num_heads=2))
    own = np.full((40, 60, 3), 255, np.uint8)
    left, wall = show_names(model, data, own).axes
    white = torch.full((1, 3, 32, 32), 255, dtype=torch.uint8)
    shares = predict(model, torch.cat([data.test.images[:16], white]), data)
    share, k = shares[-1].max(dim=0)
    assert f"\n{data.class_names[k]} {share:.0%}, " in left.get_xlabel()
    words = [text.get_text() for text in wall.texts]
    called = [word.lstrip("✓✗ ") for word in words[::2]]
    assert called == [data.class_names[k] for k in shares[:16].argmax(dim=1)]
    right = sum(shares[:16].argmax(dim=1) == data.test.labels[:16])
    assert sum(word.startswith("✓") for word in words) == right
    with pytest.raises(ValueError, match="there is no image at nowhere.jpg"):
        show_names(model, data, "nowhere.jpg")
