"""vitedu.fitting.saved_run: ``vitedu train --pretrained``, from weights to own kinds."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict

import pytest
import torch

from vitedu.__main__ import main
from vitedu.data import load_data
from vitedu.data.drawings import KINDS, draw_folder
from vitedu.exporting.export import export_model
from vitedu.extras.options import build_model, preset
from vitedu.fitting import TrainConfig
from vitedu.fitting.checkpoints import load_checkpoint, save_checkpoint
from vitedu.fitting.loop import Run
from vitedu.fitting.optimizers import make_optimizer
from vitedu.fitting.saved_run import load_run
from vitedu.pretrained.loading import load_pretrained
from vitedu.pretrained.published import preprocessing

pytestmark = pytest.mark.slow

NAME = "vit_pico_patch4_32.cifar10"


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    """Give a folder of its own, with nine drawings of each kind in drawings/."""
    place = tmp_path_factory.mktemp("place")
    draw_folder(place / "drawings", count=9)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("VITEDU_CACHE", str(place / "cache"))
        yield place


def described(out):
    """Read the description of a run."""
    return json.loads((out / "config.json").read_text())


def test_drawings_are_photographs_in_class_folders(place, tmp_path):
    """No square, one seed the same bytes, and a folder that is there stays as it is."""
    again = draw_folder(tmp_path / "again", count=9)
    files = sorted(path.relative_to(again) for path in again.rglob("*.jpg"))
    assert len(files) == 27 and {path.parent.name for path in files} == set(KINDS)
    assert all((again / f).read_bytes() == (place / "drawings" / f).read_bytes() for f in files)
    assert len(list(draw_folder(again, count=2).rglob("*.jpg"))) == 27


def test_three_commands_from_a_folder_to_a_name(place, capsys):
    """The weights' size, mean and deviation stay with the run; eval and predict use them."""
    out = place / "run"
    words = ["--pretrained", NAME, "--image-size", "24", "--freeze", "2", "--epochs", "4"]
    assert main(["train", "--data", "drawings", "--out", str(out), *words]) == 0
    assert "of them learned" in capsys.readouterr().out
    found, known = described(out), preprocessing(NAME)
    assert (found["pretrained"], found["weights"], found["model"]["num_classes"]) == (NAME, None, 3)
    assert (
        found["data"]["mean"] == torch.tensor(known.mean).tolist() and found["train"]["freeze"] == 2
    )
    tensors, start = load_checkpoint(out)[0], load_pretrained(NAME, image_size=24).state_dict()
    assert tensors["head.weight"].shape == (3, 96) and tensors["pos_embed"].shape == (1, 37, 96)
    same = {name for name in start if torch.equal(start[name], tensors[name])}
    still = ("patch_embed", "cls_token", "pos_embed", "blocks.0", "blocks.1")
    assert same == {name for name in start if name.startswith(still)}
    capsys.readouterr()
    assert main(["eval", "--checkpoint", str(out)]) == 0
    assert f"test       {found['outcome']['test_accuracy']:.1%} of 3" in capsys.readouterr().out
    photo = "drawings/boat/boat_01.jpg"
    assert main(["predict", photo, "--checkpoint", str(out)]) == 0
    name, share = capsys.readouterr().out.split(": ")[1].split("%")[0].split()
    file = export_model(place / "my_vit_complete.py", complete=True)
    words = [sys.executable, file, photo, "--weights", out]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert said[1] == name and abs(float(said[0][:-1]) - float(share)) < 1.5


def test_a_student_s_own_file_starts_from_weights_and_a_run_from_a_run(place):
    """Its blocks and its loop; eval reads the run with the file. A run brings head and size."""
    (place / "own").mkdir()
    file, out = export_model(place / "own" / "my_vit.py"), place / "by_file"
    words = ["train", "--data", "drawings", "--epochs", "1", "--pretrained"]
    assert main([*words, NAME, "--out", str(out), "--model", str(file)]) == 0
    assert described(out)["pretrained"] == NAME
    assert main(["eval", "--checkpoint", str(out), "--model", str(file)]) == 0
    assert main([*words, str(place / "run"), "--out", str(place / "on")]) == 0
    assert described(place / "on")["model"]["image_size"] == 24


