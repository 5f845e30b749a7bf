"""The doctor names each problem it can meet and says what mends it; each problem is simulated."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import whole

from vitedu import doctor
from vitedu.__main__ import main
from vitedu.doctor import ProcessResult

FINE = ProcessResult(True, "", "")
FOUND = {
    "device": "cpu",
    "name": "",
    "precision": "float32",
    "threads": 2,
    "cuda_build": None,
    "profile": "profile laptop: the device is cpu.",
    "photographs": "",
}
NMS = """Traceback (most recent call last):
  File "torchvision/_meta_registrations.py", line 163, in <module>
RuntimeError: operator torchvision::nms does not exist
"""


def failed(error):
    """Stand in for a Python that ended with this error."""
    return ProcessResult(False, "", error)


def machine_with(**changes):
    return ProcessResult(True, json.dumps({**FOUND, **changes}), "")


def boxed(**changes):
    """Stand in for a canary that could do nothing."""
    found = {"level": "full", "tried": 300, "by": ["landlock", "seccomp"], "lines": []}
    return ProcessResult(True, json.dumps({**found, **changes}), "")


NO_NET = "partial: no network isolation"
PARTIAL = boxed(level=NO_NET, lines=["no seccomp: why", "The filter needs a container"])
NO_BOX = "Traceback\nvitedu.grading.box.levels.IsolationError: no box:\n  no landlock: why"


def healthy(code, python=sys.executable):
    """Stand in for ``run_python`` on a machine without a problem."""
    if "pick_device" in code:
        return machine_with()
    if "open_box" in code:
        return boxed()
    return ProcessResult(True, sys.prefix if "sys.prefix" in code else "", "")


def test_diagnose_finds_nothing_to_mend_on_a_healthy_machine(monkeypatch):
    """Every subject is looked at, and the sum says that all is well."""
    findings = doctor.diagnose(healthy)
    assert [f for f in findings if f.state == "mend"] == []
    subjects = {finding.subject for finding in findings}
    wanted = {"python", "kernel", "cores", "device", "profile", "CIFAR-10", "results"}
    wanted |= {"grading", "torch build", "vitedu"}
    assert subjects == wanted | set(doctor.IMPORTS) | set(doctor.OTHER_PACKAGES)
    assert doctor.text(findings).endswith("everything is in place")


@pytest.mark.slow
def test_doctor_passes_on_this_machine(capsys):
    """What passes the tests needs no mending; the real probes run."""
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ok +torch +2\.", out, re.M)
    assert "everything is in place" in out


def test_torchvision_of_another_build_is_explained():
    """The operator that does not exist is a build mismatch; one command reinstalls the pair."""

    def run(code, python=sys.executable):
        return ProcessResult(False, "", NMS) if code == "import torchvision" else healthy(code)

    findings = doctor.diagnose(run)
    (found,) = [finding for finding in findings if finding.state == "mend"]
    assert found.subject == "torchvision"
    assert "operator torchvision::nms does not exist" in found.text
    assert "come from different builds" in found.remedy
    assert found.remedy.endswith("-m pip install --upgrade --force-reinstall torch torchvision")
    assert doctor.text(findings).endswith("to mend: 1")


def test_exit_status_is_1_where_something_must_be_mended(monkeypatch, capsys):
    """A script can rely on it."""
    broken = [doctor.Condition("torch", "mend", "is not installed", "pip install torch")]
    monkeypatch.setattr(doctor, "diagnose", lambda: broken)
    assert main(["doctor"]) == 1
    assert "MEND torch        is not installed\n" in capsys.readouterr().out


def test_lesson_says_one_line_each_and_what_mends_it(monkeypatch, capsys):
    """What a class does is tried; a part that fails or takes too long is named with a remedy."""
    words = {code: name for name, (code, _) in doctor.LESSON.items()}

    def run(code, python=sys.executable):
        if words.get(code) == "the data":
            return ProcessResult(False, "", "Traceback\nOSError: no space\n")
        return ProcessResult(True, "about\nfine\n", "") if code in words else healthy(code)

    findings = doctor.check_lesson(run)
    assert [finding.subject for finding in findings] == ["doctor", *doctor.LESSON]
    assert {f.state for f in findings[:-1]} == {"good"} and findings[1].text.startswith("fine (")
    assert (
        findings[-1].text.startswith("OSError: no space (")
        and "VITEDU_CACHE" in findings[-1].remedy
    )
    monkeypatch.setattr(doctor, "check_lesson", lambda: findings)
    assert main(["doctor", "--class"]) == 1
    assert "to mend: 1" in capsys.readouterr().out


@whole
@pytest.mark.parametrize("name", doctor.LESSON)
def test_lesson_works_on_this_machine(name):
    """Each part for real."""
    result = doctor.run_python(doctor.LESSON[name][0])
    assert result.ok, result.err


@pytest.mark.parametrize(
    ("name", "version", "ran", "text", "remedy"),
    [
        ("torch", None, FINE, "is not installed", 'pip install "torch>='),
        ("torch", "1.13.1", FINE, "1.13.1 is older than", 'pip install --upgrade "torch>='),
        ("torch", "2.9+cpu", failed("E\nOSError: libc10.so"), "OSError: libc10.so", "torch"),
        ("torch", "2.9", failed(""), "it ended without a message", "--force-reinstall torch"),
        ("torchvision", "0.24", failed("ImportError: x"), "ImportError: x", "torch torchvision"),
    ],
    ids=["missing", "old", "broken", "crashed", "torchvision"],
)
def test_library_says_what_is_wrong_with_it(monkeypatch, name, version, ran, text, remedy):
    """Missing, old and broken are told apart."""
    monkeypatch.setattr(doctor, "version_of", lambda name: version)
    found = doctor.library(name, lambda code: ran)
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


def test_older_compares_releases():
    """Local builds and previews count as their release; numbers are compared as numbers."""
    assert not any(doctor.is_older(v, "2.9") for v in "2.9.0+cpu 2.9.0a0+git1f 2.15 10.0".split())
    assert doctor.is_older("2.8.1", "2.9")


@pytest.mark.parametrize(
    ("registered", "ran", "state", "text"),
    [
        ("python", ProcessResult(True, sys.prefix, ""), "good", "imports vitedu"),
        (sys.executable, ProcessResult(True, sys.prefix, ""), "good", "imports vitedu"),
        ("elsewhere/python", ProcessResult(True, "elsewhere", ""), "note", "another Python"),
        ("elsewhere/python", ProcessResult(False, "", "No module"), "mend", "cannot import vitedu"),
        (None, FINE, "mend", "no kernel python3 is registered"),
    ],
    ids=["name", "path", "other", "other-without", "none"],
)
def test_kernel_is_the_python_of_the_notebooks(monkeypatch, registered, ran, state, text):
    """A kernel without the package is named, with the command that registers this one."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel

    def get_kernel_spec(self, name):
        if registered is None:
            raise NoSuchKernel(name)
        return KernelSpec(argv=[registered, "-m", "ipykernel_launcher"])

    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", get_kernel_spec)
    found = doctor.kernel(lambda code, python: ran)
    assert (found.state, text in found.text) == (state, True)
    assert ("ipykernel install --user --name vitedu" in found.remedy) == (state != "good")


