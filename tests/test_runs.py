"""vitedu.fitting.runs and checkpoints: train, eval and predict as commands, on tiny data."""

import json
import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from vitedu.__main__ import main
from vitedu.data import load_data
from vitedu.fitting import loop, runs, saved_run
from vitedu.fitting.checkpoints import load_checkpoint, save_checkpoint
from vitedu.fitting.loop import predict
from vitedu.fitting.saved_run import load_run
from vitedu.pretrained.reading import read_weights

pytestmark = pytest.mark.slow

CLASSES = ("dim", "light")
PICO = "vit_pico_patch4_32.cifar10"
WORDS = "--preset vit_micro_patch8_32 --epochs 3 --lr 2e-3 --set batch_size=8".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of 32 px images of two classes, dark and bright."""
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for split, count in (("train", 20), ("test", 4)):
        for name, brightness in zip(CLASSES, (0, 140), strict=True):
            (root / split / name).mkdir(parents=True)
            for i in range(count):
                pixels = rng.integers(0, 100, (32, 32, 3)) + brightness
                Image.fromarray(pixels.astype(np.uint8)).save(root / split / name / f"{i}.png")
    return root


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """Decoded images go to a folder of the test, not of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITEDU_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    """The folder of one short run."""
    out = tmp_path_factory.mktemp("runs") / "x"
    assert main(["train", "--data", str(folder), "--out", str(out), *WORDS]) == 0
    return out


def names_in(out):
    """What is in the folder of a run."""
    return {path.name for path in out.iterdir()}


def test_train_writes_config_metrics_weights_and_curves(run):
    """One folder holds all: JSON, JSON lines, safetensors, a picture; nothing else."""
    names = {"config.json", "metrics.jsonl", "model.safetensors", "curves.png"}
    assert names_in(run) == names
    config = json.loads((run / "config.json").read_text())
    assert config["preset"] == "vit_micro_patch8_32" and config["model"]["num_classes"] == 2
    assert config["data"]["class_names"] == list(CLASSES)
    assert config["train"]["lr"] == 2e-3 and config["outcome"]["epochs"] == 3
    assert 0 <= config["outcome"]["test_accuracy"] <= 1
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    with Image.open(run / "curves.png") as curves:
        assert curves.width > 300


def test_eval_finds_the_accuracy_that_train_reported(run, folder, capsys):
    """The weights on disk are those that were measured, and data default to the run's own."""
    expected = json.loads((run / "config.json").read_text())["outcome"]["test_accuracy"]
    assert main(["eval", "--checkpoint", str(run)]) == 0
    shown = capsys.readouterr().out
    assert f"test       {expected:.1%} of 8 images" in shown


def test_predict_names_the_most_probable_classes(run, folder, capsys):
    """The confidences are the model's own on that image."""
    path = folder / "test" / "light" / "0.png"
    assert main(["predict", "--checkpoint", str(run), str(path), "--top", "2"]) == 0
    shown = capsys.readouterr().out
    model, _ = load_run(run, "cpu")
    pixels = torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1)[None]
    row = predict(model, pixels, load_data(str(folder)))[0]
    first, second = (f"{CLASSES[k]} {row[k]:.1%}" for k in row.argsort(descending=True))
    assert f"0.png: {first}, {second}" in shown


