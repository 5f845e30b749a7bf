"""vitedu.bench.experiments: runs that go on where they stopped, measurements to be trusted."""

import json
import shlex
from functools import partial
from types import SimpleNamespace

import pytest
from torch import nn

from vitedu.__main__ import build_parser, main
from vitedu.bench import experiments
from vitedu.bench.experiments import (
    by_arm,
    complete,
    measured,
    names,
    read,
    table,
    train_and_measure,
)
from vitedu.data import load_data
from vitedu.fitting import TrainConfig
from vitedu.ground.hardware import Profile

QUICK = Profile("quick", "", "")
ARMS = {"small": {"width": 8}, "large": {"width": 16}}


@pytest.fixture
def calls(monkeypatch):
    """Put an experiment of two arms in the place of all others, and give the runs that it made."""
    made = []

    def run(arm, seed, profile):
        made.append((arm, seed))
        size = profile.pick(quick=1, laptop=2, gpu=3)
        return {"score": ARMS[arm]["width"] * size + seed, "precision": "float32"}

    module = SimpleNamespace(ARMS=ARMS, run=run)
    monkeypatch.setattr(experiments, "find", lambda name: module)
    return made


def run_experiment(name, out, profile, seeds, only=(), data="shapes"):
    """Complete the lines of an experiment in the size of a profile, as the command does."""
    run = partial(experiments.find(name).run, profile=profile)
    return complete(name, out, run, {"profile": profile.name}, data=data, seeds=seeds, only=only)


def test_every_line_says_what_ran_and_how(calls, tmp_path, capsys):
    """Arm, settings, seed, size, results, machine, versions and command, one line a run."""
    out = tmp_path / "new" / "x.jsonl"
    found = run_experiment("x", out, profile=QUICK, seeds=[0, 1])
    assert calls == [("small", 0), ("large", 0), ("small", 1), ("large", 1)]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["results"]["score"] for line in lines] == [8, 16, 9, 17]
    first = found[0]
    assert (first.experiment, first.arm, first.settings) == ("x", "small", {"width": 8})
    assert first.options == {"profile": "quick"} and first.results["precision"] == "float32"
    assert {"vitedu", "torch", "python"} <= set(first.versions)
    assert first.machine and first.command.startswith("vitedu") and first.data == "shapes"
    assert "small, seed 0" in capsys.readouterr().out


def test_what_stands_in_the_file_is_not_run_again(calls, tmp_path):
    """A second call runs new seeds; another profile is another size and runs anew."""
    out = tmp_path / "x.jsonl"
    run_experiment("x", out, profile=QUICK, seeds=[0])
    del calls[:]
    run_experiment("x", out, profile=QUICK, seeds=[0, 1], only=["lar"])
    assert calls == [("large", 1)]
    run_experiment("x", out, profile=Profile("laptop", "", ""), seeds=[0], only=["small"])
    assert calls[1:] == [("small", 0)]
    assert len(list(read(out, ARMS))) == 4


def test_stopped_run_keeps_what_was_done(calls, tmp_path, monkeypatch):
    """Every result is in the file before the next run begins."""
    out, module = tmp_path / "x.jsonl", experiments.find("x")
    whole = module.run

    def stop_at_large(arm, seed, profile):
        if arm == "large":
            raise KeyboardInterrupt
        return whole(arm, seed, profile)

    monkeypatch.setattr(module, "run", stop_at_large)
    with pytest.raises(KeyboardInterrupt):
        run_experiment("x", out, profile=QUICK, seeds=[0])
    assert [found.arm for found in read(out, ARMS)] == ["small"]
    monkeypatch.setattr(module, "run", whole)
    run_experiment("x", out, profile=QUICK, seeds=[0])
    assert calls == [("small", 0), ("large", 0)]


def test_table_gives_mean_and_spread_of_every_arm_in_their_order(calls, tmp_path):
    """Results in words are left out; least and largest are those of the seeds."""
    found = run_experiment("x", tmp_path / "x.jsonl", profile=QUICK, seeds=[0, 4])
    lines = [line.split() for line in table(reversed(found), ARMS).splitlines()[1:]]
    assert lines == [
        ["small", "shapes", "quick", "score", "10", "8", "12", "2"],
        ["large", "shapes", "quick", "score", "18", "16", "20", "2"],
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is no measurement"),
        ('{"arm": "small"}', "line 2 is no measurement"),
        (None, "'small' was measured with {'width': 9}, and now means {'width': 8}. Remove the"),
    ],
    ids=["cut", "fields", "settings"],
)
def test_lines_that_do_not_belong_are_refused(calls, tmp_path, line, message):
    """A result under other settings would be compared as if it were not."""
    out = tmp_path / "x.jsonl"
    run_experiment("x", out, profile=QUICK, seeds=[0], only=["small"])
    text = out.read_text()
    out.write_text(text + (line or text.replace('"width": 8', '"width": 9')) + "\n")
    with pytest.raises(ValueError, match=message):
        run_experiment("x", out, profile=QUICK, seeds=[1])


