"""Images and captions in one space: two losses, and an image network that starts from nothing.

For 09_transfer_more. Captions name the colour, shape and quarter that were drawn. One in six
combinations of shape and colour is never shown in training. The image network starts from the
shipped weights, which know the ten shapes and no word; the text network starts from nothing.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.bench.experiments import Arms, Profile, Results, drawings, look_up
from vitedu.data.shapes import SHAPES
from vitedu.data.targets import CAPTIONS, VOCABULARY, caption_of, facts_of
from vitedu.encoder import EncoderBlock
from vitedu.extras.options import build_model
from vitedu.less_data import descend
from vitedu.pretrained.reading import normalize, read_course_model
from vitedu.transfer import clip_loss, sigmoid_contrastive_loss

DATA = "shapes"  # captions name the colour and the place of an object
ARMS: Arms = {
    "CLIP": {"loss": "CLIP"},
    "SigLIP": {"loss": "SigLIP"},
    "CLIP, random image network": {"loss": "CLIP", "from": "random weights"},
}
LOSSES: dict = {"CLIP": clip_loss, "SigLIP": sigmoid_contrastive_loss}
WORDS = torch.tensor([[VOCABULARY.index(word) for word in c.split()] for c in CAPTIONS])  # (240, T)
Pair = tuple[torch.Tensor, torch.Tensor]
WIDTH = 64  # of the space that images and captions share


def is_held_out(facts: torch.Tensor) -> torch.Tensor:
    """Say whether a combination of shape and colour is left out of training."""
    return facts[:, 1] == facts[:, 0] % 6


class TextEncoder(nn.Module):
    """Word vectors, positions, one encoder block, and the mean over the words."""

    def __init__(self, width: int = WIDTH):
        super().__init__()
        self.words = nn.Embedding(len(VOCABULARY), width)
        self.places = nn.Parameter(0.02 * torch.randn(1, WORDS.shape[1], width))
        self.block, self.norm = EncoderBlock(width, 4, 2.0), nn.LayerNorm(width)
        self.head = nn.Linear(width, width)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Map words (B, T) to features (B, D)."""
        return self.head(self.norm(self.block(self.words(numbers) + self.places)).mean(dim=1))


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train both networks and ask for the caption of every test image."""
    return score(*train(arm, seed, profile), profile)


def train(
    arm: str, seed: int, profile: Profile, loss_of: Callable | None = None, batch: int = 64
) -> Pair:
    """Train an image and a text network, ``batch`` pairs a step; ``loss_of`` may be a student's.

    Returns:
        Unit features of all test images (n, D) and of all captions (240, D).
    """
    settings = look_up(arm, ARMS)
    config, weights, data = read_course_model("shapes_patch4")
    images, *truth = drawings(profile.pick(quick=400, laptop=4_000, gpu=10_000), 0)
    facts = facts_of(images, *truth)
    train_rows = (~is_held_out(facts)).nonzero().flatten()
    torch.manual_seed(seed)
    image_net, text_net = build_model(config), TextEncoder()
    if "from" not in settings:
        image_net.load_state_dict(weights)
    image_net.head = nn.Linear(config.embed_dim, WIDTH)
    # both losses learn their scale, as its logarithm; SigLIP learns its bias as well
    scale, bias = nn.Parameter(torch.tensor(math.log(10.0))), nn.Parameter(torch.tensor(-10.0))
    learning = [*image_net.parameters(), *text_net.parameters(), scale, bias]
    optimizer = torch.optim.AdamW(learning, weight_decay=0.05)
    steps, loss = profile.pick(quick=10, laptop=300, gpu=1_000), settings["loss"]
    for k in range(steps):
        some = train_rows[torch.randint(len(train_rows), (batch,))]
        pairs = image_net(normalize(images[some], data)), text_net(WORDS[caption_of(facts[some])])
        more = (1 / scale.exp(),) if loss == "CLIP" else (scale.exp(), bias)
        price = (loss_of or LOSSES[loss])(*pairs, *more)
        descend(optimizer, price, 3e-3 * (min(1, (k + 1) / 30) * (1 - k / steps)))
    image_net.eval()
    with torch.no_grad():
        new = drawings_for_test(profile)[0].split(250)
        parts = [image_net(normalize(some, data)) for some in new]
        return F.normalize(torch.cat(parts), dim=1), F.normalize(text_net(WORDS), dim=1)


def drawings_for_test(profile: Profile) -> tuple[torch.Tensor, ...]:
    """Give the images, labels and masks to test on."""
    return drawings(profile.pick(quick=200, laptop=1_000, gpu=2_000), 2)


def score(image_features: torch.Tensor, text_features: torch.Tensor, profile: Profile) -> Results:
    """Ask which caption is nearest to every test image, which parts are right, and which class."""
    images, labels, masks = drawings_for_test(profile)
    facts = facts_of(images, labels, masks)
    nearest = (image_features @ text_features.T).argmax(dim=1)  # (n,), of 240 captions
    hit, is_unseen = nearest == caption_of(facts), is_held_out(facts)
    parts = torch.stack([nearest // 24, nearest // 4 % 6, nearest % 4], dim=1) == facts
    by_class = F.normalize(text_features.unflatten(0, (len(SHAPES), 24)).mean(dim=1), dim=1)
    is_class_right = (image_features @ by_class.T).argmax(dim=1) == labels
    shares = {"seen": hit[~is_unseen], "never seen": hit[is_unseen]}
    shares |= dict(zip(("shape", "colour", "place"), parts.unbind(dim=1), strict=True))
    shares["class from words"] = is_class_right
    return {name: round(share.double().mean().item(), 4) for name, share in shares.items()}
