"""What holds for every test: no window opens, and nobody's results are touched."""

import os
import tempfile

import pytest

import vitedu  # noqa: F401 - before torch, whose threads it keeps from holding each other up

SPLIT = ("test_notebooks.py", "test_checks_banks.py")  # each test stands alone

os.environ["MPLBACKEND"] = "Agg"
os.environ["VITEDU_HOME"] = tempfile.mkdtemp(prefix="vitedu-tests-")  # the doctests' too


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """Give each test a store of results of its own, and its folder."""
    folder = tmp_path / "store"
    monkeypatch.setenv("VITEDU_HOME", str(folder))
    return folder


@pytest.fixture(scope="module")
def browser():
    """Start the Chromium that `make browser` names."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as library:
        yield library.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep the tests of a file in one worker, so that what it makes once is made once.

    Files whose tests are long and share nothing are split.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.split("::")[0]
            return nodeid if path.endswith(SPLIT) else path

    return ByFile(config, log)
