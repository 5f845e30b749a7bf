"""What do positions give? The run of notebook 01, trained with and without them.

Both are measured on test images as they are and with their patches shuffled, all in one order:
``vitedu bench experiments jigsaw --seeds 0 1 2``. Without positions a model cannot tell the two.
"""

from dataclasses import replace

import torch

from vitedu.bench.experiments import Arms, Profile, Results, Split, images, train_and_measure
from vitedu.extras.transplant import TorchEncoderViT
from vitedu.fitting.evaluating import measure_test_accuracy
from vitedu.fitting.recipes import thread_recipe
from vitedu.patches import add_class_token_and_positions
from vitedu.vit import PRESETS
from vitedu.vit_and_cnn import shuffle_patches

ARMS: Arms = {"with positions": {"positions": 1}, "without positions": {"positions": 0}}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model for one epoch and measure it on both kinds of test images."""
    data, config = images(profile, None, quick=(500, 200)), PRESETS["vit_pico_patch4_32"]
    share = ARMS[arm]["positions"]
    torch.manual_seed(seed)
    model = TorchEncoderViT(
        config, add_tokens=lambda x, cls, pos: add_class_token_and_positions(x, cls, share * pos)
    )
    columns = "validation_accuracy test_accuracy precision seconds"
    results = train_and_measure(model, data, thread_recipe(seed=seed), columns)
    order = torch.randperm(config.num_patches, generator=torch.Generator().manual_seed(seed))
    shuffled = shuffle_patches(data.test.images, config.patch_size, order)
    puzzles = replace(data, test=Split(shuffled, data.test.labels))
    return results | {"shuffled_accuracy": measure_test_accuracy(model, puzzles)}
