"""Images to learn from: the photographs of CIFAR-10, drawn shapes, or a folder of one's own.

Role: all sources behind one function, cut into training, validation and test images. Not here: the
file of photographs (``cifar10``), how shapes are drawn (``shapes``), how files of a folder are
found and decoded (``image_folder``), augmentation (``training``).

Images stay uint8, all in memory. Choices are made on the validation images; the test images are for
one last look, and no image stands in two splits.

Legend: N images, C H W image, K classes.
"""

from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import numpy as np
import torch

from vitedu.data import cifar10
from vitedu.data.image_folder import find_images, read_images
from vitedu.data.shapes import SHAPES, draw_shapes
from vitedu.ground.files import cache_folder

SPLITS = ("train", "validation", "test")
SHAPES_SIZES = (10_000, 1_000, 2_000)
VALIDATION_SHARE = 0.10  # of the images that are not for testing
TEST_SHARE = 0.15  # of a folder that brings no test images of its own
CHOICES = (
    "'cifar10', 'cifar10-original', 'shapes', or the path of a folder of class folders of images"
)
Limits = tuple[int | None, int | None, int | None]  # images of each split; None: all


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """The images of one purpose, mixed: every beginning holds the classes in their shares."""

    images: torch.Tensor  # (N, C, H, W) uint8
    labels: torch.Tensor  # (N,) int64, indices into the class names
    masks: torch.Tensor | None = None  # (N, H, W) bool, true on the object; drawn shapes only

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        masks = " with masks" if self.masks is not None else ""
        return f"Split({len(self):,} images{masks})"


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """A data set in three splits, and what is needed to normalise its images."""

    name: str
    class_names: tuple[str, ...]
    train: Split
    validation: Split
    test: Split
    mean: torch.Tensor  # (C,) of all training pixels (CIFAR-10: whatever the limit), from 0 to 1
    std: torch.Tensor  # (C,) of the same pixels, over all images at once

    @property
    def num_classes(self) -> int:
        """K, the classes."""
        return len(self.class_names)

    @property
    def in_channels(self) -> int:
        """C, the colour channels."""
        return self.train.images.shape[1]

    @property
    def image_size(self) -> int:
        """H = W, pixels."""
        return self.train.images.shape[2]

    def normalize(self, images: torch.Tensor) -> torch.Tensor:
        """Map uint8 images (..., C, H, W) to floats: of all training pixels mean 0 and std 1."""
        mean, std = self._statistics(images)
        return (images.float() / 255 - mean) / std

    def denormalize(self, images: torch.Tensor) -> torch.Tensor:
        """Map normalised images (..., C, H, W) back to colours in [0, 1], to look at."""
        mean, std = self._statistics(images)
        return (images * std + mean).clamp(0, 1)

    def _statistics(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, std = (x.to(images.device).view(-1, 1, 1) for x in (self.mean, self.std))
        return mean, std

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(getattr(self, s)):,} {s}" for s in SPLITS)
        return (
            f"Data({self.name!r}: {self.num_classes} classes, images of {self.in_channels} x "
            f"{self.image_size} x {self.image_size}: {sizes})"
        )


