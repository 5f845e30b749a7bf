"""Notebook 06: how a Vision Transformer differs from a convolutional network, measured.

Role: the measurements of the notebook, a small CNN to set beside a small ViT, ``recommend``, which
turns what is known about a task into a choice, disturbances of images, and a task in which two
distant places have to be compared. Not here: training (``vitedu.fitting``), the experiments that
need seeds (``vitedu.bench.experiments``), figures (``vitedu.plots.vit_and_cnn``).

Legend: B batch, C H W image, gh gw grid of cells, P patch_size, K classes, n images, p q features.

References: Luo et al. 2016, effective receptive fields (arXiv 1701.04128); Kornblith et al. 2019,
CKA (arXiv 1905.00414); Naseer et al. 2021, shuffled patches (arXiv 2105.10497).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.encoder import EncoderBlock
from vitedu.patches import patchify, unpatchify

# 3 x 3 convolutions of stride 1 until one cell may see 224 pixels across
layers_to_see_all = 112

# how often one weight works for one image of 224 px: ResNet-50's first convolution (stride 2, so
# 112 x 112 places), and a weight of an MLP of ViT-B/16 (197 tokens)
weight_uses = (112 * 112, 14 * 14 + 1)

# how many of the 32 patch tokens of two images follow a shift in a ViT without positions: by a
# whole patch they move along, by one pixel none stays as it was
token_shifts = (32, 0)


def receptive_field(kernel_sizes: Sequence[int], strides: Sequence[int]) -> int:
    """Compute how many input pixels, in one direction, one cell of the last layer may depend on.

    It says how deep a convolutional network must be before two distant pixels can meet.

    Args:
        kernel_sizes: of each convolution, first layer first.
        strides: of each convolution, in the same order.

    Returns:
        The side of the square of pixels, padding aside.

    Example:
        >>> receptive_field([3, 3], [1, 1]), receptive_field([3, 3], [2, 1])
        (5, 7)
        >>> receptive_field([3, 3, 3], [2, 2, 1])
        15

    Reference: Araujo et al. 2019, "Computing Receptive Fields of Convolutional Neural Networks".
    """
    size, step = 1, 1
    for kernel_size, stride in zip(kernel_sizes, strides, strict=True):
        size += (kernel_size - 1) * step  # every further tap reaches one step of this layer's input
        step *= stride  # neighbours of the next layer are so many pixels apart
    return size


def effective_receptive_field(
    feature_map: Callable[[torch.Tensor], torch.Tensor], images: torch.Tensor
) -> torch.Tensor:
    """Measure how strongly each pixel moves the cell in the middle of a feature map.

    The receptive field says what a cell *may* depend on. The gradient says what it does depend on.

    Args:
        feature_map: gives (B, C, gh, gw) for the images, gh and gw odd.
        images: (B, C, H, W).

    Returns:
        (H, W): absolute gradient of the sum over channels of the central cell, summed over the
        images' channels, averaged over the batch, divided by its maximum.

    Example:
        >>> effective_receptive_field(nn.AvgPool2d(2), torch.zeros(1, 1, 6, 6)).shape
        torch.Size([6, 6])

    Reference: Luo et al. 2016, section 3 (arXiv 1701.04128).
    """
    with torch.enable_grad():
        images = images.detach().clone().requires_grad_()
        features = feature_map(images)  # (B, C, gh, gw)
        gh, gw = features.shape[-2:]
        centre = features[:, :, gh // 2, gw // 2].sum()
    (gradient,) = torch.autograd.grad(centre, images)  # (B, C, H, W)
    size = gradient.abs().sum(dim=1).mean(dim=0)  # (B, C, H, W) -> (H, W)
    return size / size.max()


@torch.no_grad()
def shift_consistency(model: nn.Module, images: torch.Tensor, shift: tuple[int, int]) -> float:
    """Measure how many predictions survive a shift of the image.

    Args:
        model: gives logits (B, K). It is measured in eval mode and gets its old mode back.
        images: (B, C, H, W).
        shift: (dy, dx), pixels down and to the right; what leaves the image comes in on the other
            side.

    Returns:
        The share of images whose most likely class stays the same, in [0, 1].

    Example:
        >>> images = torch.eye(4).reshape(4, 1, 1, 4)  # one bright pixel each
        >>> model = nn.Flatten()  # answers with its column
        >>> shift_consistency(model, images, (1, 0)), shift_consistency(model, images, (0, 1))
        (1.0, 0.0)

    Reference: Zhang 2019, "Making Convolutional Networks Shift-Invariant Again" (arXiv 1904.11486).
    """
    modes = {module: module.training for module in model.modules()}
    model.eval()
    shifted = images.roll(shift, dims=(-2, -1))
    same = model(images).argmax(dim=-1) == model(shifted).argmax(dim=-1)  # (B,)
    for module, training in modes.items():
        module.training = training
    return same.float().mean().item()


def shuffle_patches(
    images: torch.Tensor, patch_size: int, permutation: torch.Tensor
) -> torch.Tensor:
    """Put the patches of every image in another order.

    What a model still recognises afterwards, it recognised without the arrangement of the patches.

    Args:
        images: (B, C, H, W).
        patch_size: P.
        permutation: (N,); patch i of the result is patch ``permutation[i]`` of the image.

    Returns:
        (B, C, H, W), the same permutation for the whole batch.

    Example:
        >>> image = torch.arange(4.0).reshape(1, 1, 2, 2)
        >>> shuffle_patches(image, 1, torch.tensor([1, 2, 3, 0])).flatten().tolist()
        [1.0, 2.0, 3.0, 0.0]

    Reference: Naseer et al. 2021, section 3.3 (arXiv 2105.10497).
    """
    patches = patchify(images, patch_size)  # (B, N, C*P*P)
    return unpatchify(patches[:, permutation], patch_size, images.shape[-2:])


def linear_cka(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compare what two layers say about the same images, however many features each has.

    Args:
        x: (n, p), features of n images from one layer.
        y: (n, q), features of the same images from another layer.

    Returns:
        A 0-d tensor in [0, 1]: the squared Frobenius norm of ``y.T @ x`` over the product of the
        norms of ``x.T @ x`` and ``y.T @ y``, columns centred first. It is 1 where one is a rotation
        of the other.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 5.0]])
        >>> round(linear_cka(x, 3 * x + 1).item(), 4)
        1.0

    Reference: Kornblith et al. 2019, section 3 (arXiv 1905.00414).
    """
    x = x - x.mean(dim=0)
    y = y - y.mean(dim=0)
    shared = (y.T @ x).square().sum()  # (q, p) -> ()
    return shared / ((x.T @ x).norm() * (y.T @ y).norm())


