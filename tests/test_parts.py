"""vitedu.bench.experiments.parts: every arm changes what it says, and nothing else."""

import pytest
import torch

from vitedu.bench.experiments import Measurement, measured, parts
from vitedu.hardware import Profile


def size(arm):
    return sum(parameter.numel() for parameter in parts.build(arm, 0).parameters())


def test_poolings_differ_by_the_class_token_and_its_position():
    """Mean and maximum have no class token, so it cannot enter them; everything else is the same."""
    D = parts.BASE["embed_dim"]
    assert size("mean of the patches") == size("maximum of the patches") == size("class token") - 2 * D  # fmt: skip
    mean, largest = (parts.build(f"{kind} of the patches", 0) for kind in ("mean", "maximum"))
    assert mean.config.num_tokens == mean.config.num_patches
    x = torch.randn(2, 3, 32, 32)
    seen = []
    largest.norm.register_forward_hook(lambda module, inputs, output: seen.append(output))
    with torch.no_grad():
        logits = largest(x)
        assert torch.equal(logits, largest.head(seen[0].amax(dim=1)))
        assert not torch.allclose(logits, mean(x))


def test_block_without_its_parts_is_what_is_left():
    """One seed gives whole and reduced blocks the same weights; without skip the branch stands alone."""
    whole, bare = (parts.build(arm, 1).blocks[0] for arm in ("whole block", "attention"))
    x = torch.randn(2, 5, 64)
    assert torch.equal(bare(x), whole.attn(x)[0])
    joined = parts.build("attention, skip, norm", 1).blocks[0]
    assert torch.equal(joined(x), x + whole.attn(whole.norm1(x))[0])


def test_run_gives_accuracies():
    """A short run of an arm that lacks a part."""
    results = parts.run("attention, skip, norm", 0, Profile("quick", "", ""))
    assert 0 <= results["validation_accuracy"] <= 1 and results["train_images"] > 0


def test_table_gives_mean_and_standard_error_of_the_chosen_arms():
    """Two seeds at 50 and 60 %: 55.0 % ± 5.0 %; other arms stay out."""
    found = [
        Measurement("parts", arm, {}, seed, {}, {"parameters": 7, "train_accuracy": 0.5, "validation_accuracy": value}, "", {}, "")
        for arm in ("class token", "whole block")
        for seed, value in enumerate((0.5, 0.6))
    ]  # fmt: skip
    (line,) = parts.parts_table(found, ["whole block"]).splitlines()[1:]
    assert line.split() == "whole block 7 50.0% 55.0% ± 5.0% 2 seeds: 50.0 60.0".split()
    assert parts.mean_accuracy(found, "class token") == pytest.approx(0.55)


def test_ladder_rises_by_more_than_the_seeds_vary():
    """Each rung is better than the one below it by more than the standard errors of both together."""
    rungs = []
    for arm in parts.LADDER:
        values = [row.results["validation_accuracy"] for row in measured("parts") if row.arm == arm]
        assert len(values) >= 3
        values = torch.tensor(values)
        rungs.append((values.mean(), values.std() / len(values) ** 0.5))
    for (low, low_error), (high, high_error) in zip(rungs, rungs[1:], strict=False):
        assert low + low_error < high - high_error
