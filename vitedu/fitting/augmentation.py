"""Augmentation of whole batches on the device, every image by its own draw.

Role: random operations on float images, mixing of images and labels, erasing. Not here: which of
them a run takes (``loop``); crops and mirroring (``vitedu.training.random_crop_flip``). Nothing
here waits for the device: shapes never depend on a draw.

A policy gives each image one operation: the batch is shuffled and dealt out in equal parts, one an
operation (the first ones get the odd images), so that every operation runs once a batch on its
share and none on all of it.

Legend: B batch, C H W image, K classes. Generators live on the device of the images.

References: Müller and Hutter 2021, TrivialAugment (arXiv 2103.10158); Zhang et al. 2018, mixup
(arXiv 1710.09412); Yun et al. 2019, CutMix (arXiv 1905.04899); Zhong et al. 2017, random erasing
(arXiv 1708.04896).
"""

import math

import torch
import torch.nn.functional as F


def uniform(
    count: int, generator: torch.Generator, low: float = 0.0, high: float = 1.0
) -> torch.Tensor:
    """Draw ``count`` numbers from [low, high), on the device of the generator."""
    return low + (high - low) * torch.rand(count, generator=generator, device=generator.device)


# --- one operation an image ---------------------------------------------------------------------


def random_policy(
    images: torch.Tensor, share: float, strength: float, generator: torch.Generator
) -> torch.Tensor:
    """Change a share of the images by one random operation each.

    Args:
        images: (B, C, H, W) float, values 0 to 255.
        share: of the images that are changed, in [0, 1]; the number is rounded to whole images.
        strength: in (0, 1]; 1 allows a turn by 30 degrees, a shift by a third of the side, a
            contrast of 0.1 to 1.9. Each image draws its own from nothing up to this.
        generator: the source of all draws.

    Returns:
        (B, C, H, W), values 0 to 255, in the order given.

    Example:
        >>> images = torch.full((8, 3, 16, 16), 128.0)
        >>> random_policy(images, 0.5, 1.0, torch.Generator().manual_seed(0)).shape
        torch.Size([8, 3, 16, 16])
    """
    order = torch.randperm(len(images), generator=generator, device=generator.device)
    order = order[: round(share * len(images))]
    result = images.clone()
    for operation, part in zip(OPERATIONS, order.tensor_split(len(OPERATIONS)), strict=True):
        if len(part):
            amount = uniform(len(part), generator, 0.0, strength)
            amount = amount * ((uniform(len(part), generator) < 0.5) * 2.0 - 1.0)  # either way
            result[part] = operation(images[part], amount.view(-1, 1, 1, 1)).clamp(0, 255)
    return result


def warp(images: torch.Tensor, rows: list[list[torch.Tensor | float]]) -> torch.Tensor:
    """Sample images at ``rows @ (x, y, 1)``, a matrix (2, 3), in half sides; edges repeat."""
    zero = images.new_zeros(len(images))
    values = [zero + value for row in rows for value in row]
    matrix = torch.stack(values, dim=-1).view(-1, 2, 3)
    grid = F.affine_grid(matrix, list(images.shape), align_corners=False)  # (B, H, W, 2)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def turn(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Turn by up to 30 degrees."""
    angle = amount.flatten() * math.pi / 6
    cos, sin = angle.cos(), angle.sin()
    return warp(images, [[cos, -sin, 0], [sin, cos, 0]])


