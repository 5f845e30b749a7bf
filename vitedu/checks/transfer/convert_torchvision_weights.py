"""9.4 convert_torchvision_weights: other names for the same weights."""

import torch
from torch import Generator, nn

from vitedu.checks.transfer.convert_torchvision_weights_driver import StateDict, renaming
from vitedu.checks.writing.kit import Case, Checker, distinct, normal, plural


def cases(g: Generator) -> list[Case]:
    """Draw the weights of small models with torchvision's names; no two sizes are the same."""

    def case(depth, part="values", dtype=torch.float32, note=""):
        D, P, C, K, T = distinct(g, 5, 2, 9)
        H = 4 * D
        shapes = {
            "class_token": (1, 1, D),
            "conv_proj.weight": (D, C, P, P),
            "conv_proj.bias": (D,),
            "encoder.pos_embedding": (1, T, D),
        }
        with torch.device("meta"):  # no memory: the shapes alone are used
            parts = {
                "ln_1": nn.LayerNorm(D),
                "self_attention": nn.MultiheadAttention(D, 1),
                "ln_2": nn.LayerNorm(D),
                "mlp": nn.Sequential(nn.Linear(D, H), nn.GELU(), nn.Dropout(), nn.Linear(H, D)),
            }
        block = nn.ModuleDict(parts).state_dict()
        for i in range(depth):
            shapes |= {f"encoder.layers.encoder_layer_{i}.{n}": x.shape for n, x in block.items()}
        shapes |= {
            "encoder.ln.weight": (D,),
            "encoder.ln.bias": (D,),
            "heads.head.weight": (K, D),
            "heads.head.bias": (K,),
        }
        tensors = {name: normal(g, *shape, dtype=dtype) for name, shape in shapes.items()}
        name = f"a state_dict of {plural(depth, 'block')}, {len(tensors)} tensors{note}"
        return Case(name, {"state_dict": StateDict(**tensors)}, part, driver=renaming.__name__)

    return [
        case(3),
        case(1, "other sizes"),
        case(25, "other sizes", note=", one more than vit_l_16"),
        case(2, "dtype", torch.float64, ", float64"),
    ]


CHECKER = Checker()