def test_train_gives_the_same_weights_for_the_same_seed(folder, tmp_path):
    """Two runs of one seed agree to the last bit on the CPU; another seed does not."""
    weights = []
    for number, seed in enumerate("001"):
        out = tmp_path / str(number)
        words = ["--epochs", "1", "--set", "batch_size=16", "--seed", seed, "--device", "cpu"]
        assert main(["train", "--data", str(folder), "--out", str(out), *words]) == 0
        weights.append(weights_of(out)["head.weight"])
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--preset", "vit_micro_patch8_33"], "Did you mean 'vit_micro_patch8_32'"),
        (["--epochs", "0"], "epochs must be positive"),
        (["--set", "crop_padding=-1"], "crop_padding must be None or not negative"),
        (["--lr", "nan"], "lr must be positive"),
        (["--set", "cutmix_shar=1"], "named 'cutmix_shar'. Did you mean cutmix_share?"),
        (["--set", "image_size=64"], "set image_size: --image-size does, one number for square"),
        (["--preset", "vit_tiny_patch16_224", "--image-size", "64"], "takes 224 px and --image-s"),
        (["--image-size", "30"], "image_size=30, patch_size=8, remainder 6"),
        (["--pretrained", PICO, "--preset", "vit_pico_patch4_32"], "of their own, not --preset"),
        (["--pretrained", PICO, "--set", "depth=2"], "of their own, not --set depth"),
        (["--pretrained", "cnn_tiny_32.cifar10"], "is a CNN"),
        (["--weights", "x.pth"], "--weights goes with --pretrained"),
        (["--freeze", "9"], "freeze counts blocks, and there are 4 (got 9)"),
        (["--freeze", "4", "--set", "optimizer=muon"], "needs matrices besides the last"),
        (["--layer-decay", "0"], "layer_decay must be in (0, 1]"),
        (["--set", "precision=int3"], "precision must be one of auto, float32, bfloat16, float16"),
        (["--example"], "--example draws what --data would name"),
        (["--lr", "0.2", "--set", "lr=0.1"], "lr is set twice"),
        (["--set", "rope=true", "--set", "num_heads=64"], "need a head_dim divisible by 4"),
        (["--limit", "-3"], "limit must be a positive integer"),
        (["--device", "gpu"], "Choices: auto, cpu, cuda, mps"),
        (["--data", "no_such_thing"], "no data named 'no_such_thing'"),
    ],
)
def test_train_refuses_words_that_it_can_not_follow(folder, tmp_path, capsys, words, message):
    """Status 2 and one line that says what is wrong; nothing is left behind."""
    given = ["train", "--data", str(folder), "--out", str(tmp_path / "runs" / "x"), *words]
    assert main(given) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) == 1 and not any(tmp_path.iterdir())


def test_a_side_is_one_number(capsys):
    """Images are squares, and the line says so."""
    with pytest.raises(SystemExit):
        main(["train", "--image-size", "64x48"])
    assert "images are squares: one number, such as 64 (got 64x48)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "size"),
    [
        (["--preset", "vit_tiny_patch16_224"], 224),
        (["--preset", "vit_micro_patch8_32", "--image-size", "32"], 32),
        (["--image-size", "64"], 64),
        (["--pretrained", "vit_pico_patch4_32.cifar10"], 32),
        (["--pretrained", "vit_pico_patch4_32.cifar10", "--image-size", "48"], 48),
        ([], 32),
    ],
)
def test_images_have_the_size_that_preset_or_weights_take(tmp_path, monkeypatch, words, size):
    """A preset for 224 px does not learn from 32."""
    asked = []
    monkeypatch.setattr(runs, "load_data", lambda source, **given: asked.append(given) or exit())
    with pytest.raises(SystemExit):
        main(["train", "--data", "x", "--out", str(tmp_path / "x"), *words])
    assert asked == [{"limit": None, "image_size": size}] and not any(tmp_path.iterdir())


def test_train_explains_a_loss_that_breaks(folder, tmp_path, monkeypatch, capsys):
    """Status 1, the explanation, no traceback."""

    def break_down(self, images):
        return self.head.weight.sum() * images.new_full((len(images), 2), float("nan"))

    monkeypatch.setattr(runs.VisionTransformer, "forward", break_down)
    assert main(["train", "--data", str(folder), "--out", str(tmp_path / "x"), *WORDS]) == 1
    assert "the loss is not finite any more: epoch 1, step 1" in capsys.readouterr().err


def weights_of(out):
    return load_checkpoint(out)[0]


@pytest.fixture
def stopped(folder, tmp_path, monkeypatch, capsys):
    """The folder of a run that Ctrl-C stopped in its second epoch, with status 130."""
    forward, calls = runs.VisionTransformer.forward, []

    def stop_at_eight(self, images):
        calls.append(self.training)
        if calls.count(True) == 8:
            calls.append(True)  # only once
            raise KeyboardInterrupt
        return forward(self, images)

    out = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        patch.setattr(runs.VisionTransformer, "forward", stop_at_eight)
        assert main(["train", "--data", str(folder), "--out", str(out), *WORDS]) == 130
    said = capsys.readouterr().out
    assert (
        "interrupted: 1 of 3 epochs finished" in said and "--resume goes on after epoch 1" in said
    )
    return out


