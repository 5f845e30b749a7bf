"""What holds for every test: no window opens, and nobody's results are touched."""

import itertools
import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

import vitedu  # noqa: F401 - before torch, whose threads it keeps from holding each other up

# the weekly workflow takes the whole of what else is a fixed sample, such as honest students, and
# runs what changes with other people's programs
WHOLE = os.environ.get("VITEDU_WHOLE") == "1"
whole = pytest.mark.skipif(not WHOLE, reason="the weekly workflow runs it: VITEDU_WHOLE=1")


def sample(things, step=3):
    """Give every third of some things, the first among them, and with VITEDU_WHOLE=1 all."""
    return list(things)[:: 1 if WHOLE else step]


SPLIT = ("test_notebooks.py", "test_checks_banks.py")  # each test stands alone
# The longest begin first, so that no worker ends alone with one; short ones fill the gaps.
FIRST = (
    "test_attacks.py",
    "test_notebooks.py",
    "test_honest.py",
    "test_judge_attacks.py",
    "test_engine.py",
    "test_mutation.py",
    "test_forged_observations.py",
)
LAST = ("test_checks_banks.py",)
# one worker takes all of them, since they share a box
TOGETHER = "test_judge_attacks.py test_judge.py test_running.py test_undeserved.py".split()
# of banks alone: right answers, mutants, benchmarks
PROOF = [Path(__file__).with_name(name) for name in ("proof", "bench")]
collect_ignore_glob = ["proof/blind/*"]  # answers: --doctest-modules would import them
LEFT_OUT = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.(slow|bank)\b", re.M)

# jsonschema reads notebooks and would build 38 grammars for addresses that no notebook holds. That
# takes two seconds, so neither this process builds them nor any Python that it starts.
NO_GRAMMARS = 'import sys\n\nsys.modules["rfc3987_syntax"] = None\n'
sys.modules["rfc3987_syntax"] = None
started = tempfile.mkdtemp(prefix="vitedu-tests-")
Path(started, "sitecustomize.py").write_text(NO_GRAMMARS)
os.environ["PYTHONPATH"] = os.pathsep.join([started, *filter(None, [os.environ.get("PYTHONPATH")])])

os.environ["MPLBACKEND"] = "Agg"
os.environ["VITEDU_KEEP_SOURCES"] = "0"  # no test writes my_vit.py where it runs
os.environ["VITEDU_HOME"] = tempfile.mkdtemp(prefix="vitedu-tests-")  # the doctests' too


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Give the folder of all stores, and numbers for them."""
    return tmp_path_factory.mktemp("stores"), itertools.count()


@pytest.fixture(autouse=True)
def store(stores, monkeypatch):
    """Give each test a store of results of its own, and its folder, which few tests make."""
    home, numbers = stores
    folder = home / str(next(numbers))
    monkeypatch.setenv("VITEDU_HOME", str(folder))
    return folder


def pytest_ignore_collect(collection_path, config):
    """Leave unread what ``make check`` leaves out as a whole: some files load large libraries."""
    marks = config.option.markexpr
    if "not slow" not in marks or "not bank" not in marks:
        return None
    if collection_path in PROOF:
        return True
    if collection_path.match("test_*.py"):
        return True if LEFT_OUT.search(collection_path.read_text("utf-8")) else None
    return None


def pytest_collection_modifyitems(items):
    """Bring the files into the order of ``FIRST`` and ``LAST``; within a file nothing moves."""
    rank = {name: place - len(FIRST) for place, name in enumerate(FIRST)} | dict.fromkeys(LAST, 1)
    items.sort(key=lambda item: rank.get(item.path.name, 0))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Start one worker more than there are cores: each waits for processes and limits at times."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep the tests of a file in one worker, so that what it makes once is made once.

    Files whose tests are long and share nothing are split. Their order is that of the collection.
    """
    config.option.loadscopereorder = False
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.split("::")[0]
            scope = "one box" if Path(path).name in TOGETHER else path
            return nodeid if path.endswith(SPLIT) else scope

    return ByFile(config, log)


@pytest.fixture
def out(tmp_path):
    """The output folder of a grading."""
    return tmp_path / "out"


@pytest.fixture(scope="session")
def box():
    """The strongest box of this machine, opened once."""
    from vitedu.grading.box.isolation import open_box

    with open_box(allow_unsafe=True) as box:
        yield box


@pytest.fixture(scope="module")
def browser():
    """Start the Chromium that `make browser` names."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as library:
        yield library.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
