"""69 drawings of three kinds, ten epochs: from random weights, and from weights of photographs.

For 09_transfer. What ``vitedu train --example`` does, with and without ``--pretrained``; the test
images are other drawings, since the nine of such a folder say little.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from vitedu.bench.experiments import Arms, Profile, Results, train_and_measure
from vitedu.data.drawings import draw_folder
from vitedu.data.loading import load_folder
from vitedu.extras.options import build_model, preset
from vitedu.fitting.recipes import FINE_TUNING
from vitedu.fitting.saved_run import load_start, match

DATA = "drawings"
ARMS: Arms = {
    "random weights": {"pretrained": None},
    "weights of photographs": {"pretrained": "vit_tiny_patch4_32.cifar10"},
}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model on 69 drawings of a seed, as a folder is cut, and test it on others."""
    with TemporaryDirectory() as place:
        folders = [
            draw_folder(Path(place, name), count, number)
            for name, count, number in (("drawings", 23, seed), ("others", 100, 1000 + seed))
        ]
        data, others = (load_folder(folder, 0, 32, (None, None, None)) for folder in folders)
    data = replace(data, test=others.train)
    torch.manual_seed(seed)
    if name := ARMS[arm]["pretrained"]:
        model, known = load_start(name)
        data = match(data, model, known)
    else:
        model = build_model(preset("vit_tiny_patch4_32", num_classes=3))
    columns = "parameters train_images train_accuracy test_accuracy seconds cpu_seconds precision"
    return train_and_measure(model, data, replace(FINE_TUNING, seed=seed), columns)
