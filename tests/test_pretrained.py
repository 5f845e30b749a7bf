"""Published weights by name: from a stand-in for the libraries' servers, and from files."""

import hashlib
import io
import os
import sys

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torchvision.models import _api
from torchvision.models import vision_transformer as torchvision_vit
from torchvision.transforms._presets import ImageClassification

from vitedu.__main__ import main
from vitedu.pretrained.loading import load_pretrained
from vitedu.pretrained.published import publishes_head
from vitedu.pretrained.reading import read_weights

pytestmark = pytest.mark.slow  # torchvision and timm take seconds to load
timm = pytest.importorskip("timm", reason="timm is an oracle here")

TIMM_NAME = "vit_tiny_patch16_224"
CLIP = "vit_base_patch16_clip_224.openai"

CATEGORIES = "ant", "bee", "cat", "dog", "eel"


class Prepare:
    """The preprocessing of the small model, as torchvision builds it."""

    def __call__(self):
        return ImageClassification(crop_size=32, resize_size=40)


class Bomb:
    """Leaves a trace where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def fill(model, seed=0):
    """Random numbers in every parameter."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2, generator=generator)
    return model.eval()


def small_vit(weights=None, progress=True, **options):
    """Build the small architecture that ``server`` tells torchvision of."""
    options = {"image_size": 32, "num_classes": 5, **options}
    return torchvision_vit.VisionTransformer(
        patch_size=8, num_layers=2, num_heads=3, hidden_dim=12, mlp_dim=48, **options
    )


@pytest.fixture
def images():
    """Eight images of 32 px."""
    return torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def theirs():
    """The small torchvision model with weights."""
    return fill(small_vit())


@pytest.fixture
def server(theirs, tmp_path, monkeypatch):
    """Publish weights of the small model, to be fetched with torchvision's own downloader.

    Gives the folder of the cache. Names: ``vit_test`` (GOOD), and weights that are MISSING, DAMAGED
    or hold CODE.
    """
    folder = tmp_path / "server"
    folder.mkdir()
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "cache"))

    def publish(content, digest=None):
        buffer = io.BytesIO()
        torch.save(content, buffer)
        digest = digest or hashlib.sha256(buffer.getvalue()).hexdigest()[:8]
        path = folder / f"vit_test-{digest}.pth"
        path.write_bytes(buffer.getvalue())
        return entry(path)

    def entry(path):
        return _api.Weights(path.as_uri(), Prepare(), {"categories": list(CATEGORIES)})

    class TestWeights(_api.WeightsEnum):
        GOOD = publish(theirs.state_dict())
        MISSING = entry(folder / "vit_test-00000000.pth")
        DAMAGED = publish(theirs.state_dict(), digest="11111111")
        CODE = publish({"x": Bomb(tmp_path / "exploded")})
        DEFAULT = GOOD

    builder = type(small_vit)(small_vit.__code__, globals(), "vit_test", small_vit.__defaults__)
    builder.__annotations__ = {"weights": TestWeights | None}
    monkeypatch.setitem(_api.BUILTIN_MODELS, "vit_test", builder)
    return tmp_path / "cache" / "hub" / "checkpoints"


def assert_same_logits(ours, theirs, images):
    """To 1e-5, in eval mode."""
    assert not ours.training
    with torch.no_grad():
        torch.testing.assert_close(ours(images), theirs(images), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["vit_test", "vit_test.GOOD"])
def test_torchvision_weights_come_by_its_downloader(server, theirs, images, name):
    """Fetched once into its cache, then read from there."""
    assert_same_logits(load_pretrained(name), theirs, images)
    assert [path.name[:9] for path in server.iterdir()] == ["vit_test-"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MISSING", "fetched from file:.*weights=path.*{cache}"),
        ("DAMAGED", "invalid hash value"),
        ("CODE", "could not be fetched"),
    ],
)
def test_download_that_fails_says_what_to_do(server, tmp_path, name, words):
    """The address, the cache folder, the way around; code is not run, not even the publisher's."""
    with pytest.raises(OSError, match=words.format(cache=server)):
        load_pretrained(f"vit_test.{name}")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("kind", ["plain.pth", "model.pth", "state_dict.pt", "plain.safetensors"])
def test_local_file_takes_the_place_of_the_download(server, tmp_path, images, kind):
    """Tensors alone or under a usual key; image size and classes are the file's own."""
    other = fill(small_vit(image_size=48, num_classes=3))
    path, state = tmp_path / kind, other.state_dict()
    if path.suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save(state if path.stem == "plain" else {path.stem: state, "epoch": 3}, path)
    ours = load_pretrained("vit_test.MISSING", weights=path)
    assert (ours.config.image_size, ours.config.num_classes) == (48, 3)
    assert_same_logits(ours, other, torch.randn(2, 3, 48, 48))


