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


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the marks
def pytest_collection_modifyitems(items):
    """Keep the tests that share something costly in one worker, so that it is made once.

    What a file makes once (a graded class, an open box) would else be made again in every worker.
    """
    for item in items:
        definitions = getattr(item, "_fixtureinfo", None)
        names = definitions.name2fixturedefs.values() if definitions else ()
        if any(fixture.scope == "module" for found in names for fixture in found):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
