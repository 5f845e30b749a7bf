"""vitedu.fitting.event_files: TensorBoard sees each epoch once; without it nothing happens."""

import importlib.util
import subprocess
import sys

import pytest

from vitedu.fitting import event_files
from vitedu.fitting.event_files import PATTERN, EventFiles
from vitedu.fitting.history import EpochResult

READ = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1])
found.Reload()
for tag in found.Tags()["scalars"]:
    print(tag, *((event.step, round(event.value, 3)) for event in found.Scalars(tag)), sep="|")
"""
WRITE = """
import sys
from vitedu.fitting.event_files import EventFiles
from vitedu.fitting.history import EpochResult
for epochs, loss in (((1, 2), 0.5), ((2, 3), 0.25)):  # the second run goes on from epoch 1
    files = EventFiles(sys.argv[1])
    for epoch in epochs:
        files.add(EpochResult(epoch, loss, 0.5, 0.75, 0.4, 1e-3, 2.0, 100.0))
    files.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="needs tensorboard (extra: test)"
)
def test_tensorboard_reads_each_epoch_once(tmp_path):
    """Losses of both splits share a figure; a run that went on replaces what it did again."""
    for script in (WRITE, READ):  # a process of its own: TensorBoard's libraries warn in theirs
        command = [sys.executable, "-c", script, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob(PATTERN))) == 2
    lines = dict(line.split("|", 1) for line in done.stdout.splitlines())
    assert lines["loss/train"] == "(1, 0.5)|(2, 0.25)|(3, 0.25)"
    assert lines["accuracy/validation"] == "(1, 0.4)|(2, 0.4)|(3, 0.4)"
    both = {f"{kind}/{split}" for kind in ("loss", "accuracy") for split in ("train", "validation")}
    assert set(lines) == both | {"lr", "seconds", "images_per_second"}


def test_nothing_is_written_without_tensorboard(tmp_path, monkeypatch):
    """No failure, no file."""
    monkeypatch.setattr(event_files.importlib.util, "find_spec", lambda name: None)
    files = EventFiles(tmp_path)
    files.add(EpochResult(1, 0.5, 0.5, 0.75, 0.4, 1e-3, 2.0, 100.0))
    files.close()
    assert not files.is_possible and list(tmp_path.iterdir()) == []