# --- a network to compare with ------------------------------------------------------------------


class SmallCNN(nn.Module):
    """A small plain convolutional network with batch norm.

    Four 3 x 3 convolutions: the first three halve the resolution, the second and third double the
    width. Then come the mean over all places and a linear head.

    Args:
        width: channels of the first stage.

    Reference: Simonyan and Zisserman 2014 (arXiv 1409.1556); Ioffe and Szegedy 2015 (arXiv
    1502.03167).
    """

    def __init__(self, width: int = 32):
        super().__init__()
        channels = [3, width, 2 * width, 4 * width, 4 * width]
        steps = zip(itertools.pairwise(channels), (2, 2, 2, 1), strict=True)
        self.stages = nn.ModuleList(
            nn.Sequential(*conv_and_norm(before, after, 3, stride), nn.ReLU())
            for (before, after), stride in steps
        )
        self.head = nn.Linear(channels[-1], 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = images
        for stage in self.stages:
            x = stage(x)  # (B, width, H, W) -> (B, 2 * width, H / 2, W / 2)
        return self.head(x.mean(dim=(-2, -1)))


class ResNet(nn.Module):
    """The residual network of 18 layers for images of 32 px, narrow: 2.8 M parameters.

    A 3 x 3 convolution, then four stages of two blocks, each of two convolutions with a road around
    them. Every stage after the first halves the resolution and doubles the width.

    Args:
        width: channels of the first stage; the paper's has 64.

    Reference: He et al. 2015, section 3 (arXiv 1512.03385). Departure: no pooling in front.
    """

    def __init__(self, width: int = 32):
        super().__init__()
        self.stem = conv_and_norm(3, width, 3)
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.blocks = nn.Sequential()
        for stage, (before, after) in enumerate(itertools.pairwise(widths)):
            self.blocks.append(ResidualBlock(before, after, stride=2 if stage else 1))
            self.blocks.append(ResidualBlock(after, after))
        self.head = nn.Linear(widths[-1], 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = self.blocks(F.relu(self.stem(images)))
        return self.head(x.mean(dim=(-2, -1)))


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions, and a road around them: 1 x 1 where the shape changes."""

    def __init__(self, before: int, after: int, stride: int = 1):
        super().__init__()
        self.conv1 = conv_and_norm(before, after, 3, stride)
        self.conv2 = conv_and_norm(after, after, 3)
        is_same = before == after and stride == 1
        self.shortcut = nn.Identity() if is_same else conv_and_norm(before, after, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (B, before, H, W) to (B, after, H / stride, W / stride)."""
        return F.relu(self.shortcut(x) + self.conv2(F.relu(self.conv1(x))))


def conv_and_norm(before: int, after: int, size: int, stride: int = 1) -> nn.Sequential:
    """Make a convolution without bias, and a batch norm."""
    conv = nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(after))


# --- which should I use? ------------------------------------------------------------------------


@dataclass(frozen=True)
class Recommendation:
    """A choice with its reason."""

    network: str  # "CNN", "ViT" or "hybrid"
    reason: str
    source: str  # where the reason was read or measured
    is_folklore: bool = False  # said often, and measured neither here nor in the source

    def __str__(self) -> str:
        kind = "Folklore, so measure it" if self.is_folklore else "Source"
        return f"{self.network}: {self.reason} {kind}: {self.source}."


def recommend(
    *,
    train_images: int,
    is_pretrained: bool = False,
    image_size: int = 224,
    gmacs: float | None = None,
    relates_distant_places: bool = False,
) -> Recommendation:
    """Turn what is known about a task into CNN, ViT or hybrid.

    The rules are tried from the first to the last, and the first that fits decides. Each says where
    it comes from. They start a decision and do not replace a measurement on the task itself.

    Args:
        train_images: how many labelled images there are.
        is_pretrained: whether published weights may be used.
        image_size: pixels a side.
        gmacs: multiply-accumulates that one image may cost, in 10**9; None if that does not matter.
        relates_distant_places: whether an answer for one place depends on other places far away.

    Returns:
        The choice with its reason and its source.

    Raises:
        ValueError: a number of images, a size or a cost that is not positive.

    Example:
        >>> recommend(train_images=2_000).network, recommend(train_images=50_000).network
        ('CNN', 'hybrid')
        >>> recommend(train_images=2_000, image_size=1024).network
        'hybrid'
    """
    for name, value in {
        "train_images": train_images,
        "image_size": image_size,
        "gmacs": gmacs,
    }.items():
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive (got {name}={value}).")
    if gmacs is not None and gmacs < 1:
        return Recommendation(
            "CNN",
            "MobileNetV3-L reaches 75.8 % on ImageNet with 0.23 GMAC; ViT-Ti/16 needs 1.26 GMAC "
            "for 75.5 %, with ImageNet-21k.",
            "timm's table of results, both at 224 px",
        )
    if relates_distant_places and not is_pretrained:
        return Recommendation(
            "ViT",
            "one layer of attention joins any two places; a convolution fails beyond its receptive "
            "field.",
            "the cue-matching task of notebook 06",
        )
    if image_size > 448:
        return Recommendation(
            "hybrid",
            "attention between all tokens grows with the square of their number; windows or early "
            "convolutions keep the cost in proportion to the pixels.",
            "Liu et al. 2021, Swin (arXiv 2103.14030), section 3.2",
        )
    if is_pretrained:
        return Recommendation(
            "ViT",
            "most of the large published weights are ViTs; at equal data a modern CNN is as good "
            "(from ImageNet-1k, 83.8 % each: ConvNeXt-B and DeiT-III-B).",
            "timm's table of results, both at 224 px; that ViT features transfer better is not in "
            "it",
            is_folklore=True,
        )
    if train_images < 5_000:
        return Recommendation(
            "CNN",
            "with 200 photographs a small CNN is right on 34 % of others, and a small ViT of equal "
            "size, which knows its own 200 just as well, on 26 %.",
            "section 5 of notebook 06, mean of two seeds",
        )
    if train_images < 100_000:
        return Recommendation(
            "hybrid",
            "on the 50,000 images of CIFAR-10 a convolutional stem gained 1.0 point for a fifth "
            "more products (CCT-6/3x2 93.56 %, CVT-6/4 92.58 %, 200 epochs).",
            "the README of SHI-Labs/Compact-Transformers",
        )
    if train_images < 10_000_000:
        return Recommendation(
            "CNN",
            "at this size the recipe decides (ImageNet-1k: ConvNeXt-B 83.8 %, DeiT-III-B 83.8 %), "
            "and a CNN needs less of a recipe.",
            "the accuracies: timm's table of results; that a CNN needs less tuning is hearsay",
            is_folklore=True,
        )
    return Recommendation(
        "ViT",
        "with ImageNet-21k and larger sets the plain ViT overtakes the ResNets it was compared "
        "with.",
        "Dosovitskiy et al. 2020 (arXiv 2010.11929), figure 3",
    )


# --- disturbances of images (B, C, 32, 32), the same draws in every call --------------------------


def seeded_generator(what: str) -> torch.Generator:
    """Give the same draws for every network."""
    return torch.Generator().manual_seed(sum(what.encode()))


def occlude(images: torch.Tensor, cells: int, *, mean_colour: bool = False) -> torch.Tensor:
    """Cover so many of the 16 squares of each image, drawn for it, black or in its mean colour."""
    order = torch.rand(len(images), 16, generator=seeded_generator("occlude")).argsort(dim=1)
    hidden = (order < cells).reshape(-1, 1, 4, 4).repeat_interleave(8, 2).repeat_interleave(8, 3)
    fill = images.float().mean(dim=(-2, -1), keepdim=True).round().byte() if mean_colour else 0
    return torch.where(hidden, fill, images)


def add_noise(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Add normal noise of this standard deviation, on a scale of 0 to 1."""
    noise = torch.randn(images.shape, generator=seeded_generator("noise"))
    return (images.float() + 255 * strength * noise).clamp(0, 255).round().byte()


def blur(images: torch.Tensor) -> torch.Tensor:
    """Replace every pixel by the mean of the 3 x 3 pixels around it."""
    padded = F.pad(images.float(), (1, 1, 1, 1), mode="replicate")
    return F.avg_pool2d(padded, 3, stride=1).round().byte()


# --- a task: is the glyph of a cell that of the cell in the top left corner, the cue? -------------
#
# An image is a grid of 8 x 8 cells, each with one of four glyphs of 4 x 4 pixels and some noise.
# Glyphs are drawn independently, so that no neighbour gives the cue away. A quarter of the cells
# say yes, so accuracies are balanced: the mean of the share of right answers among cells that
# should say yes, and among those that should say no. Guessing gives 50 %. T = 64 cells.

GRID, CELL, WIDTH, HEADS = 8, 4, 64, 4
NOISE = 0.2
# four patterns of 0 and 1, the same in every run
GLYPHS = torch.rand(4, CELL, CELL, generator=torch.Generator().manual_seed(3)).round()
ROWS = torch.arange(GRID)
# (T,), of each cell from the cue at row 0, column 0; a diagonal step counts as one
CUE_DISTANCE = torch.maximum(ROWS[:, None], ROWS).flatten()


def draw_grids(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw images (count, 1, 32, 32) and answers (count, 64): 1.0 where the cue's glyph is."""
    kinds = torch.randint(4, (count, GRID**2), generator=generator)
    cells = GLYPHS[kinds]  # (B, T, 4, 4)
    cells = cells + NOISE * torch.randn(cells.shape, generator=generator)
    # (B, 16, T) -> (B, 1, 32, 32)
    images = F.fold(cells.flatten(2).mT, GRID * CELL, CELL, stride=CELL)
    return images, (kinds == kinds[:, :1]).float()


class CellNetwork(nn.Module):
    """Cells as tokens, then layers of attention or convolutions, then one answer for every cell."""

    def __init__(self, attention: int, convolutions: int):
        super().__init__()
        self.embed = nn.Conv2d(1, WIDTH, CELL, stride=CELL)
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, GRID**2, WIDTH))
        self.blocks = nn.Sequential(*[EncoderBlock(WIDTH, HEADS) for _ in range(attention)])
        layers = [nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in range(convolutions)]
        self.convolutions = nn.ModuleList(layers)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, 1, 32, 32) to logits (B, 64)."""
        x = self.embed(images)  # (B, D, 8, 8)
        x = x + self.pos_embed.mT.unflatten(-1, (GRID, GRID))
        for layer in self.convolutions:
            x = x + F.relu(layer(x))
        x = self.blocks(x.flatten(2).mT)  # (B, D, 8, 8) -> (B, T, D)
        return self.head(self.norm(x)).squeeze(-1)


def accuracy_by_distance(logits: torch.Tensor, answers: torch.Tensor) -> list[float]:
    """Give the balanced accuracy at distance 1 .. 7 from the cue."""
    shares = []
    for d in range(1, GRID):
        said, same = (x[:, CUE_DISTANCE == d] > limit for x, limit in ((logits, 0), (answers, 0.5)))
        yes, no = said[same].float().mean(), (~said[~same]).float().mean()
        shares.append((yes + no).item() / 2)
    return shares