def test_half_precision_files_become_float32(server, theirs, tmp_path):
    """Whatever a file saves space with, the model computes as documented."""
    save_file(theirs.half().state_dict(), tmp_path / "half.safetensors")
    ours = load_pretrained("vit_test", weights=tmp_path / "half.safetensors")
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.float32}
    assert torch.equal(ours.pos_embed, theirs.encoder.pos_embedding.float())


def test_names_of_older_torchvision_files_are_understood(server, theirs, tmp_path, images):
    """The published files of ViT call the layers of the MLP linear_1 and linear_2."""
    state = {
        name.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2"): tensor
        for name, tensor in theirs.state_dict().items()
    }
    torch.save(state, tmp_path / "old.pth")
    assert_same_logits(load_pretrained("vit_test", weights=tmp_path / "old.pth"), theirs, images)


def test_code_in_a_file_is_not_run(tmp_path):
    """It is refused by name; nothing of it has happened."""
    torch.save({"x": Bomb(tmp_path / "exploded")}, tmp_path / "bomb.pth")
    with pytest.raises(ValueError, match="holds code, which does not run"):
        read_weights(tmp_path / "bomb.pth")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.pth", None, "there is no weights file at"),
        ("text.pth", b"hello", "not a file of tensors"),
        ("empty.pth", b"", "not a file of tensors"),
        ("text.safetensors", b"hello", "cannot be read"),
        ("list.pth", [torch.zeros(2)], "a state_dict, and nothing else"),
        ("mixed.pth", {"x": torch.zeros(2), "epoch": 3}, "a state_dict, and nothing else"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, words):
    """Each with its path."""
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(ValueError, match=words) as raised:
        read_weights(path)
    assert str(path) in str(raised.value)


def test_file_with_other_names_or_shapes_is_refused(server, theirs, tmp_path):
    """The message says what is missing, or what does not fit; so for an image size."""
    torch.save({"weight": torch.zeros(2)}, tmp_path / "other.pth")
    with pytest.raises(ValueError, match="have no conv_proj.weight, .*found weight"):
        load_pretrained("vit_test", weights=tmp_path / "other.pth")
    state = theirs.state_dict() | {"encoder.ln.weight": torch.zeros(7)}
    torch.save(state, tmp_path / "shape.pth")
    with pytest.raises(ValueError, match="(?s)do not fit 'vit_test'.*encoder.ln.weight"):
        load_pretrained("vit_test", weights=tmp_path / "shape.pth")
    with pytest.raises(ValueError, match="image_size=36, patch_size=8, remainder 4"):
        load_pretrained("vit_test", image_size=36)
    with pytest.raises(ValueError, match="images are squares, .* one whole number .got .32, 24"):
        load_pretrained("vit_test", image_size=(32, 24))
    torch.save(state | {"encoder.pos_embedding": torch.zeros(1, 141, 12)}, tmp_path / "oblong.pth")
    with pytest.raises(ValueError, match="141 positions, those of images that are not square"):
        load_pretrained("vit_test", weights=tmp_path / "oblong.pth")


def test_another_image_size_interpolates_positions_as_timm_does(tmp_path):
    """Logits at 64 px equal those of timm's model after its own change of size; class row apart."""
    theirs = fill(timm.create_model(TIMM_NAME, img_size=48, num_classes=6))
    save_file(theirs.state_dict(), tmp_path / "tiny.safetensors")
    ours = load_pretrained(TIMM_NAME, image_size=64, weights=tmp_path / "tiny.safetensors")
    theirs.set_input_size((64, 64))
    assert ours.config.image_size == 64 and ours.pos_embed.shape == (1, 17, 192)
    assert_same_logits(ours, theirs, torch.randn(2, 3, 64, 64))


def test_another_number_of_classes_gets_a_head_of_zeros(server, theirs, images):
    """All classes are equally probable, the rest is as published; the same number keeps all."""
    ours = load_pretrained("vit_test", num_classes=9)
    assert ours.config.num_classes == 9
    assert torch.equal(ours(images), torch.zeros(8, 9))
    assert torch.equal(ours.norm.weight, theirs.encoder.ln.weight)
    assert ours.head.weight.requires_grad
    assert_same_logits(load_pretrained("vit_test", num_classes=5), theirs, images)


@pytest.fixture
def timm_server(monkeypatch):
    """Let timm load from a dictionary what it would fetch, with its own loading code."""
    published, create_model = {}, timm.create_model

    def create(name, pretrained=False, **options):
        if pretrained and not published:
            raise ConnectionError("the network is unreachable")
        if pretrained:
            options["pretrained_cfg_overlay"] = {"state_dict": dict(published)}
        if name.startswith("vit_base"):
            options.setdefault("depth", 1)  # twelve blocks of this width take seconds
        return create_model(name, pretrained=pretrained, **options)

    monkeypatch.setattr(timm, "create_model", create)
    return published


