"""The picture at the front of README and pages: a photograph gets its name."""

import torch

from vitedu.data import load_data
from vitedu.fitting.postcard import postcard
from vitedu.plots.style import CourseFigure
from vitedu.pretrained.loading import load_pretrained
from vitedu.pretrained.reading import SHIPPED, shipped_models
from vitedu.vit import PRESETS, VisionTransformer

NAME = "vit_pico_patch4_32"


def draw_front() -> CourseFigure:
    """Draw what the course is about, without an answer, by the shipped model or a fresh one."""
    shipped, code = f"{NAME}{SHIPPED}", "logits = model(photograph)  # (1, 3, 32, 32) -> (1, 10)"
    torch.manual_seed(0)
    is_there = shipped in shipped_models()
    model = load_pretrained(shipped) if is_there else VisionTransformer(PRESETS[NAME])
    data = load_data(limit=100, held_out=20)
    return postcard(model, data.test.images[1], data, code=code)
