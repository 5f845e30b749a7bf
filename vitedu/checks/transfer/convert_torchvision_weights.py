"""9.4 convert_torchvision_weights: other names for the same weights."""

import torch
from torch import Generator

from vitedu.checks.transfer.convert_torchvision_weights_driver import renaming
from vitedu.checks.writing.kit import Case, distinct, normal, plural


def cases(g: Generator) -> list[Case]:
    """Draw the weights of small models with torchvision's names; no two sizes are the same."""

    def case(depth, part="values", dtype=torch.float32, note=""):
        from torchvision.models import VisionTransformer

        D, P, K = distinct(g, 3, 6, 12)
        with torch.device("meta"):  # no memory: the shapes alone are used
            model = VisionTransformer(2 * P, P, depth, 1, D, 4 * D, num_classes=K)
        shapes = {name: x.shape for name, x in model.state_dict().items()}
        tensors = {name: normal(g, *shape, dtype=dtype) for name, shape in shapes.items()}
        name = f"a state_dict of {plural(depth, 'block')}, {len(tensors)} tensors{note}"
        return Case(name, {"state_dict": tensors}, part, driver=renaming.__name__)

    return [
        case(3),
        case(1, "other sizes"),
        case(25, "other sizes", note=", one more than vit_l_16"),
        case(2, "dtype", torch.float64, ", float64"),
    ]
