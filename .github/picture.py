"""Draw the pictures of the README: ``python .github/picture.py``."""

import sys
from pathlib import Path

from vitedu.bench.front import draw_front, draw_tasks

path = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("picture.png")
path.write_bytes(draw_front().png(110))  # dots an inch: 880 pixels wide, light enough for a page
path.with_name("tasks.png").write_bytes(draw_tasks().png(110))
