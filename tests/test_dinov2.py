"""DINOv2 on photographs: what comes along is what the model gives, and its weights run in ours."""

import torch
import torch.nn.functional as F

from vitedu.inside import attention_distance, position_similarity
from vitedu.pretrained.conversions import fold_layer_scale
from vitedu.pretrained.photographs import (
    SHIPPED,
    leading_directions,
    look_at_photographs,
    patch_colours,
)
from vitedu.vit import VisionTransformer, ViTConfig, capture


def test_shipped_arrays_are_small_and_whole():
    """At most a megabyte; every number finite, the distances between 0 and the grid's diagonal."""
    seen = look_at_photographs()
    assert SHIPPED.stat().st_size < 1_000_000 and (SHIPPED.parent / "SOURCE.md").is_file()
    shapes = {name: tuple(each.shape) for name, each in seen.items()}
    assert shapes == {
        "features": (4, 1369, 32),
        "distances": (12, 6),
        "positions": (1, 1369, 32),
        "norms": (4, 13, 1370),
    }
    assert all(each.isfinite().all() for each in seen.values())
    assert 0 < seen["distances"].min() and seen["distances"].max() < 37 * 2**0.5


def test_shipped_features_know_the_eyes_of_the_cat():
    """Both eyes are alike and unlike the fur between them: that is no property of pixels."""
    cat = look_at_photographs()["features"][1]
    left, right, fur = (row * 37 + column for row, column in ((14, 11), (16, 30), (17, 21)))
    unit = F.normalize(cat - cat.mean(dim=0), dim=-1)
    assert unit[left] @ unit[right] > 0.8 > 0.7 > unit[left] @ unit[fur]


def test_notebook_says_of_the_shipped_arrays_what_they_hold():
    """Near heads beside far ones in blocks 2 to 4, a cross of positions, no outlying norm."""
    seen = look_at_photographs()
    near, far = seen["distances"].amin(dim=1), seen["distances"].amax(dim=1)
    assert near[2:5].max() < 4.5 and far[2:5].min() > 18 and near[6:].min() > 8.5
    alike = position_similarity(seen["positions"], (37, 37))
    middle, corner = alike[18 * 37 + 18], alike[0]
    assert min(middle[18, 8], middle[8, 18]) > middle[8, 8] + 0.2
    assert corner[0, 18] > corner[18, 18] + 0.2
    last = seen["norms"][:, -1, 1:]
    assert (last.amax(dim=1) < 1.5 * last.median(dim=1).values).all()


def test_a_model_is_looked_at_as_its_parts_say():
    """What is kept is what ``capture`` gives, photograph by photograph."""
    torch.manual_seed(0)
    config = ViTConfig(image_size=24, patch_size=8, embed_dim=12, depth=2, num_heads=3)
    model = VisionTransformer(config).eval()
    seen = look_at_photographs(model, ["chelsea", torch.zeros(3, 30, 30)])
    black = -torch.tensor([0.485, 0.456, 0.406]) / torch.tensor([0.229, 0.224, 0.225])
    tensors = capture(model, black.view(1, 3, 1, 1).expand(1, 3, 24, 24))
    torch.testing.assert_close(seen["features"][1], tensors["norm"][0, 1:])
    norms = [tensors[name][0].norm(dim=-1) for name in ("tokens", "blocks.0", "blocks.1")]
    torch.testing.assert_close(seen["norms"][1], torch.stack(norms))
    assert torch.equal(seen["positions"], model.pos_embed[:, 1:])
    alone = look_at_photographs(model, ["chelsea"])["distances"][1]
    black_one = attention_distance(tensors["blocks.1.attn.weights"], config.grid_size)
    torch.testing.assert_close(seen["distances"][1], (alone + black_one) / 2)
    assert not any(each.requires_grad for each in seen.values())


def test_fewer_directions_draw_the_same_colours():
    """So shipped features need not be whole; and the colours spread over the whole range."""
    torch.manual_seed(0)
    features = torch.randn(2, 12, 8) * torch.arange(8, 0, -1)
    whole = patch_colours(features, (3, 4))
    assert whole.shape == (2, 3, 3, 4) and whole.min() == 0 and whole.max() == 1
    fewer = patch_colours(leading_directions(features, 4), (3, 4))
    for channel in range(3):  # the sign of a direction is free
        a, b = whole[:, channel], fewer[:, channel]
        assert min((a - b).abs().max(), (a - 1 + b).abs().max()) < 1e-4


def test_folding_without_bias_or_factor_changes_only_what_is_there():
    """Names of whole models, of one block, and of a block without LayerScale."""
    gamma, weight, bias = torch.rand(2), torch.rand(2, 3), torch.rand(2)
    block = {"blocks.1.ls2.gamma": gamma, "blocks.1.mlp.fc2.weight": weight}
    folded = fold_layer_scale({**block, "blocks.1.mlp.fc2.bias": bias, "norm.bias": bias})
    assert folded.keys() == {"blocks.1.mlp.fc2.weight", "blocks.1.mlp.fc2.bias", "norm.bias"}
    x = torch.rand(3)
    expected = gamma * (weight @ x + bias)
    found = folded["blocks.1.mlp.fc2.weight"] @ x + folded["blocks.1.mlp.fc2.bias"]
    torch.testing.assert_close(found, expected)
    assert torch.equal(folded["norm.bias"], bias) and len(block) == 2
