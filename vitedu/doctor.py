"""What is installed, what will be used, and what to do about each problem.

Role: look at this Python, its libraries, the device, the notebook's kernel and the folders. Every
library is imported in a process of its own, so that a broken one is a finding and not a crash.
Nothing is changed: the commands that mend are printed, not run.
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from vitedu import __version__, files
from vitedu.course.environments import CPU_BUILD, ROOT, has_nvidia_gpu, is_clone

MARKS = {"good": "ok", "note": "note", "mend": "MEND"}
WHEEL = f"vitedu-{__version__}-py3-none-any.whl"
NO_BOX = "grading isolates answers by what Linux offers; on Windows work in WSL"

# The lower bounds of requirements.txt (a test holds them equal): imported here, or only looked up.
IMPORTS = dict(numpy="1.24", torch="2.9", torchvision="0.24", matplotlib="3.8", safetensors="0.4")
LIBRARIES = (
    "platformdirs=3.0 filelock=3.12 packaging=22.0 jinja2=3.1 jupyterlab=4.0 ipykernel=6.17 "
    "ipywidgets=7.7 nbformat=5.9 nbclient=0.9 nbconvert=7.12 nbval=0.11"
)
OTHER_PACKAGES = dict(library.split("=") for library in LIBRARIES.split())
HARDWARE = """
import json, torch
from vitedu.data import load_data
from vitedu.hardware import current_profile, pick_device, pick_precision
device = pick_device()
name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
problem = ""
try:
    load_data("cifar10", limit=1, held_out=1)
except RuntimeError as error:
    problem = str(error)
print(json.dumps({
    "device": device.type, "name": name, "precision": str(pick_precision(device)).split(".")[1],
    "threads": torch.get_num_threads(), "cuda_build": torch.version.cuda,
    "profile": str(current_profile()).splitlines()[0], "photographs": problem,
}))
"""

GRADING = """
import json
from vitedu.grading.box.isolation import open_box
with open_box(allow_unsafe=True) as box:
    found = box.isolation
    words = {"level": box.level, "tried": found.count, "by": found.restrictions}
    print(json.dumps(words | {"lines": found.explain()}))
"""


@dataclass(frozen=True)
class Condition:
    """How one thing stands that was looked at."""

    subject: str
    state: str  # "good", "note" (works, worth knowing) or "mend" (something will not work)
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class ProcessResult:
    """How a Python process ended."""

    ok: bool
    out: str
    err: str

    @property
    def last(self) -> str:
        """Give the last line that it wrote."""
        written = self.out if self.ok else self.err
        return (written.strip() or "it ended without a message").splitlines()[-1]


def run_python(code: str, python: str = sys.executable) -> ProcessResult:
    """Run code in a fresh process, at most two minutes."""
    try:
        process = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, errors="replace", timeout=120
        )
    except subprocess.TimeoutExpired:
        return ProcessResult(False, "", "it took more than two minutes")
    except OSError as error:
        return ProcessResult(False, "", str(error))
    return ProcessResult(process.returncode == 0, process.stdout, process.stderr)


def diagnose(run: Callable[..., ProcessResult] = run_python) -> list[Condition]:
    """Look at everything, several processes at a time.

    Args:
        run: how to run code, ``run_python``; the tests pass one that simulates what may go wrong.
    """
    with ThreadPoolExecutor(max_workers=4) as pool:
        libraries = [pool.submit(library, name, run) for name in IMPORTS]
        hardware = pool.submit(run, HARDWARE)
        boxed = pool.submit(run, GRADING) if can_isolate() else None
        in_kernel = pool.submit(kernel, run)
        findings = [python(sys.version_info), course()]
        findings += [future.result() for future in libraries]
        findings += [tool(name, version_of(name)) for name in OTHER_PACKAGES]
        findings.append(in_kernel.result())
        torch_works = all(f.state != "mend" for f in findings if f.subject in ("numpy", "torch"))
        findings += machine(hardware.result(), torch_works)
        if torch_works:
            findings.append(grading(boxed.result() if boxed else ProcessResult(False, "", NO_BOX)))
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


def python(version: tuple) -> Condition:
    """Look at the version of this Python."""
    version_text = f"{'.'.join(map(str, version[:3]))}, {sys.executable}"
    if version[:2] < (3, 11):
        then = "make lab PYTHON=python3.12" if is_clone() else "install vitedu's wheel with it"
        remedy = f"install Python 3.11 or newer, then: {then}"
        return Condition("python", "mend", f"{version_text} is too old", remedy)
    return Condition("python", "good", version_text)


def course() -> Condition:
    """Look where this package lies: in a clone, or where pip installed it."""
    kind = "a clone" if is_clone() else "installed"
    return Condition("vitedu", "good", f"{__version__}, {kind} in {ROOT}")


def version_of(name: str) -> str | None:
    """Give the version of an installed distribution, None if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_older(version: str, minimum: str) -> bool:
    """Compare the releases of two versions; a preview counts as the release that it leads to.

    Example:
        >>> is_older("2.15.0+cu132", "2.9"), is_older("0.9", "0.11")
        (False, True)
    """
    try:
        from packaging.version import Version
    except ImportError:  # its own line says that it is missing
        return False
    return Version(version).release < Version(minimum).release


