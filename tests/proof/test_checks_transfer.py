"""What is particular to the checks of notebook 09."""

import pytest
import torch

from vitedu.checks.api import judge
from vitedu.transfer import LoRALinear

pytestmark = pytest.mark.bank


class LearnsNothing(LoRALinear):
    """Build a graph only where x has one: images have none."""

    def forward(self, x):
        with torch.set_grad_enabled(x.requires_grad):
            return super().forward(x)


class KeepsMerged(LoRALinear):
    """Keep the layer of the first call of merged, as a part of its own."""

    def merged(self):
        if not hasattr(self, "ready"):
            self.ready = super().merged()
        return self.ready


class GivesItselfUp(LoRALinear):
    """Put the merged layer in the place of the frozen one."""

    def merged(self):
        self.linear = super().merged().requires_grad_(False)
        torch.nn.init.zeros_(self.up.weight)
        return self.linear


@pytest.mark.parametrize("seed", range(3))
def test_a_layer_that_cannot_learn_fails(seed):
    """It fails though all its numbers are right, and so are the gradients where x needs one."""
    report = judge(LearnsNothing, "LoRALinear", seed=seed)
    assert not report.passed and report.misconceptions == ["detached"]
    assert {f.name for f in report.findings if not f.passed} == {"gradients"}


@pytest.mark.parametrize("seed", range(3))
def test_a_merged_layer_that_is_kept_fails(seed):
    """After more training merged() has to give other weights."""
    report = judge(KeepsMerged, "LoRALinear", seed=seed)
    assert not report.passed and report.misconceptions == ["merged_kept"]
    assert "after more training" in str(report)


def test_a_layer_that_merging_uses_up_fails():
    """That it changes the layer is told first."""
    report = judge(GivesItselfUp, "LoRALinear", seed=0)
    assert not report.passed and report.misconception == "merged_in_place"
