"""What is installed, what will be used, and what to do about each problem.

Role: look at this Python, its libraries, the device, the notebook's kernel and the folders. Every
library is first imported in a process of its own, so that a broken one is a finding and no crash.
Nothing is changed: the commands that mend are printed, not run.
"""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from vitedu import __version__
from vitedu.course.environments import ROOT, has_nvidia_gpu, is_clone
from vitedu.ground import files

MARKS = {"good": "ok", "note": "note", "mend": "MEND"}
NO_BOX = "grading isolates answers by what Linux offers; on Windows work in WSL"
# libraries of which more is asked than their version
IMPORTED = ("numpy", "torch", "torchvision", "matplotlib", "safetensors")
NOT_NEEDED = ("einops", "pytest", "ruff")  # but by tests, style, and who likes it
Run = Callable[..., tuple[bool, str]]  # ``run_python``, or what simulates a fault


@dataclass(frozen=True)
class Condition:
    """How one thing stands that was looked at."""

    subject: str
    state: str  # "good", "note" (works, worth knowing) or "mend" (something will not work)
    text: str
    remedy: str = ""


def run_python(code: str, python: str = sys.executable) -> tuple[bool, str]:
    """Run code in a fresh process, at most two minutes: (is all well, the last line it wrote)."""
    try:
        process = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, errors="replace", timeout=120
        )
    except subprocess.TimeoutExpired:
        return False, "it took more than two minutes"
    except OSError as error:
        return False, str(error)
    is_well = process.returncode == 0
    written = (process.stdout if is_well else process.stderr).strip()
    return is_well, (written or "it ended without a message").splitlines()[-1]


def diagnose(run: Run = run_python) -> list[Condition]:
    """Look at everything, several processes at a time.

    Args:
        run: how to run code; the tests pass one that simulates what may go wrong.
    """
    kind = "a clone" if is_clone() else "installed"
    with ThreadPoolExecutor(max_workers=4) as pool:
        looks = [pool.submit(library, *words, run) for words in requirements()]
        looks.append(pool.submit(kernel, run))
        findings = [
            Condition("python", "good", f"{sys.version.split()[0]}, {sys.executable}"),
            Condition("vitedu", "good", f"{__version__}, {kind} in {ROOT}"),
            *(look.result() for look in looks),
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
    lines.append("everything is in place" if not mend else f"to mend: {mend}")
    return "\n".join(lines)


# --- the looks, one function each ---------------------------------------------------------------


def version_of(name: str) -> str | None:
    """Give the version of an installed distribution, None if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def requirements() -> list[tuple[str, str]]:
    """Give name and lower bound of what this package and its notebooks need, as pip knows them."""
    needed = []
    for line in importlib.metadata.requires("vitedu") or () if version_of("vitedu") else ():
        word, _, marker = line.partition(";")
        name, _, minimum = word.strip().partition(">=")
        if ("extra" not in marker or '"lab"' in marker) and name not in NOT_NEEDED:
            needed.append((name, minimum))
    return needed


def pip(*words: str) -> str:
    """Write a pip command for this Python."""
    return " ".join([sys.executable, "-m", "pip", "install", *words])


def library(name: str, minimum: str, run: Run) -> Condition:
    """Look at the version of a library, and whether a process of its own can import it."""
    version = version_of(name)
    if version is None:
        return Condition(name, "mend", "is not installed", pip(f'"{name}>={minimum}"'))
    if releases(version) < releases(minimum):
        command = pip("--upgrade", f'"{name}>={minimum}"')
        return Condition(name, "mend", f"{version} is older than {minimum}", command)
    is_well, said = run(f"import {name}") if name in IMPORTED else (True, "")
    if not is_well:
        # torchvision has a compiled part that fits one torch
        names = "torch torchvision" if name == "torchvision" else name
        command = pip("--upgrade --force-reinstall", names)
        return Condition(name, "mend", f"{version} cannot be imported: {said}", command)
    return Condition(name, "good", version)


def releases(version: str) -> tuple[int, ...]:
    """Read the numbers of a version; a preview counts as the release that it leads to.

    Example:
        >>> releases("2.15.0a0+cu132"), releases("0.9") < releases("0.11")
        ((2, 15, 0), True)
    """
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def kernel(run: Run) -> Condition:
    """Look at the Python behind the notebooks' kernel: is it there, and does it find vitedu?"""
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except (ImportError, LookupError):  # NoSuchKernel is a KeyError
        return Condition("kernel", "mend", "there is none", pip("jupyterlab ipykernel"))
    is_name = command in ("python", "python3")  # a name: Jupyter takes the Python that it runs in
    command = sys.executable if is_name else command
    if run("import vitedu", command)[0]:
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


def can_isolate() -> bool:
    """Tell whether this is a system whose means the grader can use."""
    return all(importlib.util.find_spec(module) for module in ("fcntl", "resource"))


def grading() -> Condition:
    """Look how well this machine isolates untrusted answers; a canary tries it out."""
    if not can_isolate():
        return Condition("grading", "note", f"isolation none: {NO_BOX}")
    from vitedu.grading.box.isolation import open_box

    try:
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


# --- a lesson ------------------------------------------------------------------------------------

# what a class does on a machine: by subject, code that prints how it went, and what mends it
ANSWER = """
import pathlib, tempfile
from vitedu.course.tour import check_file
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "answer.py")
    path.write_text("from vitedu import patches\\npatchify = patches.patchify")
    checked = check_file(path, seconds=100)
assert checked.everything_passed, " ".join(checked.text.split())
print("a kernel started, and the right answer to 1.1 passed")
"""
FIGURE = """
from vitedu.plots.patches import show_tiny_cut
print(f"a PNG file of {len(show_tiny_cut().png()) // 1000} kB")
"""
MODEL = """
from vitedu.data import load_data
from vitedu.fitting.evaluating import measure_test_accuracy
from vitedu.pretrained.loading import load_pretrained
model = load_pretrained("vit_pico_patch4_32.cifar10")
right = 100 * measure_test_accuracy(model, load_data("cifar10", limit=20, held_out=100))
assert right > 70, f"the trained model names {right:.0f} of 100 photographs right, not about 80"
print(f"the trained model names {right:.0f} of 100 photographs right")
"""
DATA = """
from vitedu.data import load_data
print(f"{len(load_data('cifar10').train.labels):,} photographs to train on can be read")
"""
AGAIN = "mend first what stands above, then install the course again"
LESSON = {
    "an answer": (ANSWER, AGAIN),
    "a figure": (FIGURE, pip("--upgrade", "--force-reinstall", "matplotlib pillow")),
    "a model": (MODEL, AGAIN),
    "the data": (DATA, "set VITEDU_CACHE to a folder of yours with 200 MB of room"),
}


def check_lesson(run: Run = run_python) -> list[Condition]:
    """Try what a class will do, one after the other: two minutes each at most.

    Args:
        run: as in ``diagnose``, whose problems come first.
    """
    findings = [finding for finding in diagnose(run) if finding.state == "mend"]
    findings = findings or [Condition("doctor", "good", "nothing to mend")]
    for subject, (code, remedy) in LESSON.items():
        start = time.perf_counter()
        is_well, said = run(code)
        words = f"{said} ({time.perf_counter() - start:.0f} s)"
        state = "good" if is_well else "mend"
        findings.append(Condition(subject, state, words, "" if is_well else remedy))
    return findings
