"""3.5 VisionTransformer: from pixels to logits."""

import torch

from vitedu.checks.encoder.vision_transformer_driver import Config, starting_values
from vitedu.checks.writing import inputs
from vitedu.checks.writing.kit import Case, distinct, draw, normal, plural, usual
from vitedu.vit import VisionTransformer, ViTConfig


def cases(g: torch.Generator) -> list[Case]:
    """Draw small models whose sizes all differ."""

    def case(B, fields, note="", dtype=torch.float32, part="other sizes", scale=1.0, **rest):
        config = Config(**fields)
        state = inputs.random_state(VisionTransformer, [config.build()], g, dtype)
        for name in ("cls_token", "pos_embed"):
            state[name] *= scale
        side = fields["image_size"]
        images = normal(g, B, fields["in_channels"], side, side, dtype=dtype)
        # in float64, too, eps is felt in its own part alone
        rest["rtol"], rest["atol"] = (1e-3, 2e-4) if dtype == torch.float32 else (1e-4, 1e-5)
        rest = {"driver": "module", "init": {"config": config}, "outputs": ("logits",)} | rest
        name = f"{plural(B, 'image')}, {config}{note}"
        return Case(name, {"images": images}, part, state=state, **rest)

    heads = draw(g, 2, 3)
    D = heads * draw(g, 3, 5)
    B, C = distinct(g, 2, 2, 4)
    K, P = draw(g, 5, 9), draw(g, 2, 3)
    side, depth = draw(g, 2, 4), draw(g, 2, 3)
    fields = vars(ViTConfig(side * P, P, C, K, D, depth, heads, mlp_ratio=2.0))
    shallow = fields | {"depth": 1}
    deep = {"image_size": P, "num_classes": 1, "embed_dim": 4, "num_heads": 2, "depth": 7}
    start = shallow | {"embed_dim": 64, "num_heads": 2, "num_classes": 16}
    square = shallow | {"image_size": 3 * P, "embed_dim": 9, "num_heads": 3}
    return [
        case(B, fields, part="values", gradients=("images",)),
        case(1, shallow, part="batch of one"),
        case(2, shallow | {"image_size": 9 * P, "in_channels": 1}, ", more than 64 patches"),
        case(9, square, ", as many patches as columns and images"),
        case(B, shallow | {"qkv_bias": False}, part="without bias"),
        # of a variance near the norm's eps of 1e-6
        case(B, fields | {"depth": 0}, ", a tiny class token", part="eps", scale=1e-3),
        case(B, fields | deep, ", in train mode", part="rare sizes", training=True),
        *usual(case, B, shallow),
        case(1, start, ", as it starts", part="starting values", driver=starting_values.__name__),
    ]
