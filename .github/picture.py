"""Draw the picture of the README: ``python .github/picture.py``."""

import sys
from pathlib import Path

from vitedu.data import load_data
from vitedu.fitting.postcard import postcard
from vitedu.pretrained.loading import load_pretrained

MODEL, PHOTOGRAPH = "vit_pico_patch4_32.cifar10", 1  # the second test image
CODE = "logits = model(photograph)  # (1, 3, 32, 32) -> (1, 10)"
path = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("picture.png")
data = load_data("cifar10", limit=100, held_out=20)
card = postcard(load_pretrained(MODEL), data.test.images[PHOTOGRAPH], data, code=CODE)
path.write_bytes(card.png(110))  # dots an inch: 880 pixels wide, light enough for a page