@pytest.mark.parametrize(
    ("changes", "driver", "state", "remedy"),
    [
        ({}, None, "good", ""),
        ({}, "nvidia-smi", "note", "built without CUDA"),
        ({"cuda_build": "13.2"}, "nvidia-smi", "note", "needs a driver for CUDA 13.2"),
        ({"device": "cuda", "name": "T4", "precision": "float16"}, "nvidia-smi", "good", ""),
    ],
    ids=["cpu", "gpu-without-cuda-build", "gpu-with-old-driver", "gpu"],
)
def test_machine_says_which_device_and_precision(monkeypatch, changes, driver, state, remedy):
    """A GPU that torch does not use is worth a note, and what to do."""
    monkeypatch.setattr(doctor, "has_nvidia_gpu", lambda: driver)
    findings = {f.subject: f for f in doctor.machine(machine_with(**changes), torch_works=True)}
    found = findings["device"]
    assert (found.state, remedy in found.remedy) == (state, True)
    assert found.text.startswith(changes.get("device", "cpu"))
    assert changes.get("precision", "float32") in found.text


@pytest.mark.parametrize(
    ("device", "cuda", "driver", "state", "text"),
    [
        ("cpu", None, None, "good", "without CUDA"),
        ("cpu", "13.2", None, "note", "for CUDA 13.2, on a machine without an NVIDIA driver"),
        ("cpu", "13.2", "nvidia-smi", "good", "for CUDA 13.2"),
        ("cuda", "13.2", None, "good", "for CUDA 13.2"),
    ],
    ids=["cpu-build", "cuda-build-on-cpu", "driver-too-old", "gpu"],
)
def test_torch_build_fits_the_machine(monkeypatch, device, cuda, driver, state, text):
    """Gigabytes of CUDA on a machine without a GPU are worth a note that says how to save them."""
    monkeypatch.setattr(doctor, "has_nvidia_gpu", lambda: driver)
    found = doctor.build(device, cuda)
    assert (found.state, found.text) == (state, text)
    assert ("make clean && make setup" in found.remedy) == (state == "note")
    monkeypatch.setattr(doctor, "is_clone", lambda: False)  # a wheel has no Makefile
    found = doctor.build(device, cuda)
    assert ("download.pytorch.org" in found.remedy) == (state == "note")
    assert "make" not in found.remedy


