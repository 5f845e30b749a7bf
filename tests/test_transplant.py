"""vitedu.extras.transplant: torch's encoder computes what ours does, and weights move both ways."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.attention import MultiHeadAttention
from vitedu.bench.experiments import thread
from vitedu.data import load_data
from vitedu.encoder import EncoderBlock
from vitedu.extras.transplant import TorchEncoderViT, replace_attention, run, transplant
from vitedu.fitting import fit
from vitedu.fitting.recipes import thread_recipe
from vitedu.patches import PatchEmbed
from vitedu.vit import VisionTransformer, ViTConfig

CONFIG = ViTConfig(embed_dim=24, depth=2, num_heads=3, mlp_ratio=2)
IMAGES = torch.randn(5, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SAME = 1e-5  # logits of size 1 after two blocks in float32


def trained(model):
    """Give every parameter values of its own, biases and norms too, as training would."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


class OwnAttention(nn.Module):
    """A student's layer: another way to compute it, and the same attribute names."""

    calls = 0

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h, self.qkv = num_heads, nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        """Map tokens (B, T, D) to output and no weights."""
        OwnAttention.calls += 1
        q, k, v = self.qkv(x).unflatten(2, (3, self.h, -1)).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)), None


KINDS = TorchEncoderViT, VisionTransformer


@pytest.mark.parametrize(("theirs", "ours"), [KINDS, KINDS[::-1]], ids=["from torch", "to torch"])
def test_whole_models_give_the_same_logits_both_ways(theirs, ours):
    """Torch's encoder is built to fit: norms first, exact GELU, eps 1e-6, no dropout."""
    source, target = trained(theirs(CONFIG)).train(), ours(CONFIG)
    assert (run(source, IMAGES) - run(target, IMAGES)).abs().max() > 0.1
    moved = transplant(source, target, inputs=IMAGES)
    assert 0 < moved.difference < SAME and len(moved.moved) == len(source.state_dict())
    assert (run(source, IMAGES) - target(IMAGES)).abs().max() < SAME  # not the shortcut of eval
    assert all(module.training for module in source.modules())


def test_own_attention_takes_the_place_of_torchs_and_gives_its_logits():
    """Untrained it gives others; it is what runs, in both modes; the first model stays."""
    box = trained(TorchEncoderViT(CONFIG))
    opened = replace_attention(box, OwnAttention)
    OwnAttention.calls = 0
    assert (run(box, IMAGES) - run(opened, IMAGES)).abs().max() > 0.01
    opened.train()(IMAGES).sum().backward()
    assert OwnAttention.calls == 2 * CONFIG.depth
    result = transplant(box, opened, "attention", IMAGES)
    assert result.difference < SAME and len(result.moved) == 4 * CONFIG.depth
    assert "8 tensors moved (blocks.*.attn.qkv, blocks.*.attn.proj); largest" in str(result)
    assert isinstance(box.encoder.layers[0].self_attn, nn.MultiheadAttention)
    assert transplant(opened, VisionTransformer(CONFIG), inputs=IMAGES).difference < SAME


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (lambda: nn.MultiheadAttention(24, 3, batch_first=True), lambda: MultiHeadAttention(24, 3)),
        (lambda: TorchEncoderViT(CONFIG).encoder.layers[1], lambda: EncoderBlock(24, 3, 2)),
    ],
    ids=["attention", "block"],
)
def test_single_layers_move_both_ways(theirs, ours):
    """On tokens, and with torch's three arguments where it asks for them."""
    theirs, ours, tokens = trained(theirs()), ours(), torch.randn(2, 7, 24)
    assert transplant(theirs, ours, inputs=tokens).difference < SAME
    assert transplant(trained(ours), theirs, inputs=tokens).difference < SAME


def test_blocks_alone_leave_the_rest():
    """Patches, positions, norm and head of the target stay its own."""
    source, target = trained(TorchEncoderViT(CONFIG)), VisionTransformer(CONFIG)
    head = target.head.weight.clone()
    moved = transplant(source.encoder, target)
    assert {name.split(".")[0] for name in moved.moved} == {"blocks"} and moved.difference is None
    assert torch.equal(target.head.weight, head)
    assert torch.equal(target.blocks[1].mlp.fc2.weight, source.encoder.layers[1].linear2.weight)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embed_dim": 48}, r"cls_token is \(1, 1, 24\) in the source and \(1, 1, 48\) in the tar"),
        ({"depth": 3}, r"blocks.2.norm1.weight is missing in the source and \(24,\) in the target"),
        ({"qkv_bias": False}, r"attn.qkv.bias is \(72,\) in the source and missing in the target"),
    ],
    ids=["size", "depth", "bias"],
)
def test_what_does_not_fit_is_named_with_both_shapes_and_nothing_moves(changes, message):
    """Also where the first tensors would fit."""
    target = VisionTransformer(ViTConfig(**{**vars(CONFIG), **changes}))
    before = {name: tensor.clone() for name, tensor in target.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        transplant(TorchEncoderViT(CONFIG), target)
    assert all(torch.equal(before[name], now) for name, now in target.state_dict().items())


def test_models_without_a_common_part_and_unknown_parts_are_refused():
    """Each message says what it found."""
    with pytest.raises(ValueError, match="'all' begins with cls_token in the source and qkv.wei"):
        transplant(TorchEncoderViT(CONFIG), MultiHeadAttention(24, 3))
    with pytest.raises(ValueError, match="one of all, blocks, attention"):
        transplant(TorchEncoderViT(CONFIG), VisionTransformer(CONFIG), "heads")


def test_blocks_of_the_box_start_apart_and_as_ours_do():
    """Torch makes them copies of one; in_proj_weight is no Linear's, and is drawn all the same."""
    torch.manual_seed(0)
    box = TorchEncoderViT(CONFIG)
    tensors = [layer.self_attn.in_proj_weight for layer in box.encoder.layers]
    assert not torch.equal(*tensors)
    assert all(0.016 < tensor.std() < 0.019 and tensor.abs().max() <= 0.04 for tensor in tensors)
    assert not box.encoder.layers[0].self_attn.in_proj_bias.any()


def test_tokens_of_ones_own_are_what_runs():
    """A class for the patches, a function for class token and positions."""
    calls = []

    class OwnPatchEmbed(PatchEmbed):
        def forward(self, images):
            calls.append("patches")
            return super().forward(images)

    def add_tokens(x, cls_token, pos_embed):
        calls.append("tokens")
        return torch.cat([cls_token.expand(len(x), -1, -1), x], dim=1) + pos_embed

    TorchEncoderViT(CONFIG, OwnPatchEmbed, add_tokens)(IMAGES)
    assert calls == ["patches", "tokens"]


def test_every_parameter_learns_with_the_recipe_of_the_thread():
    """One short epoch with ``fit``; the recipe is among those that the experiment compares."""
    assert any(vars(thread_recipe()).items() >= arm.items() for arm in thread.ARMS.values())
    assert thread_recipe(epochs=2).epochs == 2
    model = TorchEncoderViT(CONFIG)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fit(model, load_data(limit=130, held_out=10), thread_recipe(), show_progress=False)
    after = model.state_dict()
    assert [name for name in before if torch.equal(before[name], after[name].cpu())] == []
