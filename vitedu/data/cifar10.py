"""CIFAR-10 as it comes with the package: one file of JPEG streams, decoded when asked for.

Role: read the file, see that it is whole, decode some of its images. Not here: order and limits
(``loading``), whose photographs they are and how the file was made (``photographs/SOURCES.md``).

All streams begin with the same 623 bytes, which the file holds once. Decoding takes about 50
microseconds an image, so nothing is unpacked and nothing is cached. Pillow decodes:
torchvision's ``decode_jpeg`` gives the same pixels, but is deprecated since torchvision 0.29.

Reference: Krizhevsky 2009, "Learning Multiple Layers of Features from Tiny Images".
"""

import hashlib
import io
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("photographs") / "cifar10.safetensors"
SHA256 = "abd86a1c8654f9f75b2df12c57f1f196acff2e809a80de7163169441d1f750b6"
CLASS_NAMES = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())
SIZES = (45_000, 5_000, 10_000)  # training, validation and test images stand one after the other
# of the pixels of the 45,000 training images, on a scale of 0 to 1
MEAN, STD = (0.49118, 0.48197, 0.44640), (0.24531, 0.24288, 0.26059)
OTHERWISE = "load_data('shapes') draws its images and needs no file."


def read_packed() -> dict[str, np.ndarray]:
    """Read the file: ``header`` and ``bodies``, bytes; ``lengths`` of the bodies, and ``labels``.

    Raises:
        RuntimeError: the file is not there, or is not the one that was shipped.
    """
    from safetensors.numpy import load

    try:
        content = FILE.read_bytes()
    except OSError as error:
        raise RuntimeError(
            f"the photographs of CIFAR-10 cannot be read: {FILE} ({error.strerror}). Whoever may "
            "not pass them on leaves this file out. load_data('cifar10-original') downloads "
            f"CIFAR-10, load_data('path/to/folder') takes a copy, {OTHERWISE}"
        ) from None
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise RuntimeError(
            f"{FILE} is damaged: its {len(content):,} bytes are not those that were shipped. "
            f"Install vitedu again; until then, {OTHERWISE}"
        )
    return load(content)


def decode_rows(packed: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Decode some images of the file.

    Args:
        packed: of ``read_packed``.
        rows: which images, (n,).

    Returns:
        (n, 3, 32, 32) uint8.
    """
    from PIL import Image

    header, bodies = packed["header"].tobytes(), packed["bodies"].tobytes()
    ends = packed["lengths"].cumsum(dtype=np.int64)
    images = np.empty((len(rows), 3, 32, 32), np.uint8)
    for image, end, length in zip(images, ends[rows], packed["lengths"][rows], strict=True):
        stream = io.BytesIO(header + bodies[end - length : end])
        image[:] = np.asarray(Image.open(stream)).transpose(2, 0, 1)
    return images
