"""Pictures that no notebook draws yet, on one sheet, so that one look finds what does not fit.

Role: ``PICTURES``, to which a line is added for each new one, and the sheet. They show the shipped
model of photographs, or a fresh one where there is none, and a run of seconds.
"""

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from vitedu.course.pipeline import pipeline_svg
from vitedu.course.references import reference_source
from vitedu.course.sheet import lay_out
from vitedu.data import load_data
from vitedu.data.horizons import horizons
from vitedu.exercises import EXERCISES, find
from vitedu.fitting import TrainConfig
from vitedu.fitting.curves import draw_curves
from vitedu.fitting.panel import TrainingPanel
from vitedu.fitting.postcard import postcard
from vitedu.plots.style import DOTS, DPI, CourseFigure
from vitedu.plots.training import show_horizons
from vitedu.pretrained.loading import load_pretrained
from vitedu.pretrained.reading import SHIPPED, shipped_models
from vitedu.vit import PRESETS, VisionTransformer

NAME = "vit_pico_patch4_32"


@cache
def train() -> TrainingPanel:
    """Train a model for seconds, a photograph of one's own beside it."""
    data, config = load_data(limit=320, held_out=100), TrainConfig(epochs=2, batch_size=32)
    torch.manual_seed(0)
    run = TrainingPanel(VisionTransformer(PRESETS[NAME]), data, config, own="chelsea")
    run.static_page()  # trains to the end
    return run


def draw_curves_and_bars() -> list[CourseFigure]:
    """Draw what that run reached among its horizons, in both forms."""
    run: Any = train()
    reached = {"this run": run.epochs[-1].validation_accuracy, "your guess": 0.45}
    bars = show_horizons(reached, {"guessing": 0.1, **horizons(run.data)})
    return [draw_curves(run.history, 10, run.data.name), bars]


def draw_front() -> CourseFigure:
    """Draw what the course is about, without an answer: a photograph gets its name."""
    shipped, code = f"{NAME}{SHIPPED}", "logits = model(photograph)  # (1, 3, 32, 32) -> (1, 10)"
    model = load_pretrained(shipped) if shipped in shipped_models() else train().model
    data = load_data(limit=100, held_out=20)
    return postcard(model, data.test.images[1], data, code=code)


def draw_cards() -> list[CourseFigure]:
    """Draw the front page's picture with little code, and a validation image with much."""
    code, image = reference_source(find("VisionTransformer")), train().data.validation.images[0]
    return [draw_front(), postcard(train().model, image, train().data, code=code)]


PICTURES: dict[str, Callable[[], list[bytes] | list[CourseFigure]]] = {
    "training panel": lambda: [train().frame(train().moments[k], DOTS) for k in (0, -1)],
    "horizons": draw_curves_and_bars,
    "postcard": draw_cards,
}


def draw_gallery(path: Path) -> int:
    """Draw all pictures onto one sheet, a PNG file, and the pipeline, SVG, beside it.

    Returns:
        How many pictures the sheet holds.
    """
    groups = []
    for name, draw in PICTURES.items():
        files = [x if isinstance(x, bytes) else x.png(DOTS * DPI) for x in draw()]
        groups.append((name, [("", Image.open(io.BytesIO(file)).convert("RGB")) for file in files]))
    parts = [exercise.id for exercise in EXERCISES if exercise.part]
    count = lay_out(groups, path, height=600)
    path.with_name("pipeline.svg").write_text(pipeline_svg(parts[:9]), encoding="utf-8")
    return count
