"""vitedu.fitting.loop: a run with a break in it ends exactly where one without does."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from vitedu.extras.options import VisionTransformerWithOptions, ViTConfigWithOptions
from vitedu.fitting import TrainConfig, fit
from vitedu.fitting.checkpoints import save_tensors
from vitedu.ground import files

MEASURED = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "lr")
PLAIN = TrainConfig(
    epochs=3, batch_size=16, lr=1e-2, crop_padding=1, device="cpu", precision="float32"
)


def split(n, seed):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (n, 3, 8, 8), generator=generator, dtype=torch.uint8)
    labels = torch.randint(0, 3, (n,), generator=generator)
    return SimpleNamespace(images=images, labels=labels)


DATA = SimpleNamespace(train=split(40, 0), validation=split(20, 1), mean=[0.5] * 3, std=[0.2] * 3)


class WithDropout(nn.Module):
    """A small ViT that also draws from torch's own generator and counts, in a buffer."""

    def __init__(self, pool="cls"):
        super().__init__()
        torch.manual_seed(0)
        self.vit = VisionTransformerWithOptions(
            ViTConfigWithOptions(8, 4, num_classes=3, embed_dim=8, depth=1, num_heads=2, pool=pool)
        )
        self.norm = nn.BatchNorm2d(3)
        self.stop_at = None  # training step at which the user presses Ctrl-C
        self.calls = 0

    def forward(self, images):
        self.calls += self.training
        if self.stop_at == self.calls:
            raise KeyboardInterrupt
        return nn.functional.dropout(self.vit(self.norm(images)), 0.3, self.training)


def run(config, path=None, *, stop_at=None, data=DATA, **options):
    """Train one such model; return it and what happened."""
    torch.manual_seed(len(str(path)) + (stop_at or 0))  # the caller's state does not matter
    model = WithDropout(**options)
    model.stop_at = stop_at
    return model, fit(model, data, config, show_progress=False, resume=path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"optimizer": "muon", "ema_decay": 0.9, "precision": "bfloat16", "clip_norm": 0.0},
        {"mixup_share": 0.4, "cutmix_share": 0.4, "policy_share": 0.5, "erasing_share": 0.5},
        {"precision": "float16", "label_smoothing": 0.1, "clean_epochs": 1, "mixup_share": 1.0},
    ],
    ids=["adamw", "muon-average-bfloat16", "mixing", "float16"],
)
def test_resumed_run_equals_the_unbroken_one_to_the_last_bit(tmp_path, fields):
    """Weights, buffers and every measured number, whatever the optimizer and the step."""
    config = replace(PLAIN, **fields)
    whole, expected = run(config)
    for stop_at in (2, 5, 7):  # in the first epoch and the second; as the third begins
        path = tmp_path / f"state {stop_at}"
        _, first = run(config, path, stop_at=stop_at)
        assert first.interrupted and len(first.rows) == (stop_at - 1) // 3  # three steps an epoch
        resumed, found = run(config, path)
        assert not found.interrupted
        for name in MEASURED:
            assert found.column(name) == expected.column(name), name
        for name, tensor in whole.state_dict().items():
            assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_many_breaks_change_nothing(tmp_path):
    """A run may be broken in each epoch; without a class token too, whose tensor is empty."""
    config = replace(PLAIN, optimizer="muon", ema_decay=0.9)
    whole, expected = run(config, pool="mean")
    for stop_at in (5, 5, 2):  # steps of each attempt: four of the run, then four more, then one
        run(config, tmp_path / "state", stop_at=stop_at, pool="mean")
    resumed, found = run(config, tmp_path / "state", pool="mean")
    assert found.column("train_loss") == expected.column("train_loss")
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_finished_state_gives_its_outcome_at_once(tmp_path):
    """Not a step more: the cell of a notebook can be run again."""
    _, expected = run(PLAIN, tmp_path / "state")
    again, found = run(PLAIN, tmp_path / "state")
    assert again.calls == 0 and found.rows == expected.rows


def test_state_is_tensors_and_numbers_of_whole_epochs(tmp_path):
    """Nothing in it can be executed; the model alone keeps the steps of the unfinished epoch."""
    model, _ = run(PLAIN, tmp_path / "state", stop_at=5)
    state = torch.load(tmp_path / "state", weights_only=True)
    assert state["settings"]["lr"] == 1e-2 and len(state["rows"]) == 1
    assert not torch.equal(model.vit.head.weight, state["parts"]["learner"]["vit.head.weight"])


def test_state_survives_a_death_while_it_is_written(tmp_path, monkeypatch):
    """The file of the epoch before is still there, whole."""
    path, writes = tmp_path / "state", []
    fsync = files.os.fsync

    def die(descriptor):
        writes.append(descriptor)
        if len(writes) == 3:  # at the start, after epoch 1, after epoch 2
            raise OSError("the disk is gone")
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", die)
        with pytest.raises(OSError, match="the disk is gone"):
            run(PLAIN, path)
    assert len(torch.load(path, weights_only=True)["rows"]) == 1
    whole, _ = run(PLAIN)
    resumed, _ = run(PLAIN, path)
    assert torch.equal(whole.vit.head.weight, resumed.vit.head.weight)


OTHERS = {
    "lr": ({"lr": 2e-2}, "these differ: lr was 0.01, is 0.02."),
    "epochs": ({"epochs": 5}, r"depends on epochs\), and these differ: epochs was 3, is 5."),
    "two": (dict(optimizer="muon", seed=7), "optimizer was adamw, is muon, seed was 0, is 7"),
    "betas": ({"betas": (0.9, 0.99)}, r"betas was \(0.9, 0.95\), is \(0.9, 0.99\)"),
    "precision": ({"precision": "bfloat16"}, "precision in use was float32, is bfloat16"),
}


def test_resume_refuses_another_config(tmp_path):
    """Every field that differs is named with both values."""
    run(PLAIN, tmp_path / "state", stop_at=5)
    for fields, message in OTHERS.values():
        with pytest.raises(ValueError, match=message):
            run(replace(PLAIN, **fields), tmp_path / "state")


def test_resume_refuses_other_images_and_another_model(tmp_path):
    """Both are named, and the model that was given is left as it was."""
    run(PLAIN, tmp_path / "state", stop_at=5)
    other = SimpleNamespace(**{**vars(DATA), "train": split(40, 9)})
    with pytest.raises(ValueError, match=r"training images was 40 \(\w{8}\), is 40 \(\w{8}\)"):
        run(PLAIN, tmp_path / "state", data=other)
    with pytest.raises(ValueError, match="holds the state of another model: .*cls_token"):
        run(PLAIN, tmp_path / "state", pool="mean")


def test_resume_refuses_files_that_are_no_state(tmp_path):
    """A checkpoint, and a file of anything."""
    save_tensors(tmp_path / "weights", {"weight": torch.ones(2)})
    with pytest.raises(ValueError, match="weights holds no state of a training run"):
        run(PLAIN, tmp_path / "weights")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="text holds no state of a training run"):
        run(PLAIN, tmp_path / "text")