def pip(*words: str) -> str:
    """Write a pip command for this Python."""
    return " ".join([sys.executable, "-m", "pip", "install", *words])


def tool(name: str, version: str | None) -> Condition:
    """Look at a library by its version alone."""
    minimum = {**IMPORTS, **OTHER_PACKAGES}[name]
    if version is None:
        return Condition(name, "mend", "is not installed", pip(f'"{name}>={minimum}"'))
    if is_older(version, minimum):
        command = pip("--upgrade", f'"{name}>={minimum}"')
        return Condition(name, "mend", f"{version} is older than {minimum}", command)
    return Condition(name, "good", version)


def library(name: str, run: Callable[..., ProcessResult]) -> Condition:
    """Look at a library by importing it in a process of its own."""
    finding = tool(name, version_of(name))
    if finding.state == "mend":
        return finding
    result = run(f"import {name}")
    # torchvision has a compiled part that fits one torch
    names = ("torch", "torchvision") if name == "torchvision" else (name,)
    remedy = pip("--upgrade", "--force-reinstall", *names)
    if "torchvision::nms does not exist" in result.err:
        pair = ", ".join(f"{each} {version_of(each)}" for each in names)
        problem = f"cannot be imported: operator torchvision::nms does not exist ({pair})"
        remedy = (
            "torch and torchvision come from different builds: torchvision's compiled part was "
            "made\n"
            f"for another torch. Reinstall both with one command, so that they match:\n{remedy}"
        )
    elif result.ok:
        return finding
    else:
        problem = f"{finding.text} cannot be imported: {result.last}"
    return Condition(name, "mend", problem, remedy)


def kernel(run: Callable[..., ProcessResult]) -> Condition:
    """Look at the Python behind the notebooks' kernel: is it there, and does it find vitedu?"""
    register = f"{sys.executable} -m ipykernel install --user --name vitedu --display-name vitedu"
    choose = f"{register}\nand choose the kernel vitedu in the notebook"
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        return Condition("kernel", "mend", "Jupyter is not installed", pip("jupyterlab ipykernel"))
    try:
        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        return Condition("kernel", "mend", "no kernel python3 is registered", choose)
    is_name = command in ("python", "python3")  # a name: Jupyter takes the Python that it runs in
    command = sys.executable if is_name else command
    result = run("import vitedu, sys; print(sys.prefix)", command)
    if not result.ok:
        problem = f"the kernel python3 is {command}, which cannot import vitedu"
        return Condition("kernel", "mend", problem, choose)
    if Path(result.out.strip()) != Path(sys.prefix):
        problem = f"the kernel python3 is another Python, {command}; it has vitedu, too"
        return Condition("kernel", "note", problem, f"To use this one: {choose}")
    return Condition("kernel", "good", f"python3 is {command} and imports vitedu")


