"""vitedu.bench.data: both sides make the same kind of batches. Nothing here asserts a speed."""

import json

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


def test_bench_prints_rates_and_ratios(tmp_path, capsys):
    """Two kinds of batches, each both ways."""
    path = tmp_path / "data.json"
    ratios = bench_data(CPU, num_images=40, batch=16, rounds=2, workers=0, json=path)
    text = capsys.readouterr().out
    assert "32 random 32 px images" in text and text.count("x the DataLoader's rate") == 2
    record = json.loads(path.read_text())
    assert record["ratios"] == ratios and len(record["images_per_second"]) == 4
    for kind, ratio in ratios.items():
        ours, theirs = (record["seconds"][f"{kind}: {who}"] for who in ("vitedu", "DataLoader"))
        low, high = sorted(b / a for a, b in zip(ours, theirs, strict=True))
        assert low <= ratio <= high


def test_too_few_images_are_refused():
    """A pass without a batch has no rate."""
    with pytest.raises(ValueError, match="num_images=8, batch=16"):
        bench_data(CPU, num_images=8, batch=16)
