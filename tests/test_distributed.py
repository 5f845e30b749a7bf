"""vitedu.fitting.distributed: processes that share every batch end where one alone does."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from vitedu.fitting.distributed import Processes, own_device
from vitedu.fitting.loop import Run, TrainConfig, fit
from vitedu.options import VisionTransformerWithOptions, ViTConfigWithOptions

pytestmark = pytest.mark.slow

PLAIN = TrainConfig(2, batch_size=8, lr=3e-3, crop_padding=1, device="cpu", precision="float32")
MIXING = dict(mixup_share=0.5, cutmix_share=0.5, policy_share=0.5)
CASES = {
    "adamw": PLAIN,
    "muon, average, mixing": replace(PLAIN, optimizer="muon", ema_decay=0.9, **MIXING),
    "no clipping, smoothing": replace(PLAIN, clip_norm=0.0, label_smoothing=0.1),
}
NUM_TRAIN = 41  # batches of 8 and one of 1, of which a second process has no image


def made_data():
    """Images whose class shows in their brightness, the same ones in every process."""
    generator = torch.Generator().manual_seed(0)

    def split(n):
        labels = torch.randint(0, 3, (n,), generator=generator)
        images = torch.randint(0, 90, (n, 3, 8, 8), generator=generator)
        images += 80 * labels.view(-1, 1, 1, 1)
        return SimpleNamespace(images=images.byte(), labels=labels)

    scale = dict(mean=[0.5] * 3, std=[0.3] * 3)
    return SimpleNamespace(train=split(NUM_TRAIN), validation=split(20), **scale)


def train_case(name, seed=0):
    """Train one case; return weights and history."""
    torch.manual_seed(seed)
    pool = "cls" if name == "adamw" else "mean"
    config = ViTConfigWithOptions(
        8, 4, num_classes=3, embed_dim=16, depth=2, num_heads=2, pool=pool
    )
    model = VisionTransformerWithOptions(config)
    history = fit(model, made_data(), CASES[name], show_progress=False)
    return model.state_dict(), history


def torchrun(*words, cwd):
    """Start two processes on the CPU and give their common outcome."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        command += ["--master-addr=127.0.0.1", f"--master-port={free.getsockname()[1]}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*command, *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )


SCRIPT = """
import json, os, sys
sys.path.insert(0, {tests!r})
from safetensors.torch import save_file
from test_distributed import CASES, train_case
rank = os.environ["RANK"]
for i, name in enumerate(CASES):
    weights, history = train_case(name, seed=int(rank))  # rank 1 starts with the weights of rank 0
    save_file(weights, f"{{i}}-{{rank}}.safetensors")
    rows = [[history.processes], history.column("train_loss"), history.column("train_accuracy"),
            history.column("validation_loss")]
    open(f"{{i}}-{{rank}}.json", "w").write(json.dumps(rows))
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The folder in which two processes left what became of each case."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "script.py").write_text(SCRIPT.format(tests=os.path.dirname(__file__)))
    done = torchrun("script.py", cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize("case", range(len(CASES)), ids=list(CASES))
def test_two_processes_equal_one(shared, case):
    """Weights and losses within rounding, accuracies exactly; both processes end with one model."""
    expected, history = train_case(list(CASES)[case])
    found, other = (load_file(shared / f"{case}-{rank}.safetensors") for rank in (0, 1))
    for name, tensor in expected.items():
        # twelve steps move weights by 0.018; sums in another order differ by 2e-6 in float32 and by
        # 4e-5 where Muon orthogonalises in bfloat16
        limit = 2e-4 if "muon" in list(CASES)[case] else 1e-5
        torch.testing.assert_close(found[name], tensor, atol=limit, rtol=0, msg=name)
        assert torch.equal(found[name], other[name]), name
    (count,), loss, accuracy, validation = json.loads((shared / f"{case}-0.json").read_text())
    assert count == 2
    assert loss == pytest.approx(history.column("train_loss"), rel=1e-4)
    assert accuracy == pytest.approx(history.column("train_accuracy"), abs=1e-9)
    assert validation == pytest.approx(history.column("validation_loss"), rel=1e-4)


def test_torchrun_trains_from_the_command_line(tmp_path):
    """The same command: one report, one folder, the effective batch stated."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 3)):
        for name in ("dim", "light"):
            (tmp_path / "images" / split / name).mkdir(parents=True)
            for i in range(count):
                pixels = rng.integers(0, 250, (32, 32, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(tmp_path / "images" / split / name / f"{i}.png")
    words = "-m vitedu train --data images --out x --device cpu --epochs 1 --batch-size 5"
    done = torchrun(*words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("accuracy  ") == 1 and done.stdout.count("written to x") == 1
    assert "batch     5 images a step, at most 3 on each of 2 devices" in done.stdout
    assert done.stderr.count("train loss") == 1
    assert (tmp_path / "x" / "model.safetensors").exists()
    assert not (tmp_path / "x" / "state.safetensors").exists()


@pytest.mark.parametrize("batch_size", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_shares_hold_every_image_once(batch_size, count):
    """The rows that count are a partition of the batch, and nobody is without a row to work on."""
    batch = torch.arange(batch_size)
    shares = [Processes(rank, count).share(batch) for rank in range(count)]
    sizes = [Processes(rank, count).share_size(batch_size) for rank in range(count)]
    counted = torch.cat([share[:size] for share, size in zip(shares, sizes, strict=True)])
    assert sorted(counted.tolist()) == batch.tolist()
    assert all(len(share) == max(size, 1) for share, size in zip(shares, sizes, strict=True))


def test_batch_smaller_than_the_processes_is_refused():
    """Both numbers are in the message."""
    config = replace(PLAIN, batch_size=3)
    with pytest.raises(ValueError, match="batch_size=3, 4 processes"):
        Run(torch.nn.Linear(2, 2), made_data(), config, torch.device("cpu"), Processes(0, 4))


@pytest.mark.parametrize("name", ["cuda:1", "mps"])
def test_device_of_one_process_is_refused_for_several(monkeypatch, name):
    """A named device cannot serve all; without torchrun it is taken as it is."""
    assert str(own_device(name)) == name
    for key, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(key, value)
    with pytest.raises(ValueError, match=f"must be 'cpu' or 'cuda' .got {name}"):
        own_device(name)


def test_each_process_has_a_cuda_device_of_its_own(monkeypatch):
    """LOCAL_RANK chooses; too few devices are named with the number to start."""
    environment = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "LOCAL_RANK": "1"}
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert own_device("cuda") == torch.device("cuda", 1)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="--nproc_per_node=1"):
        own_device("cuda")
