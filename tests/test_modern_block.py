"""vitedu.bench.experiments.modern_block: each arm has the part that it is named for."""

import torch
from torch import nn

from vitedu.bench.experiments.modern_block import ARMS, LayerScale, build
from vitedu.fast import SwiGlu


def kinds(arm):
    """Count the parts of a model that the textbook's does not have."""
    modules = list(build(arm, 0).modules())
    return [sum(isinstance(m, kind) for m in modules) for kind in (nn.RMSNorm, LayerScale, SwiGlu)]


def test_each_arm_changes_one_part_and_the_last_one_all():
    """Nine norms, eight branches, four MLPs, four tokens; the size stays within one in 200."""
    assert kinds("textbook") == [0, 0, 0]
    assert kinds("RMSNorm") == [9, 0, 0] and kinds("LayerScale") == [0, 8, 0]
    assert kinds("SwiGLU") == [0, 0, 4] and kinds("all four") == [9, 8, 4]
    assert build("all four", 0).pos_embed.shape[1] == 4 + build("textbook", 0).pos_embed.shape[1]
    sizes = {arm: sum(p.numel() for p in build(arm, 0).parameters()) for arm in ARMS}
    assert max(sizes.values()) < 1.005 * min(sizes.values()) + 1000
    scaled = LayerScale(3, 0.1)(torch.ones(2, 3))
    torch.testing.assert_close(scaled, torch.full((2, 3), 0.1))
