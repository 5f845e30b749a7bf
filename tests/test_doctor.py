"""The doctor names each problem it can meet and says what mends it; each problem is simulated."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import whole

from vitedu.__main__ import main
from vitedu.commands import doctor
from vitedu.course import tour
from vitedu.exercises import in_file
from vitedu.grading.box import isolation
from vitedu.grading.box.isolation import IsolationError

FINE = True, ""


def failed(error):
    """Stand in for a Python that ended with this error."""
    return False, error


def ran(monkeypatch, outcome=FINE):
    """Let every Python that is started end so; by default without a problem."""
    monkeypatch.setattr(doctor, "run_python", lambda code, python=sys.executable: outcome)


def canary(monkeypatch, level="full", lines=(), error=None):
    """Stand in for a canary that tried 300 ways."""

    @contextmanager
    def open_box(allow_unsafe):
        if error:
            raise error
        by = ("landlock", "seccomp")
        found = SimpleNamespace(count=300, restrictions=by, explain=lambda: list(lines))
        yield SimpleNamespace(level=level, isolation=found)

    monkeypatch.setattr(isolation, "open_box", open_box)


def test_diagnose_finds_nothing_to_mend_on_a_healthy_machine(monkeypatch):
    """Every subject is looked at, and the sum says that all is well."""
    canary(monkeypatch)
    ran(monkeypatch)
    findings = doctor.diagnose()
    assert [f for f in findings if f.state == "mend"] == []
    subjects = {finding.subject for finding in findings}
    wanted = {"python", "kernel", "device", "results", "grading", "vitedu"}
    assert subjects == wanted | {each.name for each in doctor.requirements()}
    assert doctor.text(findings).endswith("everything is in place")


@pytest.mark.slow
def test_doctor_passes_on_this_machine(capsys):
    """What passes the tests needs no mending; the real probes run."""
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ok +torch +2\.", out, re.M)
    assert "everything is in place" in out


def test_exit_status_is_1_where_something_must_be_mended(monkeypatch, capsys):
    """A script can rely on it."""
    broken = [doctor.Condition("torch", "mend", "is not installed", "pip install torch")]
    monkeypatch.setattr(doctor, "diagnose", lambda: broken)
    assert main(["doctor"]) == 1
    assert "MEND torch        is not installed\n" in capsys.readouterr().out


def test_lesson_is_the_solved_first_notebook(monkeypatch, capsys):
    """Where nothing is to mend; a run that stops, or an answer that fails, is named."""
    canary(monkeypatch)
    ran(monkeypatch)
    entries = {each.id: {"best": {"status": "passed"}} for each in in_file("01_patches")}
    for problem, stored in ((None, entries), ("OSError: no space", entries), (None, {})):
        run = tour.Run(None, 20.0, problem, stored)
        monkeypatch.setattr(tour, "execute", lambda *words, seconds, run=run: run)
        assert main(["doctor", "--class"]) == int(problem is not None or not stored)
        said = capsys.readouterr().out
        assert f"a lesson     01_patches ran for 20 s, {len(stored)} right answers passed" in said
        assert str(problem or "") in said and ("VITEDU_CACHE" in said) == ("MEND" in said)
    ran(monkeypatch, failed("OSError"))
    assert main(["doctor", "--class"]) == 1 and "a lesson" not in capsys.readouterr().out


@whole
def test_lesson_works_on_this_machine():
    """For real."""
    (found,) = doctor.check_lesson()
    assert found.state == "good", found


@pytest.mark.parametrize(
    ("name", "version", "outcome", "text", "remedy"),
    [
        ("torch", None, FINE, "is not installed", 'pip install --upgrade "torch>='),
        ("torch", "1.13.1", FINE, "1.13.1 is here, >=", 'pip install --upgrade "torch>='),
        ("torch", "2.9+cpu", failed("OSError: libc10.so"), "OSError: libc10.so", "torch"),
        ("torchvision", "0.24", failed("ImportError: x"), "ImportError: x", "torch torchvision"),
    ],
    ids=["missing", "old", "broken", "torchvision"],
)
def test_library_says_what_is_wrong_with_it(monkeypatch, name, version, outcome, text, remedy):
    """Missing, old and broken are told apart."""
    (needed,) = (each for each in doctor.requirements() if each.name == name)
    monkeypatch.setattr(doctor, "version_of", lambda name: version)
    ran(monkeypatch, outcome)
    found = doctor.library(needed)
    assert found.state == "mend"
    assert text in found.text
    assert remedy in found.remedy


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="GNU OpenMP")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "passive"}, "0")],
    ids=["ours", "count", "policy"],
)
def test_openmp_takes_the_short_wait_unless_the_user_chose(settings, expected):
    """What OpenMP says that it read when torch's copy was loaded after this package."""
    code = "import vitedu, ctypes, glob, importlib.util\n"
    code += "torch = importlib.util.find_spec('torch').submodule_search_locations[0]\n"
    code += "for path in glob.glob(torch + '/lib/libgomp*'):\n    ctypes.CDLL(path)\n"
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    kept |= {**settings, "OMP_DISPLAY_ENV": "verbose"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=kept, capture_output=True, text=True)
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("this torch uses another OpenMP")
    assert f"GOMP_SPINCOUNT = '{expected}'" in done.stderr


