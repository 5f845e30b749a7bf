"""The race: a file of one's own within a budget of products."""

import json

import pytest

from vitedu.__main__ import main
from vitedu.data import load_data
from vitedu.exporting import race as racing
from vitedu.exporting.race import BUDGET, race, race_table

FILE = """
import torch
from torch import nn

class ViTConfig:
    pass

class VisionTransformer(nn.Linear):
    def __init__(self, config):
        super().__init__(3072, 10)

    def forward(self, x):
        return super().forward(x.flatten(1))

def normalise_pixels(images):
    return images.float() / 255 - 0.5

def train_and_measure(model, images, labels, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        loss = nn.functional.cross_entropy(model(normalise_pixels(images)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
STEP = 2 * 500 * 3072 * 10  # products of a step: forward, and the gradient of the weights


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a file that takes 60 steps on 500 photographs."""
    monkeypatch.setattr(racing, "load_data", lambda name: load_data(name, limit=500, held_out=300))
    (tmp_path / "my_vit.py").write_text(FILE.replace("STEPS", "60"))
    return tmp_path


def test_all_products_are_counted_and_a_line_is_written(place):
    """Forward and gradients; the accuracy is above chance; the file says whose it is."""
    line = race(place / "my_vit.py", name="Ada")
    assert line["macs"] == 60 * STEP and line["budget"] == BUDGET
    assert line["accuracy"] > 0.2 and line["parameters"] == 30730
    assert json.loads((place / "race.jsonl").read_text()) == line


def test_training_ends_where_the_budget_does(place, capsys):
    """After ten steps; what was learned by then is measured."""
    line = race(place / "my_vit.py", budget=10 * STEP)
    assert line["macs"] == 10 * STEP and "budget is spent" in capsys.readouterr().out


def test_table_shows_the_best_of_everybody(place, capsys):
    """From all files of a folder, the best first."""
    for name, accuracies in {"Ada": (0.5, 0.7), "Bo": (0.6,)}.items():
        lines = [
            {"name": name, "accuracy": a, "macs": 1e12, "budget": 2e12, "parameters": 9}
            for a in accuracies
        ]
        (place / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["race", str(place), "--table"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[:3] for row in rows[1:]] == [["1", "Ada", "70.0%"], ["2", "Bo", "60.0%"]]


def test_bad_input_is_one_line(place):
    """A file without its model, no line, no file."""
    (place / "other.py").write_text("x = 1")
    with pytest.raises(ValueError, match="lacks ViTConfig, .*vitedu export"):
        race(place / "other.py")
    with pytest.raises(ValueError, match="no line of a race"):
        race_table(place)
    assert main(["race", str(place / "none.py")]) == 2
