"""What made the difference? From the textbook ViT, one change at a time.

The end of notebook 04. Every arm changes one thing of the arm that it starts from. These are
choices, so validation images decide. A change for the worse stays in the list.
"""

from vitedu.bench.experiments import Arms, Settings, settings_of, training
from vitedu.extras.options import build_model, preset

PRESET = "vit_pico_patch4_32"
TEXTBOOK = "textbook: class token, AdamW 1e-3"
BEST = "Muon at 4e-3"  # where the trials start

# arm -> the one that it starts from, and what it changes there
CHANGES: dict[str, tuple[str | None, Settings]] = {
    TEXTBOOK: (None, {}),
    "mean of the patches, no class token": (TEXTBOOK, {"pool": "mean"}),
    "rotary positions": ("mean of the patches, no class token", {"rope": True}),
    "label smoothing 0.1": ("rotary positions", {"label_smoothing": 0.1}),
    "AdamW at 3e-3": ("label smoothing 0.1", {"lr": 3e-3}),
    "Muon at 3e-3": ("AdamW at 3e-3", {"optimizer": "muon"}),
    BEST: ("Muon at 3e-3", {"lr": 4e-3}),
    "QK-norm": (BEST, {"qk_norm": True}),
    "random operation on half the images": (BEST, {"policy_share": 0.5}),
    "CutMix on half the images": (BEST, {"cutmix_share": 0.5}),
    "batch 256 instead of 128": (BEST, {"batch_size": 256}),
    "batch 64 instead of 128": (BEST, {"batch_size": 64}),
    "average of the weights, 0.998": (BEST, {"ema_decay": 0.998}),
    "no crops, no mirroring": (BEST, {"crop_padding": None}),
    "learned positions alone": (BEST, {"rope": False}),
    "class token again": (BEST, {"pool": "cls"}),
}
ARMS: Arms = {}
for name, (start, changes) in CHANGES.items():
    ARMS[name] = (ARMS[start] if start else {}) | changes


run = training(
    ARMS,
    lambda arm, seed: build_model(preset(PRESET, fused=True, **settings_of(arm, ARMS)[0])),
    "train_images train_loss validation_loss validation_accuracy seconds device precision",
    quick=(1_000, 1_000),
    validation=None,
    epochs=3,
)