@pytest.mark.parametrize(
    ("registered", "outcome", "state", "text"),
    [
        ("python", FINE, "good", "imports vitedu"),
        (sys.executable, FINE, "good", "imports vitedu"),
        ("elsewhere/python", failed("No module"), "mend", "cannot import vitedu"),
        (None, FINE, "mend", "there is none"),
    ],
    ids=["name", "path", "other", "none"],
)
def test_kernel_is_the_python_of_the_notebooks(monkeypatch, registered, outcome, state, text):
    """A kernel without the package is named, with the command that registers this one."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel

    def get_kernel_spec(self, name):
        if registered is None:
            raise NoSuchKernel(name)
        return KernelSpec(argv=[registered, "-m", "ipykernel_launcher"])

    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", get_kernel_spec)
    ran(monkeypatch, outcome)
    found = doctor.kernel()
    assert (found.state, text in found.text) == (state, True)
    remedy = "ipykernel install --user --name vitedu" if registered else "pip install jupyterlab"
    assert (remedy in found.remedy) == (state != "good")


@pytest.mark.parametrize(
    ("device", "driver", "state", "remedy"),
    [
        ("cpu", None, "good", ""),
        ("cpu", "nvidia-smi", "note", "with CUDA, for the driver"),
        ("cuda", "nvidia-smi", "good", ""),
    ],
    ids=["cpu", "gpu-that-torch-does-not-use", "gpu"],
)
def test_machine_says_which_device_and_precision(monkeypatch, device, driver, state, remedy):
    """A GPU that torch does not use is worth a note, and what to do."""
    monkeypatch.setattr(doctor, "has_nvidia_gpu", lambda: driver)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "T4")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    monkeypatch.delenv("VITEDU_PROFILE", raising=False)
    found = doctor.machine()
    assert (found.state, remedy in found.remedy) == (state, True)
    assert found.text.startswith("cuda, float16, " if device == "cuda" else "cpu, ")
    assert ("profile gpu: found T4." in found.text) == (device == "cuda")


def test_a_profile_that_is_none_is_told_and_a_broken_torch_once(monkeypatch):
    """Nothing is said of the device where torch is broken."""
    monkeypatch.setenv("VITEDU_PROFILE", "desktop")
    found = doctor.machine()
    assert found.state == "mend" and "names no profile" in found.text
    ran(monkeypatch, failed("ImportError: no torch"))
    broken = doctor.diagnose()
    assert not {"device", "grading"} & {finding.subject for finding in broken}


NO_NET = "partial: no network isolation"


@pytest.mark.parametrize(
    ("found", "state", "text", "remedy"),
    [
        ({}, "good", "isolation full; 300 ways out were tried: landlock, seccomp", ""),
        (
            {"level": NO_NET, "lines": ["no seccomp: why", "The filter needs a container"]},
            "note",
            f"isolation {NO_NET}; 300 ways out were tried",
            "no seccomp: why\nThe filter needs a container",
        ),
        ({"error": IsolationError("no reply")}, "note", "isolation none: no reply", ""),
    ],
    ids=["full", "partial", "none"],
)
def test_grading_says_how_well_answers_are_isolated(monkeypatch, found, state, text, remedy):
    """The level, what holds it, what would raise it; students need none of it: never to mend."""
    canary(monkeypatch, **found)
    result = doctor.grading()
    assert (result.state, result.text, result.remedy) == (state, text, remedy)


def test_store_that_can_not_be_written_is_named(tmp_path):
    """A folder that does not exist yet is fine; a file in its place is not."""
    assert doctor.store(tmp_path / "a" / "b").state == "good"
    (tmp_path / "file").write_text("")
    found = doctor.store(tmp_path / "file" / "store")
    assert (found.state, "set VITEDU_HOME" in found.remedy) == ("mend", True)


def test_run_python_reports_failure_instead_of_raising():
    """A crash, a message of several lines, and a Python that is not there, are findings."""
    assert doctor.run_python("print(1); print(2)") == (True, "2")
    assert doctor.run_python("import os; os._exit(3)") == (False, "it ended without a message")
    assert (
        doctor.run_python("import nowhere")[1] == "ModuleNotFoundError: No module named 'nowhere'"
    )
    assert not doctor.run_python("", str(Path("no") / "python"))[0]
