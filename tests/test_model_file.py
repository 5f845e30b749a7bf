"""vitedu.fitting.model_file: ``vitedu train --model my_vit.py``, and who runs the text again."""

import json
import re
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from vitedu.__main__ import main
from vitedu.course.references import reference_source
from vitedu.exercises import find
from vitedu.exporting.export import export_model
from vitedu.fitting.checkpoints import load_checkpoint
from vitedu.fitting.model_file import FileRun

SMALL = ["--set", "embed_dim=24", "depth=1", "patch_size=8", "batch_size=8", "--epochs", "2"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Give a folder with images of two classes, dark and bright, and a my_vit.py."""
    monkeypatch.setenv("VITEDU_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for split, count in (("train", 20), ("test", 4)):
        for name, brightness in (("dim", 0), ("light", 140)):
            (tmp_path / "images" / split / name).mkdir(parents=True)
            for i in range(count):
                pixels = (rng.integers(0, 100, (32, 32, 3)) + brightness).astype(np.uint8)
                Image.fromarray(pixels).save(tmp_path / "images" / split / name / f"{i}.png")
    export_model("my_vit.py")
    yield tmp_path
    sys.modules.pop("my_vit", None)


def train(out, *words):
    """Train the file; give the status."""
    return main(["train", "--model", "my_vit.py", "--data", "images", "--out", out, *SMALL, *words])


def test_a_run_trains_by_the_file_s_own_parts_and_is_measured_again(folder, capsys):
    """Its own loop makes the epochs; the folder keeps the text, which runs only if it is named."""
    text = (folder / "my_vit.py").read_text("utf-8")
    loop = reference_source(find("train_one_epoch"))
    loop = loop.replace("    model.train()\n", '    model.train()\n    print("my own epoch")\n', 1)
    text = re.sub(r"^train_one_epoch = course_part.*$", lambda _: loop, text, flags=re.M)
    (folder / "my_vit.py").write_text(text, "utf-8")
    assert train("run") == 0
    assert capsys.readouterr().out.count("my own epoch") == 2
    about = json.loads((folder / "run/config.json").read_text("utf-8"))
    assert (about["preset"], about["model_file"], about["model"]["depth"]) == ("my_vit.py",) * 2 + (
        1,
    )
    assert (folder / "run/my_vit.py").read_text("utf-8") == text
    assert len((folder / "run/metrics.jsonl").read_text().splitlines()) == 2

    (folder / "run/my_vit.py").write_text("raise SystemExit('it ran')", "utf-8")
    photo = "images/test/dim/0.png"
    for words in (["eval"], ["predict", photo]):
        assert main([*words, "--checkpoint", "run"]) == 2
        assert "to run it or its copy, name it: --model run/my_vit.py" in capsys.readouterr().err
        assert main([*words, "--checkpoint", "run", "--model", "run/my_vit.py"]) == 2
        assert "run/my_vit.py cannot be run: SystemExit: it ran" in capsys.readouterr().err
    assert main(["eval", "--checkpoint", "run", "--model", "my_vit.py"]) == 0
    accuracy = f"{about['outcome']['test_accuracy']:.1%} of 8 images"
    assert accuracy in capsys.readouterr().out
    assert main(["predict", photo, "--checkpoint", "run", "--model", "my_vit.py"]) == 0
    assert f"{photo}: " in capsys.readouterr().out


def test_resume_ends_where_an_unbroken_run_does(folder, monkeypatch, capsys):
    """To the last bit; another text, or none, is refused."""
    assert train("whole") == 0
    epoch = FileRun.epoch

    def stop_at_the_second(run, number):
        if number:
            raise KeyboardInterrupt
        return epoch(run, number)

    monkeypatch.setattr(FileRun, "epoch", stop_at_the_second)
    assert train("part") == 130
    monkeypatch.setattr(FileRun, "epoch", epoch)
    capsys.readouterr()
    assert main(["train", "--out", "part", "--resume"]) == 2
    assert "trains a file, of which part/my_vit.py is a copy" in capsys.readouterr().err
    text = (folder / "my_vit.py").read_text("utf-8")
    (folder / "my_vit.py").write_text(text + "# edited\n", "utf-8")
    assert train("part", "--resume") == 2
    assert "my_vit.py is not what the run began with" in capsys.readouterr().err
    (folder / "my_vit.py").write_text(text, "utf-8")
    assert train("part", "--resume") == 0
    whole, part = (load_checkpoint(folder / name)[0] for name in ("whole", "part"))
    assert all(torch.equal(whole[name], part[name]) for name in whole)


REFUSED = {
    "--preset vit_pico_patch4_32": "--model and --preset both say what to train",
    "--set cutmix_share=0.5": "the loop of a file takes epochs, batch_size, lr,",
    "--set rope=true": "the ViTConfig of my_vit.py has no rope",
    "--set num_heads=5": "embed_dim must be divisible by num_heads",
    "--model plain.py": "plain.py has no ViTConfig, VisionTransformer, MuonAndAdamW",
    "--model broken.py": "broken.py cannot be run: SyntaxError",
    "--model nowhere.py": "nowhere.py",
}


@pytest.mark.parametrize(("words", "said"), REFUSED.items(), ids=REFUSED)
def test_what_a_file_cannot_do_is_one_line(folder, capsys, words, said):
    """A word that its loop does not know, a file of another kind; no run is left behind."""
    (folder / "plain.py").write_text("x = 1\n", "utf-8")
    (folder / "broken.py").write_text("x = (\n", "utf-8")
    assert train("run", *words.split()) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.splitlines()) == 1
    assert not (folder / "run/config.json").exists()