def shear_x(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Slide rows against each other, by up to 0.3 of the height."""
    return warp(images, [[1, amount.flatten() * 0.3, 0], [0, 1, 0]])


def shear_y(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Slide columns against each other, by up to 0.3 of the width."""
    return warp(images, [[1, 0, 0], [amount.flatten() * 0.3, 1, 0]])


def shift_x(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Move sideways by up to a third of the width."""
    return warp(images, [[1, 0, amount.flatten() * 2 / 3], [0, 1, 0]])


def shift_y(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Move up or down by up to a third of the height."""
    return warp(images, [[1, 0, 0], [0, 1, amount.flatten() * 2 / 3]])


def zoom(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Enlarge or shrink by up to a quarter."""
    factor = 1 + amount.flatten() * 0.25
    return warp(images, [[factor, 0, 0], [0, factor, 0]])


def brightness(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Multiply by 0.1 to 1.9."""
    return images * (1 + 0.9 * amount)


def contrast(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Spread values about the image's mean by 0.1 to 1.9."""
    mean = images.mean(dim=(1, 2, 3), keepdim=True)
    return mean + (images - mean) * (1 + 0.9 * amount)


def saturation(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Spread channels about their mean, the grey image, by 0.1 to 1.9."""
    grey = images.mean(dim=1, keepdim=True)
    return grey + (images - grey) * (1 + 0.9 * amount)


def sharpness(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Sharpen, or blur, against the mean of the 3 x 3 neighbours."""
    blurred = F.avg_pool2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    return blurred + (images - blurred) * (1 + 0.9 * amount)


def posterise(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Keep fewer levels of each channel: 256 down to 4."""
    step = 2.0 ** (6 * amount.abs()).round()
    return (images / step).floor() * step


def solarise(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Invert the values above a threshold, which falls from 255 to 0."""
    return torch.where(images > 255 * (1 - amount.abs()), 255 - images, images)


def autocontrast(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Stretch each channel to the whole range, as far as the amount says."""
    low, high = images.amin(dim=(2, 3), keepdim=True), images.amax(dim=(2, 3), keepdim=True)
    stretched = (images - low) * (255 / (high - low).clamp_min(1))
    return images + amount.abs() * (stretched - images)


SHAPE_OPERATIONS = (turn, shear_x, shear_y, shift_x, shift_y, zoom)
COLOUR_OPERATIONS = (brightness, contrast, saturation, sharpness, posterise, solarise, autocontrast)
OPERATIONS = SHAPE_OPERATIONS + COLOUR_OPERATIONS


# --- mixing -------------------------------------------------------------------------------------


def random_mix(
    images: torch.Tensor,
    labels: torch.Tensor,
    num_classes: int,
    *,
    mixup: float,
    cutmix: float,
    generator: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mix some images with a partner from the batch, and their labels in the same proportion.

    Args:
        images: (B, C, H, W) float.
        labels: (B,) integers.
        num_classes: K.
        mixup: share of the images that are blended with their partner.
        cutmix: share of the images that get a rectangle of their partner.
        generator: the source of all draws.

    Returns:
        images (B, C, H, W) and soft labels (B, K); each row sums to 1.

    Example:
        >>> images, labels = torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 1])
        >>> generator = torch.Generator().manual_seed(0)
        >>> options = dict(mixup=0.5, cutmix=0.5, generator=generator)
        >>> random_mix(images, labels, 3, **options)[1].sum(dim=1)
        tensor([1., 1., 1., 1.])
    """
    B, _, H, W = images.shape
    partner = torch.randperm(B, generator=generator, device=generator.device)
    own_share = uniform(B, generator)  # proportion of the image in its own place: Beta(1, 1)
    choice = uniform(B, generator)
    blended, pasted = choice < mixup, (choice >= mixup) & (choice < mixup + cutmix)

    inside = random_boxes(1 - own_share, H, W, generator)  # (B, H, W)
    weight = torch.where(blended, own_share, 1.0)[:, None, None]
    weight = torch.where(pasted[:, None, None] & inside, 0.0, weight)  # of each own pixel
    mixed = images[partner].lerp(images, weight[:, None])
    share = weight.mean(dim=(1, 2))  # the exact area, also where a box was cut by the edge
    own = F.one_hot(labels, num_classes).to(images.dtype)  # (B, K)
    return mixed, own[partner].lerp(own, share[:, None])


def random_boxes(
    area: torch.Tensor, height: int, width: int, generator: torch.Generator
) -> torch.Tensor:
    """Draw a rectangle for each image, (B, H, W), True inside; ``area`` (B,) is before the cut.

    The centre is uniform over the image, whose edges may cut it.
    """
    B, side = len(area), area.sqrt()
    top = uniform(B, generator) * height - side * height / 2
    left = uniform(B, generator) * width - side * width / 2
    rows = torch.arange(height, device=area.device) + 0.5
    columns = torch.arange(width, device=area.device) + 0.5
    in_rows = (rows >= top[:, None]) & (rows < (top + side * height)[:, None])  # (B, H)
    in_columns = (columns >= left[:, None]) & (columns < (left + side * width)[:, None])
    return in_rows[:, :, None] & in_columns[:, None, :]


def random_erasing(images: torch.Tensor, share: float, generator: torch.Generator) -> torch.Tensor:
    """Fill a rectangle, 2 % to 33 % of its image, with noise in a share of the images."""
    B, _, H, W = images.shape
    inside = random_boxes(uniform(B, generator, 0.02, 0.33), H, W, generator)
    hit = (uniform(B, generator) < share)[:, None, None] & inside
    noise = torch.randn(images.shape, generator=generator, device=generator.device)
    return torch.where(hit[:, None], noise, images)
