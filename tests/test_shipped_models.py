"""Models trained on photographs that come along: as good as told, loaded, listed, in predict."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from vitedu.__main__ import main
from vitedu.bench.shipping import MODELS, features_of, measure_unlike
from vitedu.data import load_data
from vitedu.data.photograph import FOLDER as PHOTOGRAPHS
from vitedu.fitting.checkpoints import load_checkpoint, save_tensors
from vitedu.pretrained import load_pretrained, preprocessing, reading
from vitedu.pretrained.loading import class_distance
from vitedu.pretrained.reading import shipped_models

pytestmark = pytest.mark.slow  # a thousand photographs for each model

NAME = "vit_pico_patch4_32.cifar10"


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A copy of one model, in the place of all that come along."""
    folder = tmp_path / "pretrained"
    shutil.copytree(reading.FOLDER / NAME, folder / NAME)
    monkeypatch.setattr(reading, "FOLDER", folder)
    return folder / NAME


def accuracy_of_first_1000(name):
    """Measure as a reader would: by name, on the first 1,000 test images."""
    model, known, data = (
        load_pretrained(name),
        preprocessing(name),
        load_data(held_out=1000, limit=1),
    )
    images = reading.normalize(data.test.images, {"mean": known.mean, "std": known.std})
    with torch.inference_mode():
        logits = model(images)
        if not shipped_models()[name]["labels"]:
            probe = reading.read_weights(reading.FOLDER / name / reading.FEATURES)
            logits = logits @ probe["probe.weight"].T + probe["probe.bias"]
    return (logits.argmax(dim=1) == data.test.labels).double().mean().item()


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_model_is_as_good_as_its_record_says(name):
    """The first 1,000 images to 0.2 points; those of 10,000 are within what chance explains."""
    record = shipped_models()[name]
    assert record["accuracy"] >= MODELS[name.removesuffix(reading.SHIPPED)][1]
    assert abs(accuracy_of_first_1000(name) - record["accuracy_of_first_1000"]) <= 0.002
    assert abs(record["accuracy_of_first_1000"] - record["accuracy"]) < 0.04
    assert {"seed", "epochs", "precision", "date", "about"} <= set(record)


def test_load_pretrained_says_what_the_model_is(shipped, capsys):
    """One sentence with the accuracy; the model in float32; other sizes and classes too."""
    model = load_pretrained(NAME)
    shown = " ".join(capsys.readouterr().out.split())
    accuracy = shipped_models()[NAME]["accuracy"]
    assert shown.startswith(f"{NAME}: the textbook model")
    assert "trained on ten classes of 32-pixel photographs" in shown and f"{accuracy:.1%}" in shown
    assert type(model).__name__ == "VisionTransformer" and not model.training
    assert {tensor.dtype for tensor in model.parameters()} == {torch.float32}
    larger = load_pretrained(NAME, image_size=48, num_classes=4)
    assert larger(torch.zeros(1, 3, 48, 48)).shape == (1, 4)


def test_load_pretrained_takes_a_file_of_the_same_shape_only(shipped, tmp_path, capsys):
    """Such weights have no record to speak of; others are refused in one line."""
    own, _ = load_checkpoint(shipped)
    path = tmp_path / "own.safetensors"
    save_tensors(path, {key: value * 0 for key, value in own.items()})
    assert load_pretrained(NAME, weights=path).head.weight.abs().sum() == 0
    assert capsys.readouterr().out == ""
    save_tensors(path, {**own, "head.weight": torch.zeros(3, 96)})
    with pytest.raises(ValueError, match="do not fit.*head.weight") as refusal:
        load_pretrained(NAME, weights=path)
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "there is no weights file"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"cut"), "cannot be read"),
        (lambda folder: shutil.rmtree(folder), "no model 'vit_pico.*Choices: none"),
    ],
    ids=["missing", "damaged", "no-folder"],
)
def test_missing_or_damaged_files_are_named(shipped, break_it, words):
    """One line each."""
    break_it(shipped)
    with pytest.raises(ValueError, match=words) as refusal:
        load_pretrained(NAME)
    assert len(str(refusal.value).splitlines()) == 1


