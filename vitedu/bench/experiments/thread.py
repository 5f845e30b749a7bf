"""Which recipe is best for one epoch of all photographs with torch's encoder as a closed box?

The run of notebook 01, which takes about a minute. Validation images choose, over three seeds:
``vitedu bench experiments thread --seeds 0 1 2``. The choice stands in ``fitting.recipes``.
"""

from vitedu.bench.experiments import Arms, training
from vitedu.extras.transplant import TorchEncoderViT
from vitedu.vit import PRESETS

SETTINGS = {"optimizer": "muon", "lr": 4e-3, "batch_size": 64, "weight_decay": 0.1}
SETTINGS |= {"crop_padding": 1, "label_smoothing": 0.0, "warmup_share": 0.1}
CHANGES: Arms = {  # one at a time
    "Muon 4e-3": {},
    "Muon 2e-3": {"lr": 2e-3},
    "Muon 8e-3": {"lr": 8e-3},
    "batches of 128": {"batch_size": 128},
    "batches of 32": {"batch_size": 32},
    "crops of two pixels": {"crop_padding": 2},
    "no crops": {"crop_padding": None},
    "weight decay 0.05": {"weight_decay": 0.05},
    "label smoothing 0.1": {"label_smoothing": 0.1},
    "warm-up of a fifth": {"warmup_share": 0.2},
    "AdamW 2e-3": {"optimizer": "adamw", "lr": 2e-3},
}
ARMS: Arms = {name: SETTINGS | change for name, change in CHANGES.items()}
run = training(
    ARMS,
    lambda arm, seed: TorchEncoderViT(PRESETS["vit_pico_patch4_32"]),
    "train_accuracy validation_accuracy seconds",
    quick=(1_000, 500),
    validation=None,
    epochs=1,
)
