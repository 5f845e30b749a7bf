"""The picture at the front of README and pages: a photograph gets its name."""

from vitedu.data import load_data
from vitedu.fitting.postcard import postcard
from vitedu.plots.style import CourseFigure
from vitedu.pretrained.loading import load_pretrained


def draw_front() -> CourseFigure:
    """Draw what the course is about, without an answer."""
    code = "logits = model(photograph)  # (1, 3, 32, 32) -> (1, 10)"
    model, data = load_pretrained("vit_pico_patch4_32.cifar10"), load_data(limit=100, held_out=20)
    return postcard(model, data.test.images[1], data, code=code)