def test_lines_name_their_data(calls, tmp_path):
    """A line without it is refused; other data run anew."""
    out = tmp_path / "x.jsonl"
    run_experiment("x", out, profile=QUICK, seeds=[0], only=["small"])
    assert json.loads(out.read_text())["data"] == "shapes"
    for _ in range(2):
        run_experiment("x", out, profile=QUICK, seeds=[0], only=["small"], data="mine")
    assert [row.data for row in read(out, ARMS)] == ["shapes", "mine"]
    assert calls == [("small", 0)] * 2  # of either data there is a row already
    out.write_text(out.read_text().replace(', "data": "shapes"', ""))
    with pytest.raises(ValueError, match="line 1 is no measurement: .*'data'"):
        list(read(out, ARMS))


def test_shipped_rows_are_those_of_the_live_numbers_or_none(calls, tmp_path, monkeypatch):
    """By default those that the experiment runs on; a name shows others alone."""
    monkeypatch.setattr(experiments, "FOLDER", tmp_path)
    experiments.find("x").DATA = "shapes"
    assert measured("x") == []
    for data, seed in (("shapes", 0), ("mine", 1)):
        run_experiment("x", tmp_path / "x.jsonl", profile=QUICK, seeds=[seed], data=data)
    photographs = load_data(limit=10, held_out=10)
    assert {row.seed for row in measured("x")} == {0}
    assert {row.seed for row in measured("x", "mine")} == {1}
    with pytest.raises(ValueError) as refusal:
        measured("x", photographs)
    message = str(refusal.value)
    assert "measurements of x were made on mine and shapes, not on cifar10. Measure" in message
    assert 'alone: measured("x", "mine") or measured("x", "shapes").' in message
    assert "vitedu bench experiments x" in message and "\n" not in message
    experiments.find("x").DATA = "cifar10"  # the experiment moves on, the file does not
    with pytest.raises(ValueError, match="made on mine and shapes, not on cifar10"):
        measured("x")


def test_unknown_names_list_the_choices(calls, tmp_path, monkeypatch):
    """Of arms and of experiments."""
    with pytest.raises(ValueError, match="no arm matches huge. Choices: small; large"):
        run_experiment("x", tmp_path / "x", profile=QUICK, seeds=[0], only=["huge"])
    monkeypatch.undo()
    with pytest.raises(ValueError, match="no experiment named 'x'. Choices: .*ablations"):
        measured("x")
    with pytest.raises(ValueError, match="seed 0, in ladder.jsonl has no speed .got .*Remove the"):
        by_arm(measured("ladder"), "speed")
    for name, run in {"less_data": "run", "teacher": "run", "captions": "train"}.items():
        with pytest.raises(ValueError, match="no arm named 'x'. Choices: .*; "):
            getattr(experiments.find(name), run)("x", 0, QUICK)
    with pytest.raises(ValueError, match="no arm named 'x'. Choices: .*LoRA"):
        experiments.find("few_labels").adapt("x", 0, QUICK, lr=1e-3)


@pytest.mark.parametrize("name", names())
def test_table_and_shipped_rows_of_an_experiment_fit(name):
    """Every arm has rows, with the settings it has now, and the command of a row would run it."""
    module, rows = experiments.find(name), measured(name)
    assert callable(module.run) and module.__doc__
    assert json.loads(json.dumps(module.ARMS)) == module.ARMS
    assert {row.arm for row in rows} == set(module.ARMS)
    before = "ablations --data <folder> --epochs 3"  # a command of its own until version 0.3
    for row in rows:
        command = row.command.replace(before, "experiments ablations")
        told = build_parser().parse_args(shlex.split(command)[1:])
        assert row.settings == module.ARMS[row.arm] and row.seed in told.seeds
        assert not told.only or any(word in row.arm for word in told.only)
        assert {row.experiment, getattr(told, "name", name), name} == {name}
        if "profile" in row.options:
            assert told.profile in (None, row.options["profile"])


class Counted(nn.Linear):
    """A linear classifier of images that counts those it is asked about in eval mode."""

    asked = 0

    def forward(self, images):
        """Map images (B, C, H, W) to logits (B, K)."""
        self.asked += 0 if self.training else len(images)
        return super().forward(images.flatten(1))


def test_training_to_the_end_measures_on_so_many_validation_images():
    """Two epochs with 30 of 100 images each; without a number, all."""
    data = load_data("shapes", limit=100, held_out=100)
    for count, asked in ((30, 60), (None, 200)):
        model = Counted(3 * 32 * 32, 10)
        found = train_and_measure(model, data, TrainConfig(epochs=2), "train_accuracies", count)
        assert (len(found["train_accuracies"]), model.asked) == (2, asked)


def test_a_stopped_run_becomes_no_row(monkeypatch):
    """``fit`` keeps what was learned until then; an experiment must not take it for a result."""

    def stop(self, images):
        raise KeyboardInterrupt

    monkeypatch.setattr(Counted, "forward", stop)
    data = load_data("shapes", limit=100, held_out=100)
    with pytest.raises(KeyboardInterrupt):
        train_and_measure(Counted(3 * 32 * 32, 10), data, TrainConfig())


def test_command_lists_experiments_and_runs_one(calls, tmp_path, capsys, monkeypatch):
    """Without a name it lists; with one it runs, and says where the lines are."""
    out = tmp_path / "x.jsonl"
    words = ["bench", "experiments", "x", "--profile", "quick", "--seeds", "5", "--json", str(out)]
    assert main(words) == 0
    assert f"lines in {out}" in capsys.readouterr().out
    assert [found.seed for found in read(out, ARMS)] == [5, 5]
    monkeypatch.undo()
    assert main(["bench", "experiments"]) == 0
    assert capsys.readouterr().out.startswith("ablations")