@pytest.mark.parametrize("changes", [{}, {"optimizer": "muon"}], ids=["adamw", "muon"])
def test_layer_decay_gives_each_block_its_rate(changes):
    """Those of exercise 9.3: every parameter in one group, block i of L at decay ** (L - i)."""
    model = build_model(preset("vit_pico_patch4_32"))
    config = TrainConfig(layer_decay=0.5, **changes)
    groups = make_optimizer(model, config, torch.device("cpu")).param_groups
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    share = {names[id(p)]: group["lr_share"] for group in groups for p in group["params"]}
    assert len(share) == len(names) == sum(len(group["params"]) for group in groups)
    some = share["pos_embed"], share["blocks.0.mlp.fc1.weight"], share["head.bias"]
    assert some == (0.5**5, 0.5**4, 1.0)


def test_steps_follow_the_rates_of_the_groups():
    """A first step of AdamW moves a weight by its rate, and frozen ones not at all."""
    data = load_data("shapes", limit=8, held_out=1)
    model = build_model(preset("vit_pico_patch4_32"))
    sizes = {"epochs": 9, "batch_size": 8, "warmup_share": 0, "device": "cpu"}
    config = TrainConfig(layer_decay=0.1, freeze=1, **sizes)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    run = Run(model, data, config)
    run.step(torch.arange(8), 1e-3, 0)
    moved = {n: (t - before[n]).abs().max().item() for n, t in model.state_dict().items()}
    assert moved["patch_embed.proj.weight"] == moved["blocks.0.attn.qkv.weight"] == 0
    assert moved["head.bias"] == pytest.approx(1e-3, rel=0.01)
    assert moved["blocks.3.mlp.fc2.bias"] == pytest.approx(1e-4, rel=0.01)
    assert moved["blocks.1.mlp.fc2.bias"] == pytest.approx(1e-6, rel=0.05)


def test_a_run_killed_in_the_middle_ends_in_the_same_bytes(place):
    """SIGKILL after two epochs, then --resume; one thread. The file of weights is equal."""
    words = [sys.executable, "-m", "vitedu", "train", "--out"]
    more = ["--data", "drawings", "--pretrained", NAME, "--epochs", "9", "--layer-decay", "0.8"]
    alone = {"env": os.environ | {"OMP_NUM_THREADS": "1"}, "stdout": subprocess.DEVNULL}
    subprocess.run([*words, "whole", *more], check=True, **alone)
    process, rows = (
        subprocess.Popen([*words, "killed", *more], **alone),
        place / "killed" / "metrics.jsonl",
    )
    while not rows.exists() or rows.read_text().count("\n") < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (place / "killed" / "state.pt").exists()
    done = rows.read_text().count("\n")
    subprocess.run([*words, "killed", "--resume"], check=True, **alone)
    found = [(place / run / "model.safetensors").read_bytes() for run in ("whole", "killed")]
    assert 2 <= done < 9 and found[0] == found[1]
    assert described(place / "killed")["data"] == described(place / "whole")["data"]


def test_a_run_killed_before_its_first_epoch_keeps_its_start(place, monkeypatch):
    """Without a state the folder's own weights are where it begins."""
    words = ["train", "--data", "drawings", "--pretrained", NAME, "--epochs", "1", "--out"]
    with monkeypatch.context() as patch:
        patch.setattr("vitedu.fitting.loop.Run.all_epochs", lambda *_, **__: exit())
        with pytest.raises(SystemExit):
            main([*words, str(place / "early")])
    assert main(["train", "--out", str(place / "early"), "--resume"]) == 0
    assert main([*words, str(place / "straight")]) == 0
    found, expected = (load_checkpoint(place / run)[0] for run in ("early", "straight"))
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_a_published_shape_is_rebuilt_from_its_run(tmp_path):
    """A norm before the blocks and another eps are kept: the logits are the same."""
    model = build_model(preset("vit_pico_patch4_32", norm_first=True, norm_eps=1e-3)).eval()
    save_checkpoint(tmp_path, model, {"model": asdict(model.config)})
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(load_run(tmp_path, "cpu")[0](images), model(images))
