"""Checker of count_parameters: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import encoder as reference
from vitedu.checks.arguments import Config
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw
from vitedu.checks.probing import Case
from vitedu.vit import PRESETS


def count_cases(g: torch.Generator) -> list[Case]:
    """Draw odd configurations; two published ones; one too large to build."""

    def case(part="values", **fields):
        return Case(
            f"{Config(**fields)}",
            {"config": Config(**fields)},
            part=part,
            number=True,
            rtol=0,
            atol=0.25,
        )

    def odd(qkv_bias, **changes):
        heads, P = distinct(g, 2, 2, 7)
        D = heads * draw(g, 5, 30)
        C, side, depth, K = distinct(g, 4, 2, 9)
        hidden = draw(g, 2 * D, 5 * D)
        fields = {"image_size": side * P, "patch_size": P, "in_channels": C, "num_classes": K, "embed_dim": D, "depth": depth,
                  "num_heads": heads, "mlp_ratio": (hidden + 0.7) / D, "qkv_bias": qkv_bias}  # fmt: skip
        return fields | changes

    presets = [
        Case(
            f"the preset {name}",
            {"config": Config(**vars(PRESETS[name]))},
            part="presets",
            number=True,
            rtol=0,
            atol=0.25,
        )
        for name in ("vit_tiny_patch4_32", "vit_base_patch16_224")
    ]
    return [
        case(**odd(True)),
        case(**odd(True)),
        case("qkv_bias=False", **odd(False)),
        *presets,
        case(
            "no model is built",
            **odd(True, embed_dim=7 * 2**20, num_heads=7, depth=1000, mlp_ratio=4.0),
        ),
    ]


def faulty_count(mistakes: frozenset[str]):
    """Count with the named mistakes made."""

    def count_parameters(config):
        c = config
        D = c.embed_dim
        hidden = 4 * D if "mlp_ratio_ignored" in mistakes else int(D * c.mlp_ratio)
        if "hidden_rounded" in mistakes:
            hidden = round(D * c.mlp_ratio)
        C = 3 if "three_channels" in mistakes else c.in_channels
        N = (c.image_size // c.patch_size) ** 2
        biases = "no_biases" not in mistakes
        qkv_bias = True if "qkv_bias_ignored" in mistakes else c.qkv_bias
        patch = C * c.patch_size**2 * D + (D if biases else 0)
        cls = 0 if "one_vector_missing" in mistakes else D
        positions = 0 if "positions_missing" in mistakes else (N + 1) * D
        norm = D if "norm_without_bias" in mistakes else 2 * D
        attention = 4 * D * D + ((3 * D * qkv_bias + D) if biases else 0)
        if "projection_missing" in mistakes:
            attention -= D * D + D
        if "heads_multiplied" in mistakes:
            attention *= c.num_heads
        mlp = 2 * D * hidden + (hidden + D if biases else 0)
        if "mlp_biases_of_one_width" in mistakes:
            mlp += D - hidden
        norms = norm if "one_norm_a_block" in mistakes else 2 * norm
        head = D * c.num_classes + (c.num_classes if biases else 0)
        final = 0 if "final_norm_missing" in mistakes else norm
        depth = 1 if "one_block" in mistakes else c.depth
        return patch + cls + positions + depth * (norms + attention + mlp) + final + head

    return count_parameters


def _missing(id_: str, what: str, look: str) -> Misconception:
    return Misconception(
        id_,
        f"{what} not counted",
        "every parameter once",
        "The sum falls short by exactly that.",
        look,
    )


COUNT_BANK = (
    _missing("one_vector_missing", "one vector of embed_dim values is", "Candidates: the class token, its row of pos_embed, the bias of the patch embedding."),
    _missing("positions_missing", "the positions are", "pos_embed is a parameter too."),
    _missing("final_norm_missing", "the final norm is", "One norm stands behind the last block."),
    _missing("one_norm_a_block", "one of the two norms of a block is", "norm1 and norm2."),
    _missing("norm_without_bias", "the biases of the norms are", "A norm scales and shifts."),
    _missing("projection_missing", "the output projection of attention is", "Four matrices: q, k, v and the one behind the heads."),
    _missing("no_biases", "the biases of the linear layers are", "Every nn.Linear and Conv2d has one, unless told otherwise."),
    Misconception(
        "mlp_biases_of_one_width", "both biases of the MLP are counted with embed_dim entries", "fc1 has as many biases as hidden units",
        "A slip that stood in print: it costs 3 * embed_dim a block at ratio 4.", "A bias is as long as its layer's output.",
    ),
    Misconception("qkv_bias_ignored", "a bias of q, k, v is counted where there is none", "3 * embed_dim biases only if qkv_bias", "qkv_bias is a field of the config.", "Look at config.qkv_bias."),
    Misconception("mlp_ratio_ignored", "the hidden width is always four times embed_dim", "int(embed_dim * mlp_ratio)", "mlp_ratio is a field of the config.", "Look at config.mlp_ratio."),
    Misconception("hidden_rounded", "the hidden width is rounded", "int(embed_dim * mlp_ratio), cut off", "int cuts off.", "Use int()."),
    Misconception("three_channels", "three channels are taken for granted", "in_channels from the config", "Satellites see more.", "Look at config.in_channels."),
    Misconception("heads_multiplied", "attention is counted once for every head", "heads share the columns of the same matrices", "More heads cost nothing: each gets a narrower slice.", "Leave num_heads out."),
    Misconception("one_block", "only one block is counted", "depth blocks", "The depth is the number of blocks.", "Multiply by config.depth."),
)  # fmt: skip

CHECKER = Checker(
    "count_parameters",
    reference.count_parameters,
    count_cases,
    faulty_count,
    COUNT_BANK,
    forbidden=frozenset({"aten.uniform_", "aten.normal_", "aten.empty"}),
    forbidden_words="building the model",
    proves={
        "values": "equal to the sum over model.parameters() for odd configurations",
        "presets": "and for ViT-Tiny and ViT-B/16",
        "qkv_bias=False": "and without biases of q, k, v",
        "no model is built": "from the formula alone, at any size",
    },
    hides=frozenset({"VisionTransformer", "EncoderBlock", "MultiHeadAttention"}),
    flags=frozenset({"VisionTransformer", "EncoderBlock", "parameters", "numel"}),
)
