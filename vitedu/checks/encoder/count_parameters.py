import math

import torch

from vitedu.checks.kit import Case, Checker, Config, Edits, Mistake, distinct, draw
from vitedu.vit import PRESETS


def cases(g: torch.Generator) -> list[Case]:
    """Draw odd configurations; two published ones; one too large to build."""

    def case(part, fields, name=""):
        config = Config(**fields)
        return Case(name or str(config), {"config": config}, part, number=True, rtol=0, atol=0.25)

    def odd(qkv_bias=True):
        heads, P = distinct(g, 2, 2, 7)
        D = heads * draw(g, 5, 30)
        C, side, depth, K = distinct(g, 4, 4, 9)  # never 3 channels
        hidden = draw(g, 2 * D, 5 * D)
        return {
            "image_size": side * P,
            "patch_size": P,
            "in_channels": C,
            "num_classes": K,
            "embed_dim": D,
            "depth": depth,
            "num_heads": heads,
            "mlp_ratio": (hidden + 0.7) / D,
            "qkv_bias": qkv_bias,
        }

    ones = dict.fromkeys("image_size patch_size in_channels num_classes depth num_heads".split(), 1)
    huge = {"embed_dim": 7 * 2**20, "num_heads": 7, "depth": 1000, "mlp_ratio": 4.0}
    return [
        case("values", odd()),
        case("values", odd()),
        case("values", odd() | ones),
        case("values", odd() | {"depth": 0, "mlp_ratio": 2.0}),
        case("qkv_bias=False", odd(qkv_bias=False)),
        case("presets", vars(PRESETS["vit_tiny_patch4_32"]), "the preset vit_tiny_patch4_32"),
        case("presets", vars(PRESETS["vit_base_patch16_224"]), "the preset vit_base_patch16_224"),
        case("no model is built", odd() | huge),
    ]


def _missing(id_: str, what: str, look: str, edits: Edits) -> Mistake:
    why = "The sum falls short by exactly that."
    return Mistake(id_, f"{what} not counted", "every parameter once", why, look, edits)


MISTAKES = (
    _missing(
        "one_vector_missing",
        "one vector of embed_dim values is",
        "Candidates: the class token, its row of pos_embed, the bias of the patch embedding.",
        {"num_prefix_tokens * D + (": "("},
    ),
    _missing(
        "positions_missing",
        "the positions are",
        "pos_embed is a parameter too.",
        {"(num_patches + num_prefix_tokens) * D": "0"},
    ),
    Mistake(
        "side_not_squared",
        "a patch is counted as one row of pixels",
        "patch_size ** 2 pixels in each channel",
        "A patch is a square.",
        "Look at the kernel of the patch embedding.",
        {"config.patch_size**2": "config.patch_size"},
    ),
    _missing(
        "final_norm_missing",
        "as much as the final norm is",
        "Candidates: the norm behind the last block, or the class token with its row of pos_embed.",
        {"depth * block + norm": "depth * block"},
    ),
    _missing(
        "one_norm_a_block",
        "as much as one norm of each block is",
        "A block has norm1 and norm2, each with a scale and a shift.",
        {"attention + norm": "attention"},
    ),
    _missing(
        "norms_missing",
        "the norms are",
        "Each of them scales and shifts: 2 * embed_dim.",
        {"norm = 2 * D": "norm = 0"},
    ),
    _missing(
        "norm_without_bias",
        "the biases of the norms are",
        "A norm scales and shifts.",
        {"norm = 2 * D": "norm = D"},
    ),
    _missing(
        "projection_missing",
        "the output projection of attention is",
        "Four matrices: q, k, v and the one behind the heads.",
        {" + D * D + D": ""},
    ),
    _missing(
        "no_biases",
        "the biases of the linear layers are",
        "Every nn.Linear and Conv2d has one, unless told otherwise.",
        {
            "**2 * D + D": "**2 * D",
            "(3 * D if config.qkv_bias else 0) + D * D + D": "D * D",
            "+ hidden + hidden * D + D": "+ hidden * D",
            " + config.num_classes": "",
        },
    ),
    _missing(
        "mlp_biases_missing",
        "the biases of the MLP are",
        "fc1 and fc2 have one bias each.",
        {"+ hidden + hidden * D + D": "+ hidden * D"},
    ),
    Mistake(
        "mlp_biases_of_one_width",
        "both biases of the MLP are counted with embed_dim entries",
        "fc1 has as many biases as hidden units",
        "A slip that stood in print: it costs 3 * embed_dim a block at ratio 4.",
        "A bias is as long as its layer's output.",
        {"+ hidden +": "+ D +"},
    ),
    Mistake(
        "second_bias_too_wide",
        "both biases of the MLP are counted with as many entries as hidden units",
        "fc2 has embed_dim biases",
        "It costs 3 * embed_dim a block at ratio 4.",
        "A bias is as long as its layer's output.",
        {"hidden * D + D\nblock": "hidden * D + hidden\nblock"},
    ),
    Mistake(
        "one_row_of_patches",
        "the patches of one row are counted, not all",
        "(image_size // patch_size) ** 2 patches",
        "pos_embed has a row for every patch.",
        "The grid has two sides.",
        {"patch_size) ** 2": "patch_size)"},
    ),
    Mistake(
        "qkv_bias_ignored",
        "a bias of q, k, v is counted where there is none",
        "3 * embed_dim biases only if qkv_bias",
        "qkv_bias is a field of the config.",
        "Look at config.qkv_bias.",
        {" if config.qkv_bias else 0": ""},
    ),
    Mistake(
        "mlp_ratio_ignored",
        "the hidden width is always four times embed_dim",
        "int(embed_dim * mlp_ratio)",
        "mlp_ratio is a field of the config.",
        "Look at config.mlp_ratio.",
        {"int(D * config.mlp_ratio)": "4 * D"},
    ),
    Mistake(
        "hidden_rounded",
        "the hidden width is rounded",
        "int(embed_dim * mlp_ratio), cut off",
        "int cuts off.",
        "Use int().",
        {"int(D": "round(D"},
    ),
    Mistake(
        "three_channels",
        "three channels are taken for granted",
        "in_channels from the config",
        "Satellites see more.",
        "Look at config.in_channels.",
        {"config.in_channels": "3"},
    ),
    Mistake(
        "heads_multiplied",
        "attention is counted once for every head",
        "heads share the columns of the same matrices",
        "More heads cost nothing: each gets a narrower slice.",
        "Leave num_heads out.",
        {"block = norm": "attention *= config.num_heads\nblock = norm"},
    ),
    Mistake(
        "one_block",
        "only one block is counted",
        "depth blocks",
        "The depth is the number of blocks.",
        "Multiply by config.depth.",
        {"config.depth * block": "block"},
    ),
)


