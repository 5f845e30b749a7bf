"""The references of notebook 03, against torch's own block and the models of all presets.

That single functions equal other roads to the same result is proved by the right answers of their
banks; what random blocks do without skips and norms, by the facts of the notebook (facts.py).
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.encoder import (
    EncoderBlock,
    class_token_alone,
    count_parameters,
    mlp_share,
)
from vitedu.extras.options import PRESETS_WITH_OPTIONS, build_model, preset
from vitedu.vit import PRESETS


def test_block_equals_torch_pre_norm_layer():
    """torch's encoder layer with norm_first and exact GELU, after its weights are copied."""
    ours = EncoderBlock(12, 3, 2.0)
    options = dict(activation="gelu", layer_norm_eps=1e-6, batch_first=True, norm_first=True)
    theirs = nn.TransformerEncoderLayer(12, 3, 24, dropout=0.0, **options)
    names = {"mlp.fc1": "linear1", "mlp.fc2": "linear2", "attn.proj": "self_attn.out_proj"}
    names["attn.qkv."] = "self_attn.in_proj_"
    state = {}
    for name, value in ours.state_dict().items():
        for old, new in names.items():
            name = name.replace(old, new)
        state[name] = value
    theirs.load_state_dict(state)
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=1e-5)


OPTIONS = {"pool": "mean"}, {"qkv_bias": False}, {"mlp_ratio": 2.7}
COUNTED = [*PRESETS.values(), *PRESETS_WITH_OPTIONS.values()]
COUNTED = [config for config in COUNTED if getattr(config, "stem", "patch") == "patch"]
COUNTED += [preset("vit_micro_patch8_32", **changes) for changes in OPTIONS]


def test_count_parameters_equals_the_model():
    """For every preset that cuts patches, and as options change it; nothing is built in memory."""
    for config in COUNTED:
        with torch.device("meta"):
            model = build_model(config)
        assert count_parameters(config) == sum(p.numel() for p in model.parameters()), config


def test_values_of_notebook_03_are_measured():
    """Without blocks all images have the same logits, the patches no gradient; the MLP's share."""
    torch.manual_seed(0)
    model = build_model(preset("vit_micro_patch8_32", depth=1))
    model.blocks = nn.ModuleList()
    logits = model(torch.randn(8, 3, 32, 32))
    F.cross_entropy(logits, torch.arange(8)).backward()
    gradient = model.patch_embed.proj.weight.grad.abs().max().item()
    assert (len(torch.unique(logits.detach(), dim=0)), gradient) == class_token_alone
    block = EncoderBlock(768, 12)
    shares = [sum(p.numel() for p in part.parameters()) for part in (block.mlp, block)]
    assert shares[0] / shares[1] == pytest.approx(mlp_share, rel=1e-12)
