"""vitedu.bench.experiments.without_one_part: each model lacks the part that its arm names."""

import pytest
import torch
from torch import nn

from vitedu.bench.experiments import measured
from vitedu.bench.experiments.without_one_part import ARMS, CONFIG, PartialBlock, build
from vitedu.encoder import EncoderBlock
from vitedu.vit import VisionTransformer

IMAGES = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def block_of():
    """A block in which every part counts."""
    torch.manual_seed(0)
    return EncoderBlock(12, 3)


@torch.no_grad()
def test_partial_block_is_what_is_left_of_the_formula():
    """Each switch takes one term of the two lines away."""
    block, x = block_of(), torch.randn(2, 5, 12)
    n1, n2, mlp = block.norm1, block.norm2, block.mlp

    def attend(y):
        return block.attn(y)[0]

    whole, mixed = x + attend(n1(x)), attend(n1(x))
    for lacks, expected in {
        (): whole + mlp(n2(whole)),
        ("mlp",): whole,
        ("attention",): x + mlp(n2(x)),
        ("norms",): x + attend(x) + mlp(x + attend(x)),
        ("residual",): mlp(n2(mixed)),
        ("mlp_residual",): mlp(n2(whole)),
    }.items():
        found = PartialBlock(block, **dict.fromkeys(lacks, False))(x)
        assert torch.allclose(found, expected, atol=1e-6), lacks


def test_every_arm_starts_from_the_weights_of_the_whole_model():
    """The same tensors but for what is missing; a student's class is taken as it is."""

    class Own(VisionTransformer):
        pass

    whole = build("whole", 3, Own)
    assert type(whole) is Own
    kept = {name: tensor for name, tensor in whole.state_dict().items() if name != "pos_embed"}
    for arm in ARMS:
        weights = build(arm, 3).state_dict()
        assert all(torch.equal(kept[name], weights[name]) for name in weights if name in kept), arm
    D, hidden = CONFIG.embed_dim, 2 * CONFIG.embed_dim
    counts = {arm: sum(p.numel() for p in build(arm, 0).parameters()) for arm in ARMS}
    missing = {arm: counts["whole"] - count for arm, count in counts.items()}
    mlp = CONFIG.depth * (2 * D * hidden + hidden + D + 2 * D)
    assert missing == dict.fromkeys(ARMS, 0) | {"no norms": CONFIG.depth * 4 * D, "no MLP": mlp}


@torch.no_grad()
def test_arms_lack_what_they_say():
    """Even weights are those of queries that are zero; without positions shuffling is not seen."""
    even, same = build("even weights", 0), build("whole", 0)
    for block in same.blocks:
        block.attn.qkv.weight[: CONFIG.embed_dim] = block.attn.qkv.bias[: CONFIG.embed_dim] = 0
    assert torch.allclose(even(IMAGES), same(IMAGES), atol=1e-5)
    squares = nn.functional.unfold(IMAGES, 4, stride=4)
    shuffled = nn.functional.fold(squares.flip(2), (32, 32), 4, stride=4)
    for arm, is_seen in (("no positions", False), ("whole", True)):
        model = build(arm, 0)
        assert torch.allclose(model(IMAGES), model(shuffled), atol=1e-6) != is_seen
    assert {block.attn.num_heads for block in build("one head", 0).blocks} == {1}
    assert build("no positions", 0).pos_embed.requires_grad is False
    with pytest.raises(ValueError, match="no arm named 'no head'. Choices: whole; no positions"):
        build("no head", 0)


def test_measured_arms_are_those_that_notebook_03_states():
    """One far behind, the others within six points, one head within the spread of the seeds."""
    found = {arm: [] for arm in ARMS}
    for row in measured("without_one_part"):
        found[row.arm].append(row.results["test_accuracy"])
    assert {len(values) for values in found.values()} == {3}
    whole, one_head = found.pop("whole"), found.pop("one head")
    assert max(found.pop("no residual")) < 0.35 < 0.5 < min(map(min, found.values()))
    assert max(whole) - min(map(min, found.values())) < 0.06
    assert max(map(max, found.values())) < min(whole) < max(one_head)