def test_machine_is_silent_about_the_device_where_torch_is_broken():
    """One problem is said once."""
    broken = ProcessResult(False, "", "ImportError: torch")
    assert {f.subject for f in doctor.machine(broken, torch_works=False)} == {"cores"}
    findings = doctor.machine(failed("ValueError: VITEDU_PROFILE='x' names no profile."), True)
    assert findings[-1].state == "mend"
    assert "set VITEDU_PROFILE to quick" in findings[-1].remedy


def test_photographs_that_cannot_be_read_are_a_note():
    """The course runs without them; ``load_data`` says what to do instead."""
    condition = doctor.machine(machine_with(photographs="it is damaged"), True)[-1]
    assert condition == doctor.Condition("CIFAR-10", "note", "it is damaged")
    assert doctor.machine(machine_with(), True)[-1].state == "good"


@pytest.mark.parametrize(
    ("ran", "state", "text", "remedy"),
    [
        (boxed(), "good", "isolation full; 300 ways out were tried: landlock, seccomp", ""),
        (
            PARTIAL,
            "note",
            f"isolation {NO_NET}; 300 ways out were tried",
            "no seccomp: why\nThe filter needs a container",
        ),
        (failed(NO_BOX), "note", "isolation none: no box:", "  no landlock: why"),
        (failed(""), "note", "isolation none: it ended without a message", ""),
    ],
    ids=["full", "partial", "none", "crashed"],
)
def test_grading_says_how_well_answers_are_isolated(ran, state, text, remedy):
    """The level, what holds it, what would raise it; students need none of it: never to mend."""
    found = doctor.grading(ran)
    assert (found.state, found.text, found.remedy) == (state, text, remedy)


def test_python_that_is_too_old_is_named():
    """3.10 is below the floor."""
    assert doctor.python((3, 10, 18)).state == "mend" and doctor.python((3, 11, 0)).state == "good"


def test_store_that_can_not_be_written_is_named(tmp_path):
    """A folder that does not exist yet is fine; a file in its place is not."""
    assert doctor.store(tmp_path / "a" / "b").state == "good"
    (tmp_path / "file").write_text("")
    found = doctor.store(tmp_path / "file" / "store")
    assert (found.state, "set VITEDU_HOME" in found.remedy) == ("mend", True)


def test_run_python_reports_failure_instead_of_raising():
    """A crash, and a Python that is not there, are findings."""
    assert doctor.run_python("print(1)").out.strip() == "1"
    assert not doctor.run_python("import os; os._exit(3)").ok
    assert not doctor.run_python("", str(Path("no") / "python")).ok
