"""What holds for every test: no window opens, and nobody's results are touched."""

import os
import tempfile

import pytest

import vitedu  # noqa: F401 - before torch, whose threads it keeps from holding each other up

os.environ["MPLBACKEND"] = "Agg"
os.environ["VITEDU_HOME"] = tempfile.mkdtemp(prefix="vitedu-tests-")  # the doctests' too


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """Give each test a store of results of its own, and its folder."""
    folder = tmp_path / "store"
    monkeypatch.setenv("VITEDU_HOME", str(folder))
    return folder
