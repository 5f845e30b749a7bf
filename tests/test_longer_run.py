"""vitedu.fitting.longer_run: a run beside the notebook starts, is stopped, goes on and ends."""

import os
import subprocess
import sys
import time

import pytest
import torch

from vitedu.data import load_data
from vitedu.exporting.export import export_model
from vitedu.exporting.importing import load_file
from vitedu.extras.options import preset
from vitedu.fitting import longer_run
from vitedu.vit import VisionTransformer

SHAPES = {"data": "shapes", "limit": 64}  # an epoch of one step, and 1,000 images to validate


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A student's folder with ``my_vit.py``, and a kernel in which somebody looks."""
    monkeypatch.setenv("VITEDU_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("VITEDU_KEEP_SOURCES", "1")
    monkeypatch.delenv("VITEDU_BACKGROUND", raising=False)
    monkeypatch.setattr(longer_run, "kernel_answers", lambda: True)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    if longer_run._is_running():
        longer_run.stop()


def said(capsys, what, *arguments, **options):
    """Call a function of the module, and give the last line that it prints."""
    what(*arguments, **options)
    return capsys.readouterr().out.splitlines()[-1]


def wait_for(is_true, seconds=200):
    """Wait for another process."""
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("minutes", "why"),
    [(10, "switched off"), (None, "Give it minutes"), ("ten", "Give it minutes"), (0, "Give it")],
)
def test_nothing_starts_where_it_is_off_or_nobody_asks(home, capsys, monkeypatch, minutes, why):
    """A plain line says why."""
    if minutes == 10:
        monkeypatch.setenv("VITEDU_BACKGROUND", "0")
    assert why in said(capsys, longer_run.start, minutes, 60.0)
    assert not (home / "store").exists()


def test_nothing_starts_in_the_quick_profile_or_without_a_kernel(home, capsys, monkeypatch):
    """So neither nbval nor the tour starts one."""
    monkeypatch.undo()
    monkeypatch.setenv("VITEDU_HOME", str(home / "store"))
    assert "No longer run is started here" in said(capsys, longer_run.start, 10, 60.0)
    assert not (home / "store").exists()
    assert said(capsys, longer_run.progress) == "No longer run has been started."
    assert said(capsys, longer_run.stop) == "No longer run is going on."


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_run_is_stopped_goes_on_in_another_kernel_and_ends(home, capsys):
    """Never two at a time; the finished one's weights are what the notebook ends with."""
    assert "running" in said(capsys, longer_run.start, 4, 60.0, **SHAPES)
    (folder,) = longer_run._folders()
    assert (folder / "my_vit.py").read_text() == (home / "my_vit.py").read_text()
    assert "running" in said(capsys, longer_run.start, 1, 60.0, **SHAPES)
    assert longer_run._folders() == [folder]
    if hasattr(os, "getpriority"):
        assert os.getpriority(os.PRIO_PROCESS, longer_run._wish(folder)["process"]) == 19
    wait_for(lambda: longer_run._rows(folder))  # and so its state is written
    assert "stopped" in said(capsys, longer_run.stop)
    done = len(longer_run._rows(folder))
    assert 1 <= done < 4 and (folder / longer_run.STATE).is_file()
    assert longer_run.load_newest(VisionTransformer(preset("vit_pico_patch4_32"))) == ""

    (home / "my_vit.py").write_text("edited = True")  # the run keeps what it began with
    code = "from vitedu.fitting import longer_run as run; run.kernel_answers = lambda: True; "
    code += f"run.start(30, 60.0, **{SHAPES})"
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"longer run 1: running, {done} of 4 epochs" in again.stdout, again.stderr
    wait_for(lambda: longer_run._state(folder) == "finished")
    assert "finished, 4 of 4 epochs" in said(capsys, longer_run.progress)
    assert [row["epoch"] for row in longer_run._rows(folder)] == [1, 2, 3, 4]

    fields = {"num_classes": load_data("shapes", limit=8, held_out=8).num_classes}
    model = VisionTransformer(preset("vit_pico_patch4_32", **fields))
    before = model.head.weight.clone()
    assert longer_run.load_newest(model).startswith("4 epochs of longer run 1")
    assert not torch.equal(model.head.weight, before)


def test_weights_lie_beside_the_file_that_reads_them(home, capsys, monkeypatch):
    """``my_vit.py`` names a photograph with them; a model of another shape takes none."""
    data, small = load_data("cifar10", limit=8, held_out=8), preset("vit_pico_patch4_32", depth=1)
    model = VisionTransformer(small)
    place = export_model()
    assert longer_run.save_model(model, data, "one epoch") == place.with_suffix(".pt")
    module = load_file(place)
    loaded, about = module.load_model(place.with_suffix(".pt"))
    assert torch.equal(loaded.head.weight, model.head.weight)
    assert about["data"]["class_names"] == list(data.class_names)
    assert longer_run.load_newest(VisionTransformer(small)) == "one epoch"
    assert longer_run.load_newest(VisionTransformer(preset("vit_pico_patch4_32"))) == ""
    place.with_suffix(".pt").write_bytes(b"damaged")
    assert longer_run.load_newest(VisionTransformer(small)) == ""
    assert "my_vit.pt is passed over" in capsys.readouterr().out
    monkeypatch.setenv("VITEDU_KEEP_SOURCES", "0")
    assert longer_run.save_model(model, data, "another") is None


def test_broken_run_says_its_last_line_and_is_not_gone_on_with(home, capsys, monkeypatch):
    """The next start begins anew, with the epochs that fit the minutes: at least 1, at most 40."""
    spawned = []

    def spawn(folder):
        spawned.append(folder)
        (folder / longer_run.LOG).touch()

    monkeypatch.setattr(longer_run, "_spawn", spawn)
    longer_run.start(480, 60.0)
    (first,) = spawned
    assert longer_run._wish(first)["epochs"] == 40
    (first / longer_run.DESCRIPTION).write_text("{}")
    (first / longer_run.LOG).write_text("begins\nvitedu: the loss is not finite any more")
    assert "not finite any more" in said(capsys, longer_run.progress)
    longer_run.start(1, 300.0)
    (spawned[-1] / longer_run.STATE).write_text("")
    assert "stopped, 0 of 1 epochs" in said(capsys, longer_run.start, 1, 300.0)
    longer_run.start(1, 300.0, anew=True)
    assert [folder.name for folder in spawned] == ["1", "2", "2", "3"]
    (spawned[-1] / longer_run.DESCRIPTION).write_text('{"outcome": {}}')
    assert said(capsys, longer_run.start, 1, 300.0) == "anew=True begins another one."
    assert len(spawned) == 4