def load_data(
    source: str | Path = "cifar10",
    *,
    seed: int = 0,
    image_size: int | None = None,
    limit: int | None = None,
    held_out: int | None = None,
) -> Data:
    """Load a data set by name, or from a folder of images.

    Args:
        source: ``"cifar10"``: 60,000 photographs that come with the package, as JPEG; which of them
            are for validation is fixed. ``"cifar10-original"``: the same as their authors publish
            them, downloaded once into ``cache_folder()``. ``"shapes"``: ten classes drawn from the
            seed, with masks.
            Else the path of a folder: ``folder/<class>/*.jpg``, split here, or
            ``folder/train/<class>/*.jpg`` and ``folder/test/...``, ``folder/validation/...`` (or
            ``val``) if there is one. Images of any size are resized and cropped to squares.
        seed: draws the shapes; orders the images of each split, and so chooses those of ``limit``;
            splits what comes without a split.
        image_size: H = W in pixels. By default 32.
        limit: the number of training images for quick work; validation and test stay whole.
            Classes keep their shares.
        held_out: the most validation images, and the most test images, for quicker work.

    Raises:
        ValueError: nothing of that name, or a folder that cannot be used; the message says why.
        RuntimeError: the photographs are missing or damaged, or the download failed.

    Example:
        >>> data = load_data(limit=100, held_out=100)
        >>> data.train.images.shape, data.class_names[:3]
        (torch.Size([100, 3, 32, 32]), ('airplane', 'automobile', 'bird'))
    """
    sizes = {"image_size": image_size, "limit": limit, "held_out": held_out}
    for name, value in sizes.items():
        if value is not None and not is_integer(value, at_least=1):
            raise ValueError(f"{name} must be a positive integer or None (got {value!r}).")
    if not is_integer(seed, at_least=0):
        raise ValueError(f"seed must be an integer from 0 up (got {seed!r}).")
    limits = (limit, held_out, held_out)  # of each split
    if source == "shapes":
        return load_shapes(seed, image_size or 32, limits)
    if source in ("cifar10", "cifar10-original"):
        if image_size not in (None, 32):
            raise ValueError(
                f"the images of {source} are 32 px wide (got image_size={image_size})."
            )
        return load_cifar10(seed, limits) if source == "cifar10" else load_original(seed, limits)
    if not isinstance(source, (str, Path)) or not str(source).strip():
        raise ValueError(f"source must be {CHOICES} (got {source!r}).")
    folder = Path(source).expanduser()
    if not folder.exists():
        raise ValueError(
            f"no data named {str(source)!r}, and no folder at {folder.absolute()}. "
            f"Choices: {CHOICES}."
        )
    return load_folder(folder, seed, image_size or 32, limits)