def test_train_keeps_an_interrupted_run(stopped):
    """Weights and one row are on disk, and the folder says that it was interrupted."""
    assert len((stopped / "metrics.jsonl").read_text().splitlines()) == 1
    assert json.loads((stopped / "config.json").read_text())["outcome"]["interrupted"]
    load_run(stopped, "cpu")


def test_set_reaches_training_and_model(folder, tmp_path, capsys):
    """Fields of both configs are kept with the run: evaluation builds the same model."""
    words = ["--epochs", "1", "--set", "batch_size=8", "optimizer=muon"]
    words += ["--set", "ema_decay=0.5", "--set", "pool=mean", "--set", "rope=true"]
    out = tmp_path / "x"
    assert main(["train", "--data", str(folder), "--out", str(out), *words]) == 0
    config = json.loads((out / "config.json").read_text())
    assert (config["train"]["optimizer"], config["train"]["ema_decay"]) == ("muon", 0.5)
    assert config["model"]["pool"] == "mean" and config["model"]["rope"]
    assert main(["eval", "--checkpoint", str(out)]) == 0
    shown = capsys.readouterr().out
    assert f"test       {config['outcome']['test_accuracy']:.1%} of 8 images" in shown


@pytest.mark.parametrize("words", [[], [*WORDS, "--seed", "0"]], ids=["folder-alone", "all-words"])
def test_resume_ends_where_an_unbroken_run_does(run, stopped, words, monkeypatch, capsys):
    """The folder says what to do, as words may; weights, rows and accuracy agree exactly."""
    assert main(["train", "--out", str(stopped), "--resume", *words]) == 0
    assert names_in(stopped) == names_in(run)
    expected, found = weights_of(run), weights_of(stopped)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    descriptions = [json.loads((out / "config.json").read_text()) for out in (run, stopped)]
    accuracies = [description["outcome"]["test_accuracy"] for description in descriptions]
    assert accuracies[0] == accuracies[1] and not descriptions[1]["outcome"]["interrupted"]
    rows = []
    for out in (run, stopped):
        lines = (out / "metrics.jsonl").read_text().splitlines()
        timed = ("seconds", "images_per_second")
        rows.append([{k: v for k, v in json.loads(x).items() if k not in timed} for x in lines])
    assert rows[0] == rows[1] and len(rows[0]) == 3
    assert main(["train", "--out", str(stopped), "--resume"]) == 0
    assert "holds a run that has ended: 3 epochs" in capsys.readouterr().out
    assert main(["train", "--out", str(stopped), "--resume", "--epochs", "4"]) == 2
    error = capsys.readouterr().err
    assert "has ended with 3 epochs, test accuracy" in error and "its state is gone" in error
    assert "each step depends on epochs), and these differ: epochs was 3, is 4." in error


OTHER_SETTINGS = {
    "--epochs 5": "each step depends on epochs), and these differ: epochs was 3, is 5.",
    "--lr 1 --seed 4": "these differ: lr was 0.002, is 1.0, seed was 0, is 4.",
    "--preset vit_tiny_patch4_32": "preset was vit_micro_patch8_32, is vit_tiny",
    "--data shapes": "is shapes.",
    "--limit 7": "limit was None, is 7.",
    "--set rope=true": "these differ: rope was False, is True.",
}


def test_resume_refuses_other_settings(stopped, capsys):
    """Each that differs is named with both values; the run stays as it was."""
    before = (stopped / "state.pt").read_bytes()
    for words, message in OTHER_SETTINGS.items():
        assert main(["train", "--out", str(stopped), "--resume", *words.split()]) == 2
        error = capsys.readouterr().err
        assert message in error and len(error.splitlines()) == 1
    assert (stopped / "state.pt").read_bytes() == before


def test_resume_begins_where_there_is_nothing_to_go_on_with(folder, tmp_path):
    """A job script can always say --resume."""
    words = ["--data", str(folder), "--out", str(tmp_path / "new"), "--resume", *WORDS]
    assert main(["train", *words]) == 0


