"""A folder of one's own images: finding the files, and decoding them.

Role: from a path to uint8 arrays, with an error that says what to change where that fails. Not
here: which image is for training and which for testing, beyond what the folder says (``data``).

Decoding is Pillow's, in threads.
"""

import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from vitedu.ground.progressbar import ProgressBar

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff"}


def find_images(folder: Path) -> dict[str, dict[str, list[str]]]:
    """List the images of a folder by split and class, both in order of name.

    Args:
        folder: holds class folders, or ``train``, ``test`` and perhaps ``validation`` (or ``val``)
            with the same class folders in each.

    Returns:
        ``{split: {class name: paths}}``; one split named ``""`` if the folder has no splits.

    Raises:
        ValueError: no such folder, no class folders, one class, a class without images or with too
            few, splits that differ in their classes.
    """
    if not folder.is_dir():
        raise ValueError(
            f"{folder} is not a folder; if it is an archive, unpack it and pass the folder."
        )
    inside = {path.name: path for path in _folders(folder)}
    if "train" not in inside and "test" not in inside:
        return {"": _find_classes(folder, 3)}  # for training, validation and test
    if not ("train" in inside and "test" in inside):
        there, missing = ("train", "test") if "train" in inside else ("test", "train")
        raise ValueError(
            f"{folder} has {there}/ but no {missing}/. Add it, or pass {inside[there]} to have its "
            "classes split."
        )
    validation = inside.get("validation", inside.get("val"))
    train = _find_classes(inside["train"], 1 if validation else 2)
    splits = {"train": train, "test": _find_classes(inside["test"])}
    if validation:
        splits["validation"] = _find_classes(validation)
    for split, classes in splits.items():
        differing = sorted(set(classes) ^ set(splits["train"]))
        if differing:
            raise ValueError(
                f"{folder}: train has {len(splits['train'])} classes, {split} has {len(classes)}; "
                f"only one of the two has {_some(differing)}. Give both the same class folders."
            )
    return splits


def read_images(paths: list[str], image_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Decode images into one array.

    A file that cannot be decoded is skipped; one line on standard error says how many and which.

    Args:
        paths: N files.
        image_size: S. Images are resized, shorter side first, and cropped around the middle.

    Returns:
        images (N, 3, S, S) uint8, black where unreadable; readable (N,) bool.
    """
    images = np.zeros((len(paths), 3, image_size, image_size), np.uint8)
    readable = np.zeros(len(paths), bool)

    def decode(index: int) -> None:
        # decoders fail in many ways on a damaged file
        with suppress(Exception), Image.open(paths[index]) as file:
            images[index] = to_square(file, image_size).transpose(2, 0, 1)
            readable[index] = True

    bar = ProgressBar(len(paths))
    with ThreadPoolExecutor() as pool:
        for done, _ in enumerate(pool.map(decode, range(len(paths))), start=1):
            bar.update(done, f"reading images {done:,}/{len(paths):,}")
    bar.close()
    bad = [paths[index] for index in np.flatnonzero(~readable)]
    if bad:
        print(
            f"skipped {len(bad)} of {len(paths):,} images, unreadable: {_some(bad)}",
            file=sys.stderr,
        )
    return images, readable


def _folders(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith((".", "__")))


def _find_classes(folder: Path, least: int = 1) -> dict[str, list[str]]:
    classes = {
        class_folder.name: sorted(map(str, filter(_is_image, class_folder.rglob("*"))))
        for class_folder in _folders(folder)
    }
    short = [f"{name} ({len(paths)})" for name, paths in classes.items() if len(paths) < least]
    if short or len(classes) < 2:
        fewer = f", {len(short)} with fewer: {_some(short)}" if short else ""
        loose = sum(map(_is_image, folder.iterdir()))
        raise ValueError(
            f"{folder} needs at least 2 class folders with at least {least} images in each, as "
            f"{folder.name}/<class>/<image> ({', '.join(sorted(SUFFIXES))}). It holds "
            f"{len(classes)}{fewer}{f'; {loose} images lie outside of them' if loose else ''}."
        )
    return classes


def _is_image(path: Path) -> bool:
    is_named_so = path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    return is_named_so and path.is_file()


def _some(names: list[str], most: int = 3) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def to_square(image: Image.Image, image_size: int) -> np.ndarray:
    """Give an opened PIL image (S, S, 3) uint8: upright, white where transparent, cropped."""
    size = (image_size, image_size)
    # lets JPEG decode large pictures smaller; at less than eight times the side more names change
    image.draft("RGB", (8 * image_size, 8 * image_size))
    return np.asarray(ImageOps.fit(upright_rgb(image), size, Image.Resampling.BICUBIC))


def read_photo(path: str | Path, prepare: Callable):
    """Open a user's image file and prepare it; a ValueError of one line says what is wrong."""
    if not Path(path).is_file():
        raise ValueError(f"there is no image at {path}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                return prepare(image)
    except Image.DecompressionBombError:
        raise ValueError(
            f"{path} has more pixels than Pillow opens; make it smaller, such as 1,000 pixels wide."
        ) from None
    except Exception as error:  # decoders fail in many ways on a damaged file
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{path} cannot be read as an image: {reason}.") from None


def upright_rgb(image: Image.Image) -> Image.Image:
    """Turn a PIL image as its camera was held; give it in RGB, on white where transparent."""
    if image.mode.startswith("I"):  # 16 bits, which some versions of Pillow open as 32
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    image = ImageOps.exif_transpose(image)
    if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")