def by_shapes(config):
    D, h = config.embed_dim, int(config.embed_dim * config.mlp_ratio)
    n = (config.image_size // config.patch_size) ** 2
    block = [(D,), (D,), (3 * D, D), (D, D), (D,), (D,), (D,), (h, D), (h,), (D, h), (D,)]
    if config.qkv_bias:
        block.append((3 * D,))
    shapes = [(D, config.in_channels, config.patch_size, config.patch_size), (D,)]
    shapes += [(D,), (n + 1, D), (D,), (D,), (config.num_classes, D), (config.num_classes,)]
    return sum(math.prod(shape) for shape in shapes + block * config.depth)


def by_polynomial(config):
    D, L, K = config.embed_dim, config.depth, config.num_classes
    H, N = int(D * config.mlp_ratio), (config.image_size // config.patch_size) ** 2
    per_block = 4 * D * D + 2 * D * H + 6 * D + H + 3 * D * bool(config.qkv_bias)
    return D * (config.in_channels * config.patch_size**2 + N + 5) + L * per_block + (D + 1) * K


def by_layers(config):
    def linear(inputs, outputs, bias=True):
        return inputs * outputs + outputs * bias

    D, P = config.embed_dim, config.patch_size
    H = int(config.mlp_ratio * D)
    block = 4 * D + linear(D, 3 * D, config.qkv_bias) + linear(D, D) + linear(D, H) + linear(H, D)
    tokens = 1 + (config.image_size // P) * (config.image_size // P)
    outside = linear(P * P * config.in_channels, D) + linear(D, config.num_classes)
    return outside + D + tokens * D + block * config.depth + 2 * D


def by_loop(config):
    D = config.embed_dim
    total = torch.tensor(D * config.in_channels * config.patch_size**2 + D)
    total += D + D * ((config.image_size // config.patch_size) ** 2 + 1)
    for _ in range(config.depth):
        total += 4 * D + 3 * D * (D + int(config.qkv_bias)) + D * (D + 1)
        total += int(D * config.mlp_ratio) * (2 * D + 1) + D
    return total + 2 * D + (D + 1) * config.num_classes


CHECKER = Checker(
    "count_parameters",
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
    special="config.depth == 0; config.depth == 1; config.in_channels == 1; "
    "config.num_classes == 1; config.image_size == config.patch_size; config.num_heads == 1; "
    "config.patch_size == 1; not config.qkv_bias",
    equivalent={
        "image_size is a multiple of patch_size, and a float is a number": ("image_size / config",),
        "a ViTConfig has the attribute": (
            "config, 'num_prefix_tokens', -",
            "(config, 'num_prefix_tokens')",
            "config, 'num_prefix_tokens', 0",
            "config, 'num_prefix_tokens', 2",
        ),
    },
    left_open={
        "pool is a field of this package; the contract's model reads its class token": (
            "num_prefix_tokens_",
            "prefix_and_positions = D",
        ),
    },
)
