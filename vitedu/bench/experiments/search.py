"""Which width, depth, heads and patch size, at equal cost? A small search, and other seeds of it.

"A small search" in 08_efficient_more; recipe of ``data_hunger``, one epoch. All need
about 2.4 million multiply-accumulates an image. A search trains each once and chooses by validation
accuracy. All seeds of all candidates show what such a choice is worth.
"""

from torch import nn

from vitedu.bench.experiments import Arms, Profile, Results, training
from vitedu.bench.experiments.data_hunger import COMMON, RECIPES, build
from vitedu.efficient import macs

ARMS: Arms = {
    "width 64, depth 4, 4 heads": {},
    "the same with 1 head": {"num_heads": 1},
    "the same with 8 heads": {"num_heads": 8},
    "the same with drop-path 0.1": {"drop_path_rate": 0.1},
    "wide: width 88, depth 2": {"embed_dim": 88, "depth": 2},
    "deep: width 44, depth 8": {"embed_dim": 44, "depth": 8},
    "patches of 16 px, width 128": {"patch_size": 16, "embed_dim": 128},
    "patches of 4 px, width 32, depth 3": {"patch_size": 4, "embed_dim": 32, "depth": 3},
}
COLUMNS = "parameters train_accuracy validation_accuracy test_accuracy cpu_seconds precision"


def build_arm(arm: str, seed: int) -> nn.Module:
    """Make the untrained model of an arm."""
    return build("ViT", seed, fused=True, **ARMS[arm])


train = training(ARMS, build_arm, COLUMNS, epochs=1, **COMMON, **RECIPES["ViT"])


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model; give its accuracy on validation images, to choose by, and on test images."""
    return train(arm, seed, profile) | {"mega_macs": round(macs(build_arm(arm, seed)), 3)}
