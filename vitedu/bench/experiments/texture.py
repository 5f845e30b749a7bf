"""Shape or texture: what does a network go by when the two disagree?

"Shape or texture?" of notebook 06; networks and recipes of ``data_hunger``. Four shapes are filled
with four textures. In training, both say the same. In the test they disagree, and the answer shows
which was used. The contrast of the texture is swept: it makes that cue easy or hard.
"""

from typing import Any

import torch

from vitedu.bench.experiments import Arms, Profile, Results, cut, train_and_measure
from vitedu.bench.experiments.data_hunger import NETWORKS, build, settings
from vitedu.data.textures import KINDS, cue_conflict, textured_shapes
from vitedu.fitting.loop import predict

DATA = "textures"  # of ``textured_shapes``
CONTRASTS = (0.05, 0.1, 0.2, 0.4)
ARMS: Arms = {
    f"{network}, contrast {contrast:g}": {"network": network, "contrast": contrast}
    for contrast in CONTRASTS
    for network in NETWORKS
}


def learn(network: str, contrast: float, seed: int, profile: Profile) -> Results:
    """Train one network; give its test accuracy where both agree, and where they disagree how many
    answers follow either cue and the share of these that follows the shape.
    """
    data = textured_shapes(contrast, cut(2_000, profile, 100))
    model: Any = build(network, seed)
    model.head = torch.nn.Linear(model.head.in_features, len(KINDS))
    config = settings(network, steps=cut(250, profile, 6), images=len(data.train), seed=seed)
    results = train_and_measure(model, data, config, "test_accuracy cpu_seconds")
    images, shape, texture = cue_conflict(data, contrast)
    answers = predict(model, images, data).argmax(dim=1)
    by_shape = (answers == shape).sum().item()
    either = by_shape + (answers == texture).sum().item()
    results |= {"shape_share": by_shape / max(1, either), "answered_either": either / len(answers)}
    return {name: round(value, 4) for name, value in results.items()}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network at one contrast."""
    return learn(**ARMS[arm], seed=seed, profile=profile)
