"""Images and captions in one space: two losses, and an image network that starts from nothing.

Role: the captions of section 5 of notebook 09, its arms and one run. Not here: the losses
(``vitedu.transfer``).

The images are drawn shapes, and their captions name what was drawn: colour, shape and quarter of
the image. One in six combinations of shape and colour is never shown in training. The image network
starts from the shipped weights, which know the ten shapes and no word; the text network starts from
nothing.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.bench.experiments import Results
from vitedu.data.shapes import SHAPES, draw_shapes
from vitedu.encoder import EncoderBlock
from vitedu.hardware import Profile
from vitedu.options import build_model
from vitedu.pretrained.shown import read_own
from vitedu.transfer import clip_loss, sigmoid_contrastive_loss

ARMS: dict[str, dict[str, Any]] = {
    "CLIP": {"loss": "CLIP"},
    "SigLIP": {"loss": "SigLIP"},
    "CLIP, random image network": {"loss": "CLIP", "from": "random weights"},
}
LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "CLIP": clip_loss,
    "SigLIP": sigmoid_contrastive_loss,
}

COLOURS = ("red", "yellow", "green", "cyan", "blue", "pink")
PLACES = ("top left", "top right", "bottom left", "bottom right")
CAPTIONS = [f"a {c} {s} at the {p}" for s in SHAPES for c in COLOURS for p in PLACES]
VOCABULARY = sorted({word for caption in CAPTIONS for word in caption.split()})
WIDTH = 64  # of the space that images and captions share


def quarter(masks: torch.Tensor) -> torch.Tensor:
    """Which quarter of the image holds the middle of the object (n, H, W): 0 to 3, row by row."""
    places = (torch.arange(masks.shape[-1]) + 0.5) / masks.shape[-1]
    share = masks.float() / masks.sum(dim=(1, 2), keepdim=True)
    row, column = (share.sum(dim=2) * places).sum(dim=1), (share.sum(dim=1) * places).sum(dim=1)
    return 2 * (row > 0.5).long() + (column > 0.5).long()


def described(images: torch.Tensor, labels: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Shape, colour and quarter of each drawing (n, 3, H, W), as numbers (n, 3)."""
    share = masks[:, None] / masks.sum(dim=(1, 2))[:, None, None, None]
    paint = (images * share).sum(dim=(2, 3))  # (n, 3), mean colour of the object
    turn = 2 * math.pi * torch.arange(3) / 3  # red, green and blue stand a third of a circle apart
    hue = torch.atan2((paint * turn.sin()).sum(dim=1), (paint * turn.cos()).sum(dim=1))
    colour = (hue * 6 / (2 * math.pi)).round().long() % 6
    return torch.stack([labels, colour, quarter(masks)], dim=1)


def caption_of(facts: torch.Tensor) -> torch.Tensor:
    """The number of the caption (n,), from shape, colour and quarter (n, 3)."""
    return (facts[:, 0] * 6 + facts[:, 1]) * 4 + facts[:, 2]


def never_shown(facts: torch.Tensor) -> torch.Tensor:
    """Whether a drawing has a combination of shape and colour that is left out of training."""
    return facts[:, 1] == facts[:, 0] % 6


