"""vitedu.bench.experiments.ladder: each model has one part more than the one before."""

import torch

from vitedu.bench.experiments import ladder, measured
from vitedu.vit import ViTConfig

WIDE = ViTConfig(image_size=224, patch_size=16, embed_dim=64, depth=1, num_heads=4)
# without attention, with one head, with four, which add none, with a skip, a norm and the MLP
COUNTS = [62_538, 79_178, 79_178, 79_178, 79_306, 112_522]


def test_parameters_of_each_model_on_images_of_224_px():
    """Counted by hand: patches, class token, positions and head, then what each part adds."""
    models = [ladder.build(arm, 0, WIDE) for arm in ladder.ARMS]
    assert [sum(p.numel() for p in model.parameters()) for model in models] == COUNTS


def test_whole_block_is_the_course_s_block():
    """With every part the model computes what a ViT of one block computes before its last norm."""
    model = ladder.build("and the MLP", 0).eval()
    rung, x = model.blocks[0], torch.randn(2, 5, 64)
    torch.manual_seed(0)
    plain = ladder.VisionTransformer(ladder.CONFIG).blocks[0]
    with torch.no_grad():
        assert torch.equal(rung(x), plain(x))


def test_measured_steps_are_those_that_notebook_03_states():
    """Ten seeds: every part but the skip adds more than the standard errors."""
    found = {arm: {} for arm in ladder.ARMS}
    for row in measured("ladder"):
        found[row.arm][row.seed] = 100 * row.results["test_accuracy"]
    values = {arm: torch.tensor([rows[seed] for seed in range(10)]) for arm, rows in found.items()}
    arms = list(values)
    gains = {arm: values[arm] - values[before] for before, arm in zip(arms, arms[1:], strict=False)}
    for arm, gain in gains.items():
        assert (gain.mean() > 2 * gain.std() / 10**0.5) == (arm != "and a skip"), arm
    steps = {arm: round(gain.mean().item(), 1) for arm, gain in gains.items()}
    assert list(steps.values()) == [18.0, 5.4, 0.0, 1.7, 0.6]
    gained = [int((gain > 0).sum()) for gain in gains.values()]
    assert gained == [10, 10, 5, 10, 8]
