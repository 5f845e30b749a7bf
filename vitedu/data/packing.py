"""Make the file of CIFAR-10 that comes with the package.

``python -m vitedu.data.packing cifar10-jpeg.tar.xz`` takes an archive of ``train/<class>/*.jpg``
and ``test/<class>/*.jpg``, writes ``cifar10.FILE`` and prints what ``cifar10.py`` says about it.

A tenth of the training images of each class is set aside for validation, drawn with seed 0: those
that ``load_data`` sets aside with this seed where it is given the unpacked folder.
"""

import hashlib
import os
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from vitedu.data.cifar10 import CLASS_NAMES, FILE, decode_rows
from vitedu.data.loading import VALIDATION_SHARE, channel_statistics, split_rows, to_split

ABOUT = (
    "CIFAR-10 (Krizhevsky 2009), a JPEG copy; its authors state no licence. 45,000 training, 5,000 "
    "validation, 10,000 test images. Image i is header + its body. Made by vitedu.data.packing."
)


def pack(archive: Path) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
    """Take the streams out of an archive, in the order of splits.

    Returns:
        What ``cifar10.read_packed`` gives, and the number of images of each split.
    """
    with tarfile.open(archive) as tar:
        files = ((member.name.split("/"), tar.extractfile(member)) for member in tar)
        streams = {tuple(parts[-3:]): file.read() for parts, file in files if file}
    names = sorted(streams)  # (half, class, file)
    labels = np.array([CLASS_NAMES.index(name[1]) for name in names])
    is_test = np.array([name[0] == "test" for name in names])
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    rng = np.random.default_rng(0)
    train, validation = split_rows(train, labels[train], VALIDATION_SHARE, rng)
    order = np.concatenate([train, validation, test])
    bodies = [streams[names[row]] for row in order]
    header: Any = os.path.commonprefix(bodies)  # bytes; its type says str
    bodies = [body[len(header) :] for body in bodies]
    packed = {
        "header": np.frombuffer(header, np.uint8),
        "bodies": np.frombuffer(b"".join(bodies), np.uint8),
        "lengths": np.array([len(body) for body in bodies], np.uint16),
        "labels": labels[order].astype(np.uint8),
    }
    return packed, (len(train), len(validation), len(test))


def main(archive: Path, out: Path = FILE) -> None:
    """Write the file and print its digest and the statistics of its training images."""
    from safetensors.numpy import save_file

    packed, sizes = pack(archive)
    save_file(packed, out, metadata={"about": ABOUT})
    rows = np.arange(sizes[0])
    mean, std = channel_statistics(to_split(decode_rows(packed, rows), rows).images)
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    print(f"{out}: {out.stat().st_size:,} bytes\nSHA256 {digest}\nSIZES {sizes}")
    print(f"MEAN {mean.tolist()}\nSTD {std.tolist()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
