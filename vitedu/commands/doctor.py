"""What is installed, what will be used, and what to do about each problem.

Role: look at this Python, its libraries, the device, the notebook's kernel and the folders. Every
library is first imported in a process of its own, so that a broken one is a finding and no crash.
Nothing is changed: the commands that mend are printed, not run.
"""

import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from vitedu import __version__
from vitedu.course.environments import ROOT, has_nvidia_gpu
from vitedu.ground import files

MARKS = {"good": "ok", "note": "note", "mend": "MEND"}
# libraries of which more is asked than their version
IMPORTED = ("numpy", "torch", "torchvision", "matplotlib", "safetensors")
NOT_NEEDED = ("einops", "pytest", "ruff")  # but by tests, style, and who likes it


@dataclass(frozen=True)
class Condition:
    """How one thing stands that was looked at."""

    subject: str
    state: str  # "good", "note" (works, worth knowing) or "mend" (something will not work)
    text: str
    remedy: str = ""


def error_of(code: str, python: str = sys.executable) -> str:
    """Run code in a fresh process, at most two minutes; give the last line of its error, or ""."""
    try:
        subprocess.run(
            [python, "-c", code], check=True, timeout=120, capture_output=True, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return "it took more than two minutes"
    except (OSError, subprocess.CalledProcessError) as error:
        return ((getattr(error, "stderr", "") or "").strip() or str(error)).splitlines()[-1]
    return ""


def diagnose() -> list[Condition]:
    """Look at everything, several processes at a time."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        libraries = pool.map(library, requirements())
    findings = [
        Condition("python", "good", f"{sys.version.split()[0]}, {sys.executable}"),
        Condition("vitedu", "good", f"{__version__}, in {ROOT}"),
        *libraries,
        kernel(),
    ]
    if all(f.state != "mend" for f in findings if f.subject in ("numpy", "torch")):
        findings += [machine(), grading()]
    if version_of("platformdirs"):
        findings.append(store(files.data_folder()))
    return findings


def text(findings: list[Condition]) -> str:
    """Write the findings as lines, each remedy under its problem, and the sum at the end."""
    lines = []
    for finding in findings:
        lines.append(f"{MARKS[finding.state]:<5}{finding.subject:<12} {finding.text}")
        lines += [f"{'':<18}{line}" for line in finding.remedy.splitlines()]
    mend = sum(finding.state == "mend" for finding in findings)
    return "\n".join([*lines, f"to mend: {mend}" if mend else "everything is in place"])


def version_of(name: str) -> str | None:
    """Give the version of an installed distribution, None if there is none."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def requirements() -> list[Requirement]:
    """List what this package and its notebooks need, as pip knows it."""
    lines = importlib.metadata.requires("vitedu") or () if version_of("vitedu") else ()
    needed = [each for each in map(Requirement, lines) if each.name not in NOT_NEEDED]
    return [each for each in needed if not each.marker or each.marker.evaluate({"extra": "lab"})]


def pip(*words: str) -> str:
    """Write a pip command for this Python."""
    return " ".join([sys.executable, "-m", "pip", "install", *words])


def library(needed: Requirement) -> Condition:
    """Look at the version of a library, and whether a process of its own can import it."""
    name, bound = needed.name, needed.specifier
    version, command = version_of(name), pip("--upgrade", f'"{name}{bound}"')
    if version is None:
        return Condition(name, "mend", "is not installed", command)
    # a preview counts as the release that it leads to
    if not bound.contains(Version(version).base_version):
        return Condition(name, "mend", f"{version} is here, {bound} is needed", command)
    error = error_of(f"import {name}") if name in IMPORTED else ""
    if not error:
        return Condition(name, "good", version)
    # torchvision has a compiled part that fits one torch
    command = pip("--force-reinstall", "torch torchvision" if name == "torchvision" else name)
    return Condition(name, "mend", f"{version} cannot be imported: {error}", command)


def kernel() -> Condition:
    """Look at the Python behind the notebooks' kernel: is it there, and does it find vitedu?"""
    try:
        from jupyter_client import KernelManager

        command = KernelManager(kernel_name="python3").format_kernel_cmd()[0]
    except (ImportError, LookupError):  # NoSuchKernel is a KeyError
        return Condition("kernel", "mend", "there is none", pip("jupyterlab ipykernel"))
    if not error_of("import vitedu", command):
        return Condition("kernel", "good", f"python3 is {command} and imports vitedu")
    problem = f"the kernel python3 is {command}, which cannot import vitedu"
    register = f"{sys.executable} -m ipykernel install --user --name vitedu --display-name vitedu"
    remedy = f"{register}\nand choose the kernel vitedu in the notebook"
    return Condition("kernel", "mend", problem, remedy)


def machine() -> Condition:
    """Look at the device, its precision and the profile, where torch works."""
    import torch

    from vitedu.ground.hardware import current_profile, pick_device, pick_precision

    device = pick_device()
    precision = str(pick_precision(device)).removeprefix("torch.")
    words = f"{device.type}, {precision}, {torch.get_num_threads()} CPU threads"
    try:
        words += f"; {str(current_profile()).splitlines()[0]}"
    except ValueError as error:
        return Condition("device", "mend", str(error), "set VITEDU_PROFILE to one, or unset it")
    if device.type == "cpu" and has_nvidia_gpu():
        remedy = "install torch and torchvision with CUDA, for the driver that nvidia-smi shows"
        words += " An NVIDIA driver is here, but torch does not use it."
        return Condition("device", "note", words, remedy)
    return Condition("device", "good", words)


def refuse_windows() -> None:
    """Raise ValueError on a system whose means the grader cannot use."""
    if not all(importlib.util.find_spec(module) for module in ("fcntl", "resource")):
        raise ValueError("grading isolates answers by what Linux offers; on Windows work in WSL.")


def grading() -> Condition:
    """Look how well this machine isolates untrusted answers; a canary tries it out."""
    try:
        refuse_windows()
        from vitedu.grading.box.isolation import open_box

        with open_box(allow_unsafe=True) as box:
            level, found = box.level, box.isolation
    except (OSError, ValueError) as error:
        return Condition("grading", "note", f"isolation none: {error}")
    words = f"isolation {level}; {found.count} ways out were tried"
    if level == "full":
        return Condition("grading", "good", f"{words}: {', '.join(found.restrictions)}")
    return Condition("grading", "note", words, "\n".join(found.explain()))


def store(folder: Path) -> Condition:
    """Look whether results can be kept."""
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        problem = f"{folder} cannot be written ({error.strerror}); progress would be lost"
        return Condition("results", "mend", problem, "set VITEDU_HOME to a folder of yours")
    return Condition("results", "good", str(folder))


def check_lesson() -> list[Condition]:
    """Run the solved first notebook, if nothing is to mend; its row is printed.

    It starts a kernel, judges right answers, draws figures, reads the data and a trained model.
    """
    if findings := [finding for finding in diagnose() if finding.state == "mend"]:
        return findings
    from vitedu.course.tour import tour
    from vitedu.course.workspace import find_sources

    with tempfile.TemporaryDirectory() as folder:
        if tour(find_sources()[0], Path(folder)):
            return [Condition("a lesson", "good", "the solved first notebook ran to its end")]
    remedy = "install the course again; where room is short, set VITEDU_CACHE to a folder of yours"
    return [Condition("a lesson", "mend", "the solved first notebook failed, see above", remedy)]
