"""The sources of images, their splits, and what is said when a source cannot be used."""

import functools
import hashlib
import http.server
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vitedu.__main__ import main
from vitedu.data import cifar10
from vitedu.data.image_folder import find_images, read_photo, to_square
from vitedu.data.loading import Data, channel_statistics, load_data, split_rows, stratified_order


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep downloads of these tests out of the user's cache."""
    monkeypatch.setenv("VITEDU_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def shapes() -> Data:
    """The drawn data, whole."""
    return load_data("shapes")


def save_image(path: Path, size=(8, 8), colour=(200, 40, 40), mode="RGB") -> Path:
    """Write one plain image."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).convert(mode).save(path)
    return path


def make_folder(root: Path, counts: dict[str, int], size=(8, 8)) -> Path:
    """Write class folders of images; every image has its own colour, every class its own red."""
    for label, (name, count) in enumerate(counts.items()):
        for index in range(count):
            save_image(root / name / f"{index:03d}.png", size, (40 * label, index, 7))
    return root


def splits(data: Data):
    """The three splits by name."""
    return {"train": data.train, "validation": data.validation, "test": data.test}


# -- shapes ---------------------------------------------------------------------------------------


def test_shapes_has_types_and_sizes_as_promised(shapes):
    """uint8 images, int64 labels, boolean masks; ten classes, equally many of each."""
    assert (shapes.num_classes, shapes.in_channels, shapes.image_size) == (10, 3, 32)
    for split, size in zip(splits(shapes).values(), (10_000, 1_000, 2_000), strict=True):
        assert split.images.shape == (size, 3, 32, 32) and split.images.dtype == torch.uint8
        assert split.labels.shape == (size,) and split.labels.dtype == torch.int64
        assert split.masks.shape == (size, 32, 32) and split.masks.dtype == torch.bool
        assert split.labels.bincount().tolist() == [size // 10] * 10
        assert len(split) == size


def test_shapes_repeat_by_seed_and_differ_between_seeds(shapes):
    """The same seed gives the same bits; another gives none of the images again."""
    few = load_data("shapes", limit=503, held_out=7)
    assert [len(split) for split in splits(few).values()] == [503, 7, 7]
    for name, split in splits(few).items():
        whole = getattr(shapes, name)
        for kind in ("images", "labels", "masks"):
            assert torch.equal(getattr(split, kind), getattr(whole, kind)[: len(split)])
    other = load_data("shapes", seed=1, limit=500, held_out=1)
    seen = [{image.tobytes() for image in d.train.images.numpy()} for d in (few, other)]
    assert not seen[0] & seen[1]


def test_shapes_share_no_image_between_splits(shapes):
    """Every one of the 13,000 images is unique."""
    seen = {image.tobytes() for split in splits(shapes).values() for image in split.images.numpy()}
    assert len(seen) == 13_000


def test_shapes_masks_cover_the_object_which_is_brighter_than_its_ground(shapes):
    """The contrast has one sign: on all but a few images the object is brighter, on average."""
    images, masks = shapes.test.images.float().mean(dim=1), shapes.test.masks
    inside = (images * masks).sum(dim=(1, 2)) / masks.sum(dim=(1, 2))
    outside = (images * ~masks).sum(dim=(1, 2)) / (~masks).sum(dim=(1, 2))
    assert (inside > outside + 15).float().mean() > 0.99
    share = masks.float().mean(dim=(1, 2))
    assert 0.02 < share.min() and share.max() < 0.6


# -- splits and statistics ------------------------------------------------------------------------


def test_normalize_gives_training_pixels_mean_zero_and_std_one(shapes):
    """The statistics are those of all training pixels together."""
    floats = shapes.normalize(shapes.train.images)
    assert floats.mean(dim=(0, 2, 3)).abs().max() < 1e-4
    assert (floats.std(dim=(0, 2, 3)) - 1).abs().max() < 1e-3


def test_denormalize_undoes_normalize(shapes):
    """Colours come back, and what lies outside 0 to 1 is cut."""
    images = shapes.test.images[:50]
    back = shapes.denormalize(shapes.normalize(images))
    assert (back - images / 255).abs().max() < 1e-6
    assert shapes.denormalize(torch.full((3, 2, 2), 100.0)).max() == 1


def test_statistics_are_those_of_all_pixels_together():
    """One black and one white image have std 0 each, 0.5 together; a constant channel is no 0."""
    images = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    assert channel_statistics(images)[1].min() > 0
    images[1] = 255
    for found in channel_statistics(images):
        assert torch.allclose(found, torch.full((3,), 0.5), atol=1e-6)


def test_part_takes_its_share_of_every_class():
    """A tenth of 50, of 20 and of 3 images is 5, 2 and at least 1."""
    labels = np.repeat([0, 1, 2], [50, 20, 3])
    first, second = split_rows(np.arange(73), labels, 0.1, np.random.default_rng(0))
    assert np.bincount(labels[second]).tolist() == [5, 2, 1]
    assert sorted([*first, *second]) == list(range(73))


def test_mixed_order_begins_with_every_class_and_keeps_their_shares():
    """The first images hold each class once; any beginning has about the shares of the whole."""
    labels = np.repeat([0, 1, 2], [60, 30, 10])
    order = stratified_order(labels, np.random.default_rng(0))
    assert sorted(order) == list(range(100))
    assert sorted(labels[order[:3]]) == [0, 1, 2]
    assert abs(np.bincount(labels[order[:50]]) - [30, 15, 5]).max() <= 1


NO_COUNT, NO_SEED, NO_NAME = (0, -3, 1.5, True, "many"), (None, -1, 0.5, True), (None, 3, "")
REFUSED = [
    ({name: wrong}, f"{name} must be a positive integer")
    for name in ("limit", "held_out", "image_size")
    for wrong in NO_COUNT
]
REFUSED += [({"seed": wrong}, "seed must be an integer from 0 up") for wrong in NO_SEED]
REFUSED += [({"source": wrong}, "'shapes', or the path of a folder") for wrong in NO_NAME]
REFUSED += [({"source": "shape"}, r"no data named 'shape', and no folder at /.*/shape\. Choices")]
REFUSED += [
    ({"source": name, "image_size": 64}, f"images of {name} are 32 px wide .got image_size=64")
    for name in ("cifar10", "cifar10-original")
]


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=str)
def test_load_data_rejects_what_has_no_meaning(words, message):
    """By name, with the choices or the place where it looked, before any download."""
    with pytest.raises(ValueError, match=message):
        load_data(**{"source": "shapes"} | words)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serve a folder without a word."""

    def log_message(self, *words):
        """Say nothing."""


# -- CIFAR-10 -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def photographs() -> Data:
    """Some of the photographs that come with the package, of the default seed."""
    return load_data(limit=500, held_out=200)


def test_photographs_are_the_default_with_constant_statistics(photographs):
    """uint8 images in ten classes; mean and std are those of all, however few are loaded."""
    assert (photographs.name, photographs.class_names) == ("cifar10", cifar10.CLASS_NAMES)
    assert (photographs.num_classes, photographs.in_channels, photographs.image_size) == (10, 3, 32)
    for split, size in zip(splits(photographs).values(), (500, 200, 200), strict=True):
        assert split.images.shape == (size, 3, 32, 32) and split.images.dtype == torch.uint8
        assert split.labels.dtype == torch.int64 and split.masks is None
        assert split.labels.bincount().tolist() == [size // 10] * 10
    pixels = photographs.normalize(photographs.train.images)
    assert pixels.mean(dim=(0, 2, 3)).abs().max() < 0.1
    assert (pixels.std(dim=(0, 2, 3)) - 1).abs().max() < 0.1
    assert torch.equal(load_data(limit=1, held_out=1).mean, photographs.mean)


def test_photographs_are_ordered_by_the_seed(photographs):
    """A seed chooses the same images again, fewer are the first of more, another seed others."""
    few = load_data("cifar10", seed=0, limit=50, held_out=20)
    for name, split in splits(few).items():
        whole = getattr(photographs, name)
        assert torch.equal(split.images, whole.images[: len(split)])
        assert torch.equal(split.labels, whole.labels[: len(split)])
    other = load_data(seed=1, limit=500, held_out=200)
    seen = [{image.tobytes() for image in d.train.images.numpy()} for d in (photographs, other)]
    assert len(seen[0] & seen[1]) < 50


def test_photographs_stay_in_their_split_whatever_the_seed(monkeypatch):
    """Every seed takes its validation images from the same 5,000, its test images from 10,000."""
    chosen = []
    monkeypatch.setattr(cifar10, "decode_rows", lambda packed, rows: chosen.append(rows) or rows)
    for seed in (0, 7):
        load_data(seed=seed)
    for i, (low, high) in enumerate([(0, 45_000), (45_000, 50_000), (50_000, 60_000)]):
        one, two = chosen[i], chosen[3 + i]
        assert sorted(one) == sorted(two) == list(range(low, high)) and (one != two).any()


def test_file_of_photographs_says_whose_they_are_and_is_small():
    """About 18 MB; the note beside it names the author and that no licence is stated."""
    assert cifar10.FILE.stat().st_size < 18.1e6
    assert hashlib.sha256(cifar10.FILE.read_bytes()).hexdigest() == cifar10.SHA256
    note = cifar10.FILE.with_name("SOURCES.md").read_text(encoding="utf-8")
    assert "Krizhevsky" in note and "no licence" in note


def damage(content: bytes) -> bytes:
    """Change one byte in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (None, "No such file or directory). Whoever may not pass them on"),
        (lambda content: content[:-1], "is damaged: its 18,052,055 bytes are not those"),
        (damage, "is damaged: its 18,052,056 bytes are not those"),
        (lambda content: b"", "is damaged: its 0 bytes"),
    ],
    ids=["missing", "truncated", "one byte changed", "empty"],
)
def test_photographs_that_cannot_be_read_are_one_line_with_remedies(
    tmp_path, monkeypatch, capsys, change, words
):
    """What is wrong with which file, and what goes on without it; on the command line too."""
    path = tmp_path / "photographs.safetensors"
    if change:
        path.write_bytes(change(cifar10.FILE.read_bytes()))
    monkeypatch.setattr(cifar10, "FILE", path)
    with pytest.raises(RuntimeError) as caught:
        load_data()
    message = str(caught.value)
    assert words in message and str(path) in message and "\n" not in message
    assert "load_data('shapes')" in message
    assert ("install vitedu again" in message.lower()) == (change is not None)
    assert ("load_data('cifar10-original')" in message) == (change is None)
    assert main(["train", "--out", str(tmp_path / "run")]) == 2
    assert words in capsys.readouterr().err


def test_original_without_a_network_is_one_line_with_remedies(monkeypatch):
    """A failed download names its cause and two ways on, without the inner traceback."""

    def offline(*args, **kwargs):
        raise OSError("<urlopen error no route to host>\nmore")

    monkeypatch.setattr("torchvision.datasets.CIFAR10", offline)
    with pytest.raises(RuntimeError) as caught:
        load_data("cifar10-original")
    message = str(caught.value)
    assert "\n" not in message and "no route to host" in message
    assert "load_data('cifar10')" in message and "load_data('path/to/folder')" in message
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("content", [b"PK", b"\x1f\x8b not CIFAR-10"], ids=["truncated", "other"])
def test_original_with_a_wrong_digest_is_refused(tmp_path, monkeypatch, content):
    """What torchvision downloaded is compared with the digest it knows, and never unpacked."""
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(content)
    handler = functools.partial(QuietHandler, directory=tmp_path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/cifar-10-python.tar.gz"
    monkeypatch.setattr("torchvision.datasets.CIFAR10.url", url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    try:
        with pytest.raises(
            RuntimeError, match=r"could not be downloaded to .* \(File not found or"
        ):
            load_data("cifar10-original")
    finally:
        server.shutdown()
        server.server_close()


def test_a_folder_does_not_take_the_name_of_other_images(tmp_path):
    """What was measured on drawn shapes must not stand beside a folder that is called shapes."""
    for name in ("a", "b"):
        (tmp_path / "shapes" / name).mkdir(parents=True)
        for i in range(4):
            Image.new("RGB", (8, 8), (i, 0, 0)).save(tmp_path / "shapes" / name / f"{i}.png")
    assert load_data(tmp_path / "shapes").name == "folder shapes"


def test_original_holds_a_tenth_of_each_class_out(monkeypatch):
    """Validation images come from the training half, a tenth of each class; test stays whole."""

    class Fake:
        classes = ["cat", "dog"]

        def __init__(self, root, train, download):
            count = 100 if train else 20
            self.targets = [index % 2 for index in range(count)]
            self.data = np.full((count, 32, 32, 3), 250 if not train else 0, np.uint8)
            self.data[:, 0, 0, 0] = range(count)

    monkeypatch.setattr("torchvision.datasets.CIFAR10", Fake)
    data = load_data("cifar10-original")
    assert (data.name, data.class_names) == ("cifar10-original", ("cat", "dog"))
    assert data.train.labels.bincount().tolist() == [45, 45]
    assert data.validation.labels.bincount().tolist() == [5, 5]
    number = {name: split.images[:, 0, 0, 0].tolist() for name, split in splits(data).items()}
    assert sorted(number["train"] + number["validation"]) == list(range(100))
    assert sorted(number["test"]) == list(range(20)) and data.test.images[0, 1, 5, 5] == 250
    for split in splits(data).values():
        assert torch.equal(split.images[:, 0, 0, 0] % 2, split.labels.to(torch.uint8))
    few = load_data("cifar10-original", limit=10, held_out=3)
    assert [len(split) for split in splits(few).values()] == [10, 3, 3]


# -- a folder -------------------------------------------------------------------------------------


def test_folder_is_split_by_seed_without_a_shared_image(tmp_path):
    """Class folders are cut in three; every image is in one split, with the label of its folder."""
    folder = make_folder(tmp_path / "pets", {"ant": 40, "bee": 20})
    data = load_data(folder)
    assert (data.name, data.class_names, data.image_size) == ("pets", ("ant", "bee"), 32)
    assert [len(split) for split in splits(data).values()] == [46, 5, 9]
    pixels = torch.cat([split.images[:, :, 0, 0] for split in splits(data).values()])
    labels = torch.cat([split.labels for split in splits(data).values()])
    assert len(pixels.unique(dim=0)) == 60
    assert torch.equal(pixels[:, 0], (40 * labels).to(torch.uint8))
    assert torch.equal(load_data(folder).train.images, data.train.images)
    assert not torch.equal(load_data(folder, seed=1).train.images, data.train.images)


@pytest.mark.parametrize("validation", ["val", "validation", None])
def test_folder_with_splits_keeps_them(tmp_path, validation):
    """train and test are taken as they are; validation too, or a tenth of train."""
    make_folder(tmp_path / "train", {"a": 20, "b": 20})
    make_folder(tmp_path / "test", {"a": 3, "b": 3})
    if validation:
        make_folder(tmp_path / validation, {"a": 5, "b": 5})
    data = load_data(str(tmp_path))
    sizes = [len(split) for split in splits(data).values()]
    assert sizes == ([40, 10, 6] if validation else [36, 4, 6])


def test_folder_limit_keeps_validation_and_test_whole(tmp_path):
    """Only training images are left out, and classes keep their shares."""
    data = load_data(make_folder(tmp_path / "x", {"a": 40, "b": 20}), limit=15)
    assert data.train.labels.bincount().tolist() == [10, 5]
    assert (len(data.validation), len(data.test)) == (5, 9)
    few = load_data(tmp_path / "x", limit=15, held_out=7)
    assert [len(split) for split in splits(few).values()] == [15, 5, 7]
    assert torch.equal(few.test.images, data.test.images[:7])


def test_images_of_a_folder_are_cropped_to_one_size(tmp_path):
    """They become 32 px, or what is asked for."""
    folder = make_folder(tmp_path / "x", {"a": 3, "b": 3})
    save_image(folder / "a" / "wide.jpg", size=(90, 40))
    assert load_data(folder).image_size == 32
    assert load_data(folder, image_size=20).image_size == 20


def decode(path, image_size):
    """Read one image as a square."""
    return read_photo(path, lambda photo: to_square(photo, image_size))


def test_decode_crops_around_the_middle(tmp_path):
    """Of a wide image the middle square remains, resized."""
    pixels = np.zeros((20, 60, 3), np.uint8)
    pixels[:, 20:40] = 255
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    decoded = decode(tmp_path / "wide.png", 10)
    assert decoded.shape == (10, 10, 3) and decoded[:, 1:-1].min() == 255


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "1", "CMYK"])
def test_decode_turns_every_mode_into_colour(tmp_path, mode):
    """Grey, palette, transparent and print images all become RGB."""
    path = tmp_path / ("x.tif" if mode == "CMYK" else "x.png")
    save_image(path, colour=(255, 255, 255), mode=mode)
    assert decode(path, 8).shape == (8, 8, 3) and decode(path, 8).min() > 250


def test_decode_keeps_the_range_of_16_bits_and_puts_what_is_transparent_on_white(tmp_path):
    """The middle of 16 bits becomes the middle of 8; what cannot be seen does not become black."""
    Image.fromarray(np.full((8, 8), 32768, np.uint16)).save(tmp_path / "x.png")
    assert (decode(tmp_path / "x.png", 8) == 128).all()
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(tmp_path / "y.png")
    assert (decode(tmp_path / "y.png", 8) == 255).all()


def test_decode_turns_photographs_upright(tmp_path):
    """The orientation that a camera noted is applied."""
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:4] = 255
    Image.fromarray(pixels).save(tmp_path / "x.png", exif=exif)
    decoded = decode(tmp_path / "x.png", 8)
    assert decoded[:4].max() == 0 and decoded[4:].min() == 255


def test_folder_names_skips_and_counts_unreadable_images(tmp_path, capsys):
    """A damaged file costs one line and one image, not the run."""
    folder = make_folder(tmp_path / "x", {"a": 10, "b": 10})
    (folder / "a" / "broken.png").write_bytes(b"not an image")
    data = load_data(folder)
    assert sum(len(split) for split in splits(data).values()) == 20
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "skipped 1 of 21 images, unreadable: " in line and "broken.png" in line


def test_folder_ignores_hidden_and_other_files(tmp_path, capsys):
    """Notes, hidden files and hidden folders are no images and no classes."""
    folder = make_folder(tmp_path / "x", {"a": 4, "b": 4})
    (folder / "a" / "notes.txt").write_text("hello")
    (folder / "a" / "._000.png").write_bytes(b"resource fork")
    (folder / ".ipynb_checkpoints").mkdir()
    assert list(find_images(folder)[""]) == ["a", "b"]
    load_data(folder)
    assert "skipped" not in capsys.readouterr().err


SPLIT = dict.fromkeys(("train/a", "train/b", "test/a", "test/b"), 5)
BAD_FOLDERS = {
    "empty": ({}, "It holds 0."),
    "loose images": ({"": 3}, "It holds 0; 3 images lie outside"),
    "one class": ({"a": 5}, "needs at least 2 class folders .* It holds 1."),
    "a class without images": ({"a": 5, "b": 5, "c": 0}, r"It holds 3, 1 with fewer: c \(0\)"),
    "too few images": ({"a": 5, "b": 2}, r"at least 3 images in each.* 1 with fewer: b \(2\)"),
    "train without test": ({"train/a": 5, "train/b": 5}, "has train/ but no test/"),
    "test without train": ({"test/a": 5, "test/b": 5}, "has test/ but no train/"),
    "classes that differ": ({**SPLIT, "test/c": 5}, "only one of the two has c"),
    "one to train from": (
        {**SPLIT, "train/b": 1},
        r"at least 2 images in each.* 1 with fewer: b \(1\)",
    ),
}


@pytest.mark.parametrize("counts, message", BAD_FOLDERS.values(), ids=BAD_FOLDERS)
def test_folder_that_can_not_be_used_is_explained(tmp_path, counts, message):
    """What it needs and what it holds, with numbers."""
    make_folder(tmp_path, counts)
    for name in counts:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    with pytest.raises(ValueError, match=message):
        load_data(tmp_path)


def test_folder_is_not_a_file(tmp_path):
    """An archive must be unpacked first."""
    (tmp_path / "images.zip").write_bytes(b"PK")
    with pytest.raises(ValueError, match="is not a folder; if it is an archive, unpack it"):
        load_data(tmp_path / "images.zip")


def test_folder_with_nothing_readable_is_refused(tmp_path, capsys):
    """A split of which no image could be read stops the load."""
    folder = make_folder(tmp_path / "x", {"a": 4, "b": 4})
    for path in folder.rglob("*.png"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match="none of the train images"):
        load_data(folder)
    assert "skipped 8 of 8 images" in capsys.readouterr().err