def test_list_shows_the_models_and_how_they_were_trained(shipped, capsys):
    """One line of words and one with the command."""
    assert main(["list", "--models"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(NAME) and "vitedu train --preset" in shown[1] and len(shown) == 2


def test_predict_takes_the_best_model_and_is_honest(shipped, tmp_path, capsys):
    """Three names with shares for a photograph; a plain colour is unlike all ten classes."""
    worse = json.loads((shipped / "config.json").read_text())
    worse["shipped"] |= {"accuracy": 0.01, "about": "worse"}
    shutil.copytree(shipped, shipped.with_name("a.cifar10"))
    (shipped.with_name("a.cifar10") / "config.json").write_text(json.dumps(worse))
    limit = shipped_models()[NAME]["unlike"]["limit"]
    plain = tmp_path / "plain.png"
    Image.new("RGB", (1, 1), "red").save(plain)
    for factor, is_unlike in ((0.0, True), (1e6, False)):
        config = json.loads((shipped / "config.json").read_text())
        config["shipped"]["unlike"]["limit"] = limit * factor
        (shipped / "config.json").write_text(json.dumps(config))
        assert main(["predict", str(PHOTOGRAPHS / "chelsea.jpg"), str(plain)]) == 0
        *first, cat, red, last = map(str.strip, capsys.readouterr().out.splitlines())
        assert first[0].startswith(NAME)
        assert "ten classes of 32-pixel photographs" in " ".join(first)
        assert cat.count("%") == 3 and ("unlike all ten" in cat) is is_unlike
        assert ("unlike all ten" in red) is is_unlike
        assert last.startswith("A share is no certainty")


def test_distance_is_that_of_mahalanobis_to_the_nearest_class(shipped):
    """Against the formula with the inverse covariance; the limit lets 95 % of validation pass."""
    model, info = load_pretrained(NAME), load_checkpoint(shipped)[1]["data"]
    data = load_data(limit=1000, held_out=1000)
    known, unlike = measure_unlike(model, data, info)
    features = [features_of(model, s.images, info).double() for s in (data.train, data.validation)]
    means = torch.stack([features[0][data.train.labels == k].mean(dim=0) for k in range(10)])
    rest = features[0] - means[data.train.labels]
    covariance = rest.T @ rest / (len(rest) - 1)
    inverse = (covariance + 1e-3 * covariance.diagonal().mean() * torch.eye(96)).inverse()
    away = features[1][:, None] - means  # (N, K, D)
    expected = torch.einsum("nkd,de,nke->nk", away, inverse, away).amin(dim=1).sqrt()
    distances = class_distance(features[1].float(), known)
    torch.testing.assert_close(distances, expected.float(), rtol=2e-2, atol=2e-2)  # half precision
    assert (distances > unlike["limit"]).float().mean().item() == pytest.approx(0.05)


@pytest.mark.parametrize("mode", ["L", "CMYK", "I;16", "one pixel"])
def test_predict_takes_unusual_photographs(shipped, tmp_path, capsys, mode):
    """Grey, CMYK and 16-bit pictures look as they should to the model; one pixel is enough."""
    ramp = np.linspace(0, 255, 64 * 64).reshape(64, 64).astype(np.uint8)
    plain = Image.fromarray(ramp)
    unusual = {
        "L": plain,
        "CMYK": Image.merge("RGB", [plain] * 3).convert("CMYK"),
        "I;16": Image.fromarray(ramp.astype(np.uint16) << 8),
        "one pixel": Image.new("RGB", (1, 1)),
    }[mode]
    path = tmp_path / ("x.tif" if mode == "CMYK" else "x.png")
    unusual.save(path)
    prepare = preprocessing(NAME)
    if mode != "one pixel":
        with Image.open(path) as opened:
            torch.testing.assert_close(prepare(opened), prepare(plain), atol=0.1, rtol=0)
    assert main(["predict", str(path)]) == 0
    assert f"{path}: " in capsys.readouterr().out


@pytest.mark.parametrize("most", [1000, 3000])
def test_enormous_photograph_is_one_line(shipped, tmp_path, capsys, monkeypatch, most):
    """Refused with a remedy from twice Pillow's limit on; taken without a warning below."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    path = tmp_path / "x.png"
    Image.new("L", (64, 64)).save(path)  # 4,096 pixels
    assert main(["predict", str(path)]) == (2 if most == 1000 else 0)
    error = capsys.readouterr().err
    assert "make it smaller" in error if most == 1000 else error == ""