@cache
def drawings(count: int, stream: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw images, labels and masks: stream 0 to learn from, stream 2 to test on."""
    images, labels, masks = map(torch.from_numpy, draw_shapes(count, seed=0, stream=stream))
    return images, labels, masks


@cache
def words() -> torch.Tensor:
    """The captions as numbers of words (240, T)."""
    return torch.tensor([[VOCABULARY.index(word) for word in c.split()] for c in CAPTIONS])


class TextEncoder(nn.Module):
    """Word vectors, positions, one encoder block, and the mean over the words."""

    def __init__(self, width: int = WIDTH):
        super().__init__()
        self.words = nn.Embedding(len(VOCABULARY), width)
        self.places = nn.Parameter(0.02 * torch.randn(1, words().shape[1], width))
        self.block, self.norm = EncoderBlock(width, 4, 2.0), nn.LayerNorm(width)
        self.head = nn.Linear(width, width)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Map words (B, T) to features (B, D)."""
        return self.head(self.norm(self.block(self.words(numbers) + self.places)).mean(dim=1))


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train both networks and ask for the caption of every test image."""
    return score(*train(arm, seed, profile), profile)


def train(
    arm: str,
    seed: int,
    profile: Profile,
    loss_of: Callable[..., torch.Tensor] | None = None,
    batch: int = 64,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Train an image and a text network.

    Args:
        arm: a name of ``ARMS``.
        seed: of weights and batches.
        profile: of the size of the run.
        loss_of: a student's own loss in the place of ours.
        batch: pairs a step.

    Returns:
        Unit features of all test images (n, D) and of all captions (240, D).
    """
    config, weights, known = read_own("stand_in")
    mean, std = (torch.tensor(known[key]).view(-1, 1, 1) for key in ("mean", "std"))
    images, labels, masks = drawings(profile.pick(quick=400, laptop=4_000, gpu=10_000), 0)
    facts = described(images, labels, masks)
    shown = (~never_shown(facts)).nonzero().flatten()
    torch.manual_seed(seed)
    image_net, text_net = build_model(config), TextEncoder()
    if "from" not in ARMS[arm]:
        image_net.load_state_dict(weights)
    image_net.head = nn.Linear(config.embed_dim, WIDTH)
    # both losses learn their scale, as its logarithm; SigLIP learns its bias as well
    scale, bias = nn.Parameter(torch.tensor(math.log(10.0))), nn.Parameter(torch.tensor(-10.0))
    learning = [*image_net.parameters(), *text_net.parameters(), scale, bias]
    optimizer = torch.optim.AdamW(learning, lr=3e-3, weight_decay=0.05)
    steps = profile.pick(quick=10, laptop=300, gpu=1_000)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda k: min(1, (k + 1) / 30) * (1 - k / steps)
    )
    price = loss_of or LOSSES[ARMS[arm]["loss"]]
    for _ in range(steps):
        some = shown[torch.randint(len(shown), (batch,))]
        pictures = image_net((images[some] / 255 - mean) / std)
        texts = text_net(words()[caption_of(facts[some])])
        if ARMS[arm]["loss"] == "CLIP":
            loss = price(pictures, texts, 1 / scale.exp())
        else:
            loss = price(pictures, texts, scale.exp(), bias)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    image_net.eval()
    tested = drawings(profile.pick(quick=200, laptop=1_000, gpu=2_000), 2)[0]
    with torch.no_grad():
        features = torch.cat([image_net((some / 255 - mean) / std) for some in tested.split(250)])
        return F.normalize(features, dim=1), F.normalize(text_net(words()), dim=1)


def score(image_features: torch.Tensor, text_features: torch.Tensor, profile: Profile) -> Results:
    """Ask which caption is nearest to every test image, which parts are right, and which class."""
    facts = described(*drawings(profile.pick(quick=200, laptop=1_000, gpu=2_000), 2))
    nearest = (image_features @ text_features.T).argmax(dim=1)  # (n,), of 240 captions
    hit, unseen = (nearest == caption_of(facts)).double(), never_shown(facts)
    parts = torch.stack([nearest // 24, nearest // 4 % 6, nearest % 4], dim=1) == facts
    by_class = F.normalize(text_features.unflatten(0, (len(SHAPES), 24)).mean(dim=1), dim=1)
    named = (image_features @ by_class.T).argmax(dim=1) == facts[:, 0]
    shares = {"seen": hit[~unseen], "never seen": hit[unseen]}
    shares |= dict(zip(("shape", "colour", "place"), parts.unbind(dim=1), strict=True))
    shares["class from words"] = named
    return {name: round(found.double().mean().item(), 4) for name, found in shares.items()}