def is_integer(value: object, at_least: int) -> bool:
    """Tell whether a value is a whole number, True and False not counted, and large enough."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= at_least


def load_shapes(seed: int, image_size: int, limits: Limits) -> Data:
    """Draw the three splits from independent streams of one seed."""
    splits = []
    for stream, (size, limit) in enumerate(zip(SHAPES_SIZES, limits, strict=True)):
        size = min(limit or size, size)
        drawn = draw_shapes(size, seed=seed, stream=stream, image_size=image_size)
        splits.append(Split(*map(torch.from_numpy, drawn)))
    return to_data("shapes", tuple(SHAPES), splits)


def load_cifar10(seed: int, limits: Limits, kinds: tuple[str, ...] = cifar10.CLASS_NAMES) -> Data:
    """Decode the photographs of some kinds that come with the package, in an order of the seed."""
    packed = cifar10.read_packed()
    number_of = np.full(len(cifar10.CLASS_NAMES), -1)
    number_of[[cifar10.CLASS_NAMES.index(kind) for kind in kinds]] = range(len(kinds))
    labels, rng = number_of[packed["labels"]], np.random.default_rng(seed)
    whole = np.split(np.arange(len(labels)), np.cumsum(cifar10.SIZES)[:-1])
    splits = []
    for rows, size in zip(whole, limits, strict=True):
        rows = rows[labels[rows] >= 0]
        rows = rows[stratified_order(labels[rows], rng)][:size]
        splits.append(to_split(cifar10.decode_rows(packed, rows), labels[rows]))
    train, validation, test = splits
    mean, std = torch.tensor(cifar10.MEAN), torch.tensor(cifar10.STD)
    return Data("cifar10", kinds, train, validation, test, mean, std)


def load_original(seed: int, limits: Limits) -> Data:
    """Fetch CIFAR-10 with torchvision, once, and hold a tenth of its training images out.

    torchvision compares the digest of what it downloaded, and later those of the unpacked files.
    """
    from torchvision.datasets import CIFAR10

    root = cache_folder()
    try:
        halves = [CIFAR10(root, train=train, download=True) for train in (True, False)]
    except (OSError, HTTPException, RuntimeError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise RuntimeError(
            f"CIFAR-10 could not be downloaded to {root} ({reason}). Try again, or work offline: "
            "load_data('cifar10') comes with the package, load_data('path/to/folder') takes a copy."
        ) from None

    rng = np.random.default_rng(seed)
    pixels = np.concatenate([half.data for half in halves]).transpose(0, 3, 1, 2)
    labels = np.concatenate([half.targets for half in halves])
    train, test = np.split(np.arange(len(labels)), [len(halves[0].data)])
    train, validation = split_rows(train, labels[train], VALIDATION_SHARE, rng)
    splits = []
    for index, size in zip((train, validation, test), limits, strict=True):
        index = index[stratified_order(labels[index], rng)][:size]
        splits.append(to_split(pixels[index], labels[index]))
    return to_data("cifar10-original", tuple(halves[0].classes), splits)


def load_folder(folder: Path, seed: int, image_size: int, limits: Limits) -> Data:
    """Find the images of a folder, split them where it does not, decode them."""
    class_folders = find_images(folder)
    rng = np.random.default_rng(seed)
    files = {}  # split -> rows of (path, label)
    for split, classes in class_folders.items():
        pairs = [(path, label) for label, paths in enumerate(classes.values()) for path in paths]
        files[split] = np.array(pairs, dtype=object)
    if "" in files:
        rows = files.pop("")
        files["train"], files["test"] = split_rows(rows, rows[:, 1], TEST_SHARE, rng)
    if "validation" not in files:
        rows = files["train"]
        files["train"], files["validation"] = split_rows(rows, rows[:, 1], VALIDATION_SHARE, rng)
    for split, limit in zip(SPLITS, limits, strict=True):
        files[split] = files[split][stratified_order(files[split][:, 1], rng)][:limit]

    rows = np.concatenate([files[split] for split in SPLITS])
    ends = np.cumsum([len(files[split]) for split in SPLITS])[:-1]
    images, readable = read_images(list(rows[:, 0]), image_size)
    splits = []
    for split, chosen in zip(SPLITS, np.split(np.arange(len(rows)), ends), strict=True):
        chosen = chosen[readable[chosen]]
        if not len(chosen):
            raise ValueError(f"none of the {split} images of {folder} could be read.")
        splits.append(to_split(images[chosen], rows[chosen, 1]))
    class_names = tuple(next(iter(class_folders.values())))
    is_taken = folder.name in ("cifar10", "cifar10-original", "shapes")  # names of other images
    name = f"folder {folder.name}" if is_taken else folder.name
    return to_data(name, class_names, splits)


def to_data(name: str, class_names: tuple[str, ...], splits: list[Split]) -> Data:
    """Put training, validation and test images together with the statistics of the first."""
    train, validation, test = splits
    mean, std = channel_statistics(train.images)
    return Data(name, class_names, train, validation, test, mean, std)


def to_split(images: np.ndarray, labels: np.ndarray) -> Split:
    """Wrap arrays (N, C, H, W) uint8 and (N,) as tensors."""
    pixels = torch.from_numpy(np.ascontiguousarray(images))
    return Split(pixels, torch.from_numpy(labels.astype(np.int64)))


def split_rows(
    rows: np.ndarray, labels: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Split rows in two, the second with this share of every class and at least one of each."""
    is_second = np.zeros(len(rows), bool)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        is_second[members[: max(1, round(share * len(members)))]] = True
    return rows[~is_second], rows[is_second]


def stratified_order(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Order images at random so that every beginning holds the classes in their shares."""
    position = np.empty(len(labels))
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        position[members] = (np.arange(len(members)) + 0.5) / len(members)
        position[members[0]] = 0  # every class comes once before any comes twice
    return np.lexsort((rng.random(len(labels)), position))


def channel_statistics(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure mean and standard deviation (C,) over all pixels of all images, on a scale of 0 to 1.

    The mean of the standard deviations of single images would be smaller: it leaves out that some
    images are brighter than others.
    """
    count = images[:, 0].numel()
    total = squares = torch.zeros(())
    for chunk in images.split(100):  # float32 sums over few images, float64 sums of those
        chunk = chunk.float() / 255
        total = total + chunk.sum(dim=(0, 2, 3)).double()
        squares = squares + chunk.square().sum(dim=(0, 2, 3)).double()
    mean = total / count
    std = (squares / count - mean.square()).clamp(min=0).sqrt()
    return mean.float(), std.clamp(min=1 / 255).float()  # a constant channel stays finite
