"""vitedu.course.kept: a student's own measurements outlive the kernel."""

import shutil

import pytest

from vitedu.course import kept as module
from vitedu.course.kept import forget, keep, kept


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A folder of its own, which is not there yet."""
    monkeypatch.setattr(module, "data_folder", lambda: tmp_path / "store")
    return tmp_path / "store"


def test_numbers_are_kept_by_notebook_and_name():
    """The last number of a name counts; another notebook has others."""
    assert kept("04_training") == {}
    keep("04_training", "plain", 0.4)
    keep("04_training", "muon", 0.5)
    keep("04_training", "plain", 0.42)
    keep("01_patches", "box", 0.55)
    assert list(kept("04_training").items()) == [("plain", 0.42), ("muon", 0.5)]


def test_a_damaged_file_or_a_folder_in_its_place_stops_nothing(home, capsys):
    """What cannot be read counts as empty; what cannot be written is one line."""
    home.mkdir()
    (home / module.FILE).write_text("{")
    assert kept("04_training") == {}
    keep("04_training", "plain", 0.4)
    assert kept("04_training") == {"plain": 0.4}
    shutil.rmtree(home)
    home.write_text("a file")
    keep("04_training", "plain", 0.4)
    assert "cannot be written" in capsys.readouterr().out


def test_a_number_can_be_forgotten():
    """That of a run that went wrong; an unknown name is no error."""
    keep("04_training", "plain", 0.4)
    forget("04_training", "plain")
    forget("04_training", "plain")
    forget("01_patches", "plain")
    assert kept("04_training") == {}
