"""vitedu.bench.data: both sides make the same kind of batches. Nothing here asserts a speed."""

import re

import pytest
import torch

from vitedu.bench.data import bench_data, our_batches, torchvision_loader

pytestmark = pytest.mark.slow  # torchvision takes seconds to load
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def images():
    """Ten smooth images, each of one colour, and their labels."""
    generator = torch.Generator().manual_seed(0)
    colours = torch.randint(0, 256, (10, 3, 1, 1), dtype=torch.uint8, generator=generator)
    return colours.expand(-1, -1, 32, 32).contiguous(), torch.arange(10)


@pytest.mark.parametrize("policy", [False, True])
def test_both_make_batches_of_one_kind(images, policy):
    """Shapes, types and numbers of batches; with CutMix soft labels that sum to 1."""
    ours = list(our_batches(*images, 4, torch.Generator().manual_seed(0), policy))
    theirs = list(torchvision_loader(*images, 4, policy, workers=0))
    assert len(ours) == len(theirs) == 2  # the short third is left out
    for x, y in ours + theirs:
        assert x.shape == (4, 3, 32, 32) and x.dtype is torch.float32
        assert y.shape == ((4, 10) if policy else (4,))
        if policy:
            torch.testing.assert_close(y.sum(dim=1), torch.ones(4), rtol=0, atol=1e-5)


def test_both_normalise_alike(images):
    """Crops and mirrors leave images of one colour alone: what comes out is the colour, scaled."""
    found = []
    loader = torchvision_loader(*images, 5, False, workers=0)
    for batches in (our_batches(*images, 5, torch.Generator().manual_seed(0), False), loader):
        by_label = torch.zeros(10, 3, 32, 32)
        for x, y in batches:
            by_label[y] = x
        found.append(by_label)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-5)


def test_bench_prints_rates_and_ratios(capsys):
    """Two kinds of batches, each both ways."""
    ratios = bench_data(CPU, num_images=40, batch=16, rounds=2, workers=0)
    text = capsys.readouterr().out
    assert "32 random 32 px images" in text and text.count("±") == 4
    assert re.findall(r": (\d+\.\d) x the DataLoader's rate", text) == [
        f"{ratio:.1f}" for ratio in ratios.values()
    ]
    assert all(ratio > 0 for ratio in ratios.values())
    with pytest.raises(ValueError, match="at most 40 images"):
        bench_data(CPU, num_images=40, batch=41)
