"""vitedu.bench.experiments.inside: its arms, its shuffle, and what a run gives."""

from dataclasses import replace

import pytest
import torch

from vitedu.bench.experiments import inside, measured
from vitedu.data import load_data
from vitedu.patches import patchify
from vitedu.vit_and_cnn import shuffle_patches

SHUFFLE = "one fixed patch shuffle"


@pytest.fixture(scope="module")
def data():
    """A few drawn shapes."""
    data = load_data("shapes", limit=40, held_out=40)
    few = {name: value[:20] for name, value in vars(data.test).items()}
    return replace(data, test=replace(data.test, **few))


def test_shuffle_puts_patches_where_it_says_and_back(data):
    """Place i takes the patch of place order[i]; the inverse order restores the image."""
    images, order = data.test.images[:2], inside.draw_patch_order(3)
    P = inside.CONFIG.patch_size
    moved = shuffle_patches(images, P, order)
    assert torch.equal(patchify(moved.float(), P), patchify(images.float(), P)[:, order])
    assert torch.equal(shuffle_patches(moved, P, order.argsort()), images)


def test_like_content_follows_what_moves():
    """Positions that hold what is seen there correlate with it, and not with a shuffle of it."""
    N = inside.CONFIG.num_patches
    covered = torch.arange(N) / N
    angles = covered[:, None] * 2
    waves = torch.cat([torch.cos(angles), torch.sin(angles)], dim=1)[None]  # alike where content is
    order = inside.draw_patch_order(0)
    assert inside.content_correlation(waves, covered) > 0.95
    assert abs(inside.content_correlation(waves[:, order], covered)) < 0.3
    assert inside.content_correlation(waves[:, order], covered[order]) > 0.95


def test_shuffled_model_is_the_plain_one_with_its_positions_moved():
    """Attention does not know places: moved patches with moved positions give the same logits."""
    plain, moved = (inside.build(arm, 0).eval() for arm in ("class token", SHUFFLE))
    with torch.no_grad():
        order = moved.order
        moved.pos_embed[:, 1:] = plain.pos_embed[:, 1:][:, order]
        images = torch.randn(2, 3, 32, 32)
        assert (moved(images) - plain(images)).abs().max() < 1e-5
        moved.pos_embed[:, 1:] = plain.pos_embed[:, 1:]
        assert (moved(images) - plain(images)).abs().max() > 1e-4


@pytest.mark.parametrize("arm", inside.ARMS)
def test_arms_differ_in_what_they_say(arm, data):
    """Tokens and pooling are those of the arm; everything that is measured is finite."""
    model = inside.build(arm, 0)
    prefix = {"mean of the patches": 0, "largest of the patches": 0, "4 registers": 5}.get(arm, 1)
    assert model.config.num_prefix_tokens == prefix
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    found = inside.measure_inside(model, data)
    assert all(value == value for value in found.values())
    assert ("register norm" in found) == (arm == "4 registers")


def test_largest_patch_pools_over_patches():
    """The head reads the largest value of each feature."""
    model = inside.build("largest of the patches", 0).eval()
    images = torch.randn(2, 3, 32, 32)
    seen = {}
    model.norm.register_forward_hook(lambda module, inputs, output: seen.update(norm=output))
    with torch.no_grad():
        logits = model(images)
        assert torch.equal(logits, model.head(seen["norm"].max(dim=1).values))


def test_rows_are_those_that_the_notebook_speaks_of():
    """Three seeds: the largest patch learns fastest, positions follow what is seen there."""
    found = {(row.arm, row.seed): row.results for row in measured("inside")}
    assert found.keys() == {(arm, seed) for arm in inside.ARMS for seed in range(3)}
    for seed in range(3):
        plain, moved = found["class token", seed], found[SHUFFLE, seed]
        largest, mean = (found[f"{kind} of the patches", seed] for kind in ("largest", "mean"))
        assert largest["test_accuracy"] > plain["test_accuracy"] + 0.06
        assert plain["test_accuracy"] > mean["test_accuracy"] + 0.06
        assert moved["trained: like content, put back"] > moved["trained: like content"] + 0.2