def machine(result: ProcessResult, torch_works: bool) -> list[Condition]:
    """Look at the device, its precision, the profile, and the photographs of CIFAR-10."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    findings = [Condition("cores", "good", str(cores))]
    if not result.ok:
        if torch_works:
            remedy = "set VITEDU_PROFILE to quick, laptop or gpu, or unset it"
            again = pip("--editable .") if is_clone() else pip("--force-reinstall --no-deps", WHEEL)
            remedy = remedy if "VITEDU_PROFILE" in result.last else again
            findings.append(Condition("device", "mend", result.last, remedy))
        return findings
    hardware = json.loads(result.last)
    summary = " ".join(word for word in (hardware["device"], hardware["name"]) if word)
    summary = f"{summary}, {hardware['precision']}, {hardware['threads']} CPU threads"
    if hardware["device"] == "cpu" and has_nvidia_gpu():
        remedy = "this torch was built without CUDA; install a build with it, with its torchvision"
        if cuda := hardware["cuda_build"]:
            remedy = f"torch needs a driver for CUDA {cuda}; nvidia-smi shows the driver's"
        problem = f"{summary}; an NVIDIA driver is here, but torch does not use it"
        findings.append(Condition("device", "note", problem, remedy))
    else:
        findings.append(Condition("device", "good", summary))
    findings.append(Condition("profile", "good", hardware["profile"].removeprefix("profile ")))
    findings.append(build(hardware["device"], hardware["cuda_build"]))
    problem = hardware["photographs"]
    text = problem or "60,000 photographs come with the package"
    return [*findings, Condition("CIFAR-10", "note" if problem else "good", text)]


def build(device: str, cuda: str | None) -> Condition:
    """Look whether torch's build fits the machine: that for CUDA wastes gigabytes on a CPU."""
    if not cuda:
        return Condition("torch build", "good", "without CUDA")
    if device == "cuda" or has_nvidia_gpu():
        return Condition("torch build", "good", f"for CUDA {cuda}")
    saving = "To save disk (the CUDA build takes 5.4 GB, the CPU build about a tenth):"
    both = pip("--force-reinstall torch torchvision --index-url", CPU_BUILD)
    remedy = f"It works. {saving}\n{'make clean && make setup' if is_clone() else both}"
    text = f"for CUDA {cuda}, on a machine without an NVIDIA driver"
    return Condition("torch build", "note", text, remedy)


def can_isolate() -> bool:
    """Tell whether this is a system whose means the grader can use."""
    return all(importlib.util.find_spec(module) for module in ("fcntl", "resource"))


def grading(result: ProcessResult) -> Condition:
    """Look how well this machine isolates untrusted answers; a canary tries it out."""
    if not result.ok:
        message = result.err.split("IsolationError: ")[-1].strip() or "it ended without a message"
        problem, _, rest = message.partition("\n")
        return Condition("grading", "note", f"isolation none: {problem}", rest)
    isolation = json.loads(result.last)
    text = f"isolation {isolation['level']}; {isolation['tried']} ways out were tried"
    if isolation["level"] == "full":
        return Condition("grading", "good", f"{text}: {', '.join(isolation['by'])}")
    return Condition("grading", "note", text, "\n".join(isolation["lines"]))


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
data = load_data("cifar10")
count = sum(len(split.labels) for split in (data.train, data.validation, data.test))
print(f"{count:,} photographs can be read")
"""
AGAIN = "mend first what stands above, then install the course again"
LESSON = {
    "an answer": (ANSWER, AGAIN),
    "a figure": (FIGURE, pip("--upgrade", "--force-reinstall", "matplotlib pillow")),
    "a model": (MODEL, AGAIN),
    "the data": (DATA, "set VITEDU_CACHE to a folder of yours with 200 MB of room"),
}


def check_lesson(run: Callable[..., ProcessResult] = run_python) -> list[Condition]:
    """Try what a class will do, one after the other: two minutes each at most.

    Args:
        run: as in ``diagnose``, whose problems come first.
    """
    findings = [finding for finding in diagnose(run) if finding.state == "mend"]
    findings = findings or [Condition("doctor", "good", "nothing to mend")]
    for subject, (code, remedy) in LESSON.items():
        start = time.perf_counter()
        result = run(code)
        words = f"{result.last} ({time.perf_counter() - start:.0f} s)"
        state = "good" if result.ok else "mend"
        findings.append(Condition(subject, state, words, "" if result.ok else remedy))
    return findings
