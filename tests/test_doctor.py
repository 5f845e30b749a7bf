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
from vitedu.grading.box import isolation
from vitedu.grading.box.isolation import IsolationError


def ran(monkeypatch, error=""):
    """Let every Python that is started end with an error; by default without one."""
    monkeypatch.setattr(doctor, "error_of", lambda code, python=sys.executable: error)


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
    """Where nothing is to mend; the tour's row says why it failed."""
    canary(monkeypatch)
    ran(monkeypatch)
    seen = []
    for passed in (True, False):
        monkeypatch.setattr(
            tour, "tour", lambda *words, passed=passed: seen.append(words) or passed
        )
        assert main(["doctor", "--class"]) == 1 - passed
        assert ("MEND a lesson" in (said := capsys.readouterr().out)) != passed
        assert ("VITEDU_CACHE" in said) != passed
    assert [path.name for path, _ in seen] == ["01_patches.ipynb"] * 2
    ran(monkeypatch, "OSError")
    assert main(["doctor", "--class"]) == 1 and "a lesson" not in capsys.readouterr().out


@whole
def test_lesson_works_on_this_machine():
    """For real."""
    (found,) = doctor.check_lesson()
    assert found.state == "good", found


@pytest.mark.parametrize(
    ("name", "version", "error", "text", "remedy"),
    [
        ("torch", None, "", "is not installed", 'pip install --upgrade "torch>='),
        ("torch", "1.13.1", "", "1.13.1 is here, >=", 'pip install --upgrade "torch>='),
        ("torch", "2.9+cpu", "OSError: libc10.so", "OSError: libc10.so", "torch"),
        ("torchvision", "0.24", "ImportError: x", "ImportError: x", "torch torchvision"),
    ],
    ids=["missing", "old", "broken", "torchvision"],
)
def test_library_says_what_is_wrong_with_it(monkeypatch, name, version, error, text, remedy):
    """Missing, old and broken are told apart."""
    (needed,) = (each for each in doctor.requirements() if each.name == name)
    monkeypatch.setattr(doctor, "version_of", lambda name: version)
    ran(monkeypatch, error)
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
    ("registered", "error", "state", "text"),
    [
        ("python", "", "good", "imports vitedu"),
        (sys.executable, "", "good", "imports vitedu"),
        ("elsewhere/python", "No module", "mend", "cannot import vitedu"),
        (None, "", "mend", "there is none"),
    ],
    ids=["name", "path", "other", "none"],
)
def test_kernel_is_the_python_of_the_notebooks(monkeypatch, registered, error, state, text):
    """A kernel without the package is named, with the command that registers this one."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel

    def get_kernel_spec(self, name):
        if registered is None:
            raise NoSuchKernel(name)
        return KernelSpec(argv=[registered, "-m", "ipykernel_launcher"])

    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", get_kernel_spec)
    ran(monkeypatch, error)
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
    ran(monkeypatch, "ImportError: no torch")
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


def test_error_of_a_process_is_given_instead_of_raised():
    """A crash, a message of several lines, and a Python that is not there, are findings."""
    assert doctor.error_of("print(1)") == ""
    assert doctor.error_of("import os; os._exit(3)").endswith("non-zero exit status 3.")
    assert doctor.error_of("import nowhere") == "ModuleNotFoundError: No module named 'nowhere'"
    assert doctor.error_of("", str(Path("no") / "python"))