@pytest.mark.slow
def test_timm_weights_come_by_its_loader(timm_server):
    """With the published head, and with a new one."""
    theirs = fill(timm.create_model(TIMM_NAME))
    timm_server.update(theirs.state_dict())
    images = torch.randn(1, 3, 224, 224)
    assert_same_logits(load_pretrained(TIMM_NAME), theirs, images)
    assert torch.equal(load_pretrained(TIMM_NAME, num_classes=4)(images), torch.zeros(1, 4))


@pytest.mark.slow
def test_timm_weights_without_a_head_give_features_or_a_new_head(timm_server):
    """Weights of self-supervised training end at the norm."""
    name = "vit_base_patch16_224.mae"
    theirs = fill(timm.create_model(name, num_classes=0))
    timm_server.update(theirs.state_dict())
    images = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        features = load_pretrained(name)(images)
        assert features.shape == (1, 768)
        torch.testing.assert_close(features, theirs(images), rtol=0, atol=1e-5)
    ours = load_pretrained(name, num_classes=4)
    assert ours.head.weight.shape == (4, 768) and not ours.head.weight.any()
    assert torch.equal(ours.norm.weight, timm_server["norm.weight"])


def test_timm_without_a_network_says_what_to_do(timm_server):
    """The hub's folder, and the way around."""
    with pytest.raises(OSError, match="huggingface.*unreachable.*weights=path.*cache folder"):
        load_pretrained(TIMM_NAME)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("resnet18", "a ResNet"),
        ("vit_wee_patch16_reg1_gap_256", "registers stand behind a class token"),
        ("vit_giant_patch14_224", "timm publishes no weights for"),
    ],
)
def test_timm_models_that_do_not_fit_are_refused_before_the_download(timm_server, name, words):
    """A ValueError about the model, not an OSError about the network."""
    with pytest.raises(ValueError, match=words):
        load_pretrained(name)


def test_predict_names_the_most_probable_classes(server, theirs, tmp_path, capsys):
    """With the library's preprocessing and class names; fetched, or from a file."""
    path = tmp_path / "x.png"
    Image.effect_noise((70, 50), 90).convert("RGBA").save(path)
    prepare = Prepare()()
    with Image.open(path) as image, torch.no_grad():
        row = theirs(prepare(image.convert("RGB"))[None])[0].softmax(dim=0)
    best = row.argmax().item()
    arguments = ["predict", "--pretrained", "vit_test", str(path), "--device", "cpu"]
    assert main([*arguments, "--top", "2"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith(f"{path}: {CATEGORIES[best]} {row[best]:.1%}, ")
    assert line.count("%") == 2

    torch.save(fill(small_vit(num_classes=2)).state_dict(), tmp_path / "two.pth")
    assert main([*arguments, "--weights", str(tmp_path / "two.pth")]) == 0
    assert "class 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pretrained", "vit_test", "none.png"], "there is no image at none.png"),
        (["--pretrained", "vit_test.MISSING", "{image}"], "Without a network"),
        (["--pretrained", "vit_test", "{text}"], "cannot be read as an image"),
        (["--pretrained", "vit_base_patch16_224.mae", "{image}"], "gives features and names nothi"),
        (["--pretrained", CLIP, "{image}"], "gives features and names nothi"),
        (["--pretrained", "vit_test", "{image}", "--top", "0"], "top must be at least 1"),
        (["--pretrained", "vit_test", "{image}", "--device", "abacus"], "device 'abacus'"),
        (["--checkpoint", "x", "--weights", "y", "{image}"], "goes with --pretrained"),
    ],
)
def test_predict_refuses_in_one_line(server, tmp_path, capsys, words, message):
    """Status 2 and a message; no traceback."""
    Image.new("RGB", (40, 40)).save(tmp_path / "x.png")
    (tmp_path / "x.txt").write_text("hello", encoding="utf-8")
    places = {"image": tmp_path / "x.png", "text": tmp_path / "x.txt"}
    assert main(["predict", *(word.format(**places) for word in words)]) == 2
    assert message in capsys.readouterr().err


def test_a_head_of_clip_names_nothing_but_where_a_file_has_another():
    """Its 512 outputs are features; a file may hold a head for classes of its own."""
    assert not publishes_head(CLIP) and not publishes_head(CLIP, 512) and publishes_head(CLIP, 10)
    assert publishes_head("vit_b_16") and publishes_head("vit_tiny_patch16_224.augreg_in21k")


def test_predict_takes_either_a_checkpoint_or_a_name(capsys):
    """argparse says so."""
    with pytest.raises(SystemExit):
        main(["predict", "--checkpoint", "a", "--pretrained", "b", "x.png"])
    assert "not allowed with" in capsys.readouterr().err


def test_without_timm_torchvision_still_works(server, theirs, images, monkeypatch):
    """timm is optional; a name of timm says how to get it."""
    monkeypatch.setitem(sys.modules, "timm", None)
    assert_same_logits(load_pretrained("vit_test"), theirs, images)
    with pytest.raises(ValueError, match="pip install timm"):
        load_pretrained(TIMM_NAME)
