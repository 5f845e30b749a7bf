"""vitedu.fitting: the same training, compiled or not."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from vitedu.fitting import TrainConfig, fit

CONFIG = TrainConfig(
    epochs=2, batch_size=8, lr=1e-2, crop_padding=None, device="cpu", precision="float32"
)


def split(n):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (n, 3, 4, 4), generator=generator, dtype=torch.uint8)
    return SimpleNamespace(images=images, labels=torch.arange(n) % 2)


DATA = SimpleNamespace(train=split(20), validation=split(6), mean=[0.5] * 3, std=[0.2] * 3)


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(48, 2))


def trained(**fields):
    model = make_model()
    fit(model, DATA, TrainConfig(**{**vars(CONFIG), **fields}), show_progress=False)
    return model


@pytest.mark.slow
def test_compiled_training_gives_the_same_model(monkeypatch):
    """Weights within rounding under the plain names; the average is of the same kind.

    What a C++ compiler makes of it is torch's: the graph runs as it was traced.
    """
    sizes, translate = [], torch.compile

    def watch(model, **options):
        translated = translate(model, backend="aot_eager", **options)
        return lambda images: sizes.append(len(images)) or translated(images)

    monkeypatch.setattr(torch, "compile", watch)
    # compiled code draws in its own way
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: x)
    expected, found = trained(ema_decay=0.5), trained(ema_decay=0.5, compile=True)
    assert sizes == [8, 8] * 2  # the short batch is not translated
    assert list(found.state_dict()) == list(expected.state_dict())
    for name, tensor in expected.state_dict().items():
        torch.testing.assert_close(found.state_dict()[name], tensor, atol=1e-5, rtol=0)
