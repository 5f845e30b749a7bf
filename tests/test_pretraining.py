"""Shipped models that ``vitedu train`` does not know: a CNN, and encoders without labels."""

import pytest
import torch

from vitedu.__main__ import main
from vitedu.bench.pretraining import CNN, DINO, MASKED, photo_view, pretrain
from vitedu.data import load_data
from vitedu.data.photograph import FOLDER as PHOTOGRAPHS
from vitedu.extras.options import build_model, preset
from vitedu.less_data import DistilledViT, MaskedAutoencoder
from vitedu.pretrained import load_pretrained, preprocessing, reading
from vitedu.pretrained.reading import shipped_models


@pytest.mark.parametrize(("name", "width"), [(CNN, 10), (MASKED, 96), (DINO, 96)])
def test_models_come_with_names_or_with_features(capsys, name, width):
    """A CNN gives logits; what no label taught gives features, or gets a head where asked."""
    name += reading.SHIPPED
    model = load_pretrained(name)
    said = " ".join(capsys.readouterr().out.split())
    record = shipped_models()[name]
    assert f"{record['accuracy']:.1%}" in said
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, width) and not model.training
    names = preprocessing(name).class_names
    if width == 10:
        assert "labels" not in said.partition(";")[0] and names == load_data(limit=1).class_names
        with pytest.raises(ValueError, match="CNN for 32 pixels"):
            load_pretrained(name, num_classes=3)
    else:
        assert "without labels" in said and names is None
        assert load_pretrained(name, num_classes=10)(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert main(["predict", "--pretrained", name, str(PHOTOGRAPHS / "chelsea.jpg")]) == 2
    assert ("names no pictures" if width == 10 else "names nothing") in capsys.readouterr().err


def test_views_differ_and_stay_photographs():
    """Two views of an image differ; the range stays; about one in five is grey."""
    images = load_data(limit=512, held_out=10).train.images.float()
    draws = torch.Generator().manual_seed(0)
    one, other = photo_view(images, draws), photo_view(images, draws)
    assert (one - other).abs().mean() > 10 and one.min() >= 0 and one.max() <= 255
    grey = (one.amax(dim=1) - one.amin(dim=1)).amax(dim=(1, 2)) < 1e-3
    assert 0.1 < grey.double().mean() < 0.35


def test_unknown_names_and_fused_encoders_are_refused(tmp_path):
    """One line each; the last block of a fused encoder would leave no patch to decode."""
    with pytest.raises(ValueError, match=f"no model 'cnn'.*{CNN}"):
        pretrain("cnn", tmp_path)
    with pytest.raises(ValueError, match="epochs must be positive"):
        pretrain(CNN, tmp_path, epochs=0, data=load_data(limit=1, held_out=10))
    for name, value in {"fused": True, "rope": True, "num_registers": 2}.items():
        with pytest.raises(ValueError, match=f"an encoder with {name} cannot see a few patches"):
            MaskedAutoencoder(build_model(preset("vit_pico_patch4_32", **{name: value})))
    with pytest.raises(ValueError, match="has one token; use fused=False"):
        DistilledViT(preset("vit_pico_patch4_32", fused=True, num_registers=1))
