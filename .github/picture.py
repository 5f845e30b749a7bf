"""Draw the pictures of the README: ``python .github/picture.py``."""

import sys
from pathlib import Path

from vitedu.bench.experiments import label_counts, measured, three_tasks
from vitedu.bench.front import draw_front
from vitedu.data import load_data
from vitedu.inside import uniform_distance
from vitedu.plots.less_data import show_three_tasks

path = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("picture.png")
path.write_bytes(draw_front().png(110))  # dots an inch: 880 pixels wide, light enough for a page

# what three tasks made of one shape, as notebook 07 draws it
data, looks, colours = load_data(limit=100, held_out=500), {}, {}
images = data.test.images[[1, 12, 5, 9]]
for arm in three_tasks.ARMS:
    encoder = label_counts.encoder(arm, seed=0)
    looks[arm], colours[arm] = three_tasks.pictures(encoder, images, data)
reach, probes = three_tasks.in_panels(measured("three_tasks"))
tasks = show_three_tasks(images, looks, colours, reach, probes, uniform_distance)
path.with_name("tasks.png").write_bytes(tasks.png(110))
