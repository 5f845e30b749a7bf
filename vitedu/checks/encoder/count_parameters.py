"""3.6 count_parameters: where the parameters are."""

from torch import Generator

from vitedu.checks.encoder.vision_transformer_driver import Config
from vitedu.checks.writing.kit import Case, distinct, draw
from vitedu.vit import PRESETS, ViTConfig


def cases(g: Generator) -> list[Case]:
    """Draw odd configurations; two published ones; one too large to build."""

    def case(part, fields, name=""):
        config = Config(**fields)
        return Case(name or str(config), {"config": config}, part, number=True, rtol=0, atol=0.25)

    def odd(qkv_bias=True):
        heads, P = distinct(g, 2, 2, 7)
        D = heads * draw(g, 5, 30)
        C, side, depth, K = distinct(g, 4, 4, 9)  # never 3 channels
        hidden = draw(g, 2 * D, 5 * D)
        ratio = (hidden + 0.7) / D
        return vars(ViTConfig(side * P, P, C, K, D, depth, heads, ratio, qkv_bias))

    ones = dict.fromkeys("image_size patch_size in_channels num_classes depth num_heads".split(), 1)
    huge = {"embed_dim": 7 * 2**20, "num_heads": 7, "depth": 1000, "mlp_ratio": 4.0}
    return [
        case("values", odd()),
        case("values", odd()),
        case("rare sizes", odd() | ones),
        case("rare sizes", odd() | {"depth": 0, "mlp_ratio": 2.0}),
        case("qkv_bias=False", odd(qkv_bias=False)),
        case("presets", vars(PRESETS["vit_tiny_patch4_32"]), "the preset vit_tiny_patch4_32"),
        case("presets", vars(PRESETS["vit_base_patch16_224"]), "the preset vit_base_patch16_224"),
        case("no model is built", odd() | huge),
    ]


forbidden = frozenset({"aten.uniform_", "aten.normal_", "aten.empty"})
forbidden_words = "building the model"