def test_train_never_replaces_a_run_unasked(run, stopped, folder, capsys):
    """Finished or not, a run is refused by name of its folder."""
    before = (run / "model.safetensors").read_bytes()
    assert main(["train", "--data", str(folder), "--out", str(run), *WORDS]) == 2
    assert "holds a run already (3 epochs, test accuracy" in capsys.readouterr().err
    assert (run / "model.safetensors").read_bytes() == before
    words = ["train", "--data", str(folder), "--out", str(stopped), *WORDS]
    assert main(words) == 2
    assert "holds a run that is not finished: --resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda config, model: model.unlink(), "no weights file at"),
        (lambda config, model: config.write_text("{"), "cannot be read as JSON"),
        (lambda config, model: config.write_text("{}"), "do not fit"),
        (lambda config, model: model.write_bytes(b"cut off"), "cannot be read"),
        (lambda config, model: model.write_bytes(pickle.dumps({"a": 1})), "cannot be read"),
    ],
    ids=["missing", "no-json", "no-description", "damaged", "pickle"],
)
def test_load_run_names_what_is_wrong(tmp_path, capsys, break_it, message):
    """A folder that is no run, or a damaged one, is one line on stderr; a pickle is not opened."""
    save_checkpoint(tmp_path, nn.Linear(2, 3), {"model": {}})
    break_it(tmp_path / "config.json", tmp_path / "model.safetensors")
    assert main(["predict", "--checkpoint", str(tmp_path), "x.png"]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) == 1


def test_what_a_run_cannot_judge_is_refused_by_name(run, tmp_path, capsys, monkeypatch):
    """Absent and unreadable images, and data of classes that the model does not know."""
    text = tmp_path / "note.txt"
    text.write_text("hello")
    for path in (text, tmp_path / "absent.png"):
        assert main(["predict", "--checkpoint", str(run), str(path)]) == 2
        assert path.name in capsys.readouterr().err
    few = load_data("shapes", limit=10, held_out=10)
    monkeypatch.setattr(saved_run, "load_data", lambda *names, **options: few)
    assert main(["eval", "--checkpoint", str(run), "--data", "shapes"]) == 2
    assert "the model knows 2 classes (dim, light)" in capsys.readouterr().err


def test_checkpoint_keeps_every_tensor(tmp_path):
    """Weights and buffers come back to the bit, shared and strided ones too."""
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    model.append(nn.Linear(3, 3))
    model[2].weight = model[0].weight  # shared memory
    model[0].bias = nn.Parameter(torch.arange(6.0)[::2])
    save_checkpoint(tmp_path, model, {"a": [1, 2], "model": {"layer_scale": False, "depth": 2}})
    tensors, description = load_checkpoint(tmp_path)
    assert description == {"a": [1, 2], "model": {"depth": 2}}  # without an option of former runs
    assert tensors.keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensors[name], tensor)


def test_nan_is_neither_written_nor_read(tmp_path):
    """The file that is there stays; the line names the tensor."""
    model = nn.Linear(2, 2)
    save_checkpoint(tmp_path, model, {})
    before = (tmp_path / "model.safetensors").read_bytes()
    nn.init.constant_(model.weight, float("nan"))
    with pytest.raises(ValueError, match="is not written: there is NaN in weight."):
        save_checkpoint(tmp_path, model, {})
    assert (tmp_path / "model.safetensors").read_bytes() == before
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    for read in (
        lambda: load_checkpoint(tmp_path),
        lambda: read_weights(tmp_path / "model.safetensors"),
    ):
        with pytest.raises(ValueError, match="is not read: there is NaN in weight."):
            read()


def test_a_last_step_that_breaks_the_weights_is_noticed(folder, tmp_path, monkeypatch, capsys):
    """The loss of training was finite, that of the validation images is not."""
    monkeypatch.setattr(loop, "measure", lambda *_: (float("nan"), 0.5))
    assert main(["train", "--data", str(folder), "--out", str(tmp_path / "x"), *WORDS]) == 1
    assert "the loss is not finite any more: epoch 1, step" in capsys.readouterr().err
    load_run(tmp_path / "x", "cpu")
