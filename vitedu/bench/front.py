"""The pictures at the front of README and pages: a photograph gets its name; three tasks."""

from vitedu.bench.experiments import label_counts, measured, three_tasks
from vitedu.data import load_data
from vitedu.fitting.postcard import postcard
from vitedu.inside import uniform_distance
from vitedu.plots.less_data import show_three_tasks
from vitedu.plots.style import CourseFigure
from vitedu.pretrained.loading import load_pretrained


def draw_front() -> CourseFigure:
    """Draw what the course is about, without an answer."""
    code = "logits = model(photograph)  # (1, 3, 32, 32) -> (1, 10)"
    model, data = load_pretrained("vit_pico_patch4_32.cifar10"), load_data(limit=100, held_out=20)
    return postcard(model, data.test.images[1], data, code=code)


def draw_tasks() -> CourseFigure:
    """Draw what three tasks made of one shape, as notebook 07 does."""
    data, looks, colours = load_data(limit=100, held_out=500), {}, {}
    images = data.test.images[[1, 12, 5, 9]]
    for arm in three_tasks.ARMS:
        encoder = label_counts.encoder(arm, seed=0)
        looks[arm], colours[arm] = three_tasks.pictures(encoder, images, data)
    reach, probes = three_tasks.in_panels(measured("three_tasks"))
    return show_three_tasks(images, looks, colours, reach, probes, uniform_distance)
