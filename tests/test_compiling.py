"""vitedu.fitting.compiling: the same training, with a compiler and without."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from vitedu.fitting import TrainConfig, fit
from vitedu.fitting.compiling import CompiledModel

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
def test_compiled_training_gives_the_same_model(compiler, monkeypatch):
    """Weights within rounding under the plain names; the average is of the same kind."""
    calls = []
    call = CompiledModel.__call__

    def watch(self, images):
        result = call(self, images)
        calls.append((len(images), self.compiled is not None))
        return result

    monkeypatch.setattr(CompiledModel, "__call__", watch)
    # compiled code draws in its own way
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: x)
    expected, found = trained(ema_decay=0.5), trained(ema_decay=0.5, compile=True)
    assert calls == [(8, True), (8, True), (4, True)] * 2  # the short one is not translated
    assert list(found.state_dict()) == list(expected.state_dict())
    for name, tensor in expected.state_dict().items():
        torch.testing.assert_close(found.state_dict()[name], tensor, atol=1e-5, rtol=0)


@pytest.mark.slow  # loads torch's compiler
def test_training_goes_on_without_a_compiler(monkeypatch, capsys):
    """One line says why, and the result is that of plain training to the last bit."""

    def compile_nothing(model, **options):
        def fail(images):
            torch.rand(3)  # the attempt may have drawn
            raise RuntimeError("no C++ compiler found\nmore lines")

        return fail

    monkeypatch.setattr(torch, "compile", compile_nothing)
    expected, found = trained(), make_model()
    fit(found, DATA, TrainConfig(**{**vars(CONFIG), "compile": True}))
    assert "without torch.compile: RuntimeError: no C++ compiler found\n" in capsys.readouterr().err
    for name, tensor in expected.state_dict().items():
        assert torch.equal(tensor, found.state_dict()[name])


def test_mistake_of_the_model_is_not_taken_for_one_of_the_compiler(monkeypatch):
    """What fails without translation too is raised as it is."""
    monkeypatch.setattr(torch, "compile", lambda model, **options: model)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        CompiledModel(nn.Linear(3, 2), 4, lambda line: None)(torch.zeros(4, 5))
