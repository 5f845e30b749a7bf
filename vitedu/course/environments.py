"""The two environments of a clone: ``.venv`` for the course, ``.venv-test`` for its tests.

Role: ``set_up``, ``set_up_tests`` and ``run_tests``, behind ``make`` and ``python -m vitedu``. It
runs before anything is installed, so it needs the standard library alone. The tests' own packages
stand apart, because nbgrader would put its menus into a student's JupyterLab.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import urllib.request
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]  # the clone; where the package is installed there is none
CPU_BUILD = "https://download.pytorch.org/whl/cpu"  # torch without CUDA, about a tenth of the size
INDEX_SECONDS = 3.0
GPU_FILES = ("/proc/driver/nvidia/version", "/usr/lib/wsl/lib/nvidia-smi")
HOW_TO = "INSTALL.txt"
INSTALL = """\
vitedu for {python}, without a network. Type this in this folder:

python3 -m venv .venv
.venv/bin/python -m pip install --no-index --find-links . "vitedu[lab]"

Then `.venv/bin/vitedu doctor --class` tries whether all works, and `.venv/bin/vitedu start` opens
the course. On Windows write `py` for python3, and `.venv\\Scripts` for .venv/bin.
"""
# two workers more than cores (tests/conftest.py), because tests also wait; one thread each
PYTEST = "-m pytest -n logical --maxprocesses 4 --dist loadscope --timeout=300 -p no:nbval".split()


def set_up(root: Path = ROOT) -> None:
    """Create ``.venv`` and install requirements.txt and the package; ``PIP_ARGS`` goes to pip.

    On Linux without an NVIDIA GPU torch and torchvision come from torch's own index for CPUs, where
    that answers within three seconds and ``PIP_ARGS`` says nothing else.

    Raises:
        ValueError: there is no clone here.
        OSError: a step failed; the message says what to do.
    """
    python = _create(root, ".venv")
    print(f"Setting up {root / '.venv'}, once: this takes minutes. pip shows each file below.")
    print("If the download breaks, run the same command again; what has arrived is kept.")
    _torch_first(root, python, "install")
    _pip(root, python, "install", "--requirement", "requirements.txt", "--editable", ".")


def bundle(folder: Path, root: Path = ROOT) -> None:
    """Fill a folder with the package and all wheels that it needs, for machines without a network.

    They fit this system and this version of Python; ``INSTALL.txt`` says how they are installed.

    Args:
        folder: a new or empty one, or an earlier bundle, whose wheels go.
        root: the clone.

    Raises:
        ValueError: there is no clone here, or the folder holds something else.
        OSError: as ``set_up``.
    """
    check_clone(root)
    folder = folder.resolve()
    if any(file.suffix != ".whl" and file.name != HOW_TO for file in folder.glob("*")):
        raise ValueError(f"{folder} holds other things than wheels; name a new folder.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    into = "--wheel-dir", str(folder)
    _torch_first(root, sys.executable, "wheel", *into)
    torch = map(str, folder.glob("torch*.whl"))
    _pip(root, sys.executable, "wheel", *into, *torch, "--requirement", "requirements.txt", ".")
    python = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sysconfig.get_platform()}"
    (folder / HOW_TO).write_text(INSTALL.format(python=python), encoding="utf-8")
    print(f"{len([*folder.glob('*.whl')])} wheels in {folder}, for {python}; see {HOW_TO}.")


def set_up_tests(root: Path = ROOT) -> None:
    """Create ``.venv-test``, which looks into this environment, so that torch is installed once.

    Raises:
        ValueError, OSError: as ``set_up``.
    """
    python = _create(root, ".venv-test")
    own = next((root / ".venv-test").rglob("site-packages"))
    (own / "student.pth").write_text(sysconfig.get_path("purelib"))
    _pip(root, python, "install", "--quiet", "--editable", ".[test,site]")
    (root / ".venv-test" / ".test").touch()


def run_tests(words: list[str], root: Path = ROOT) -> int:
    """Set up the tests if need be, and run pytest with these words; give its exit status.

    Raises:
        ValueError, OSError: as ``set_up``.
    """
    check_clone(root)
    stamp = root / ".venv-test" / ".test"
    dates = [(root / file).stat().st_mtime for file in ("pyproject.toml", "requirements.txt")]
    if not stamp.exists() or max(dates) > stamp.stat().st_mtime:
        set_up_tests(root)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["JUPYTER_PATH"] = str(Path(sys.prefix) / "share" / "jupyter")
    # set in many containers; each run would compile all tests again, in each of its workers
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = signal.signal(signal.SIGINT, lambda *_: None)  # pytest ends by itself, with its sum
    try:
        command = [_python(root / ".venv-test"), *PYTEST, *words]
        return subprocess.call(command, cwd=root, env=environment)
    finally:
        signal.signal(signal.SIGINT, before)


def has_nvidia_gpu() -> bool:
    """Tell whether an NVIDIA driver is here."""
    return bool(shutil.which("nvidia-smi")) or any(Path(file).exists() for file in GPU_FILES)


def answers(address: str, seconds: float = INDEX_SECONDS) -> bool:
    """Tell whether a web address answers with success within so many seconds."""
    with suppress(OSError, ValueError), urllib.request.urlopen(address, timeout=seconds) as reply:
        return reply.status == 200
    return False


def _python(folder: Path) -> str:
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def check_clone(root: Path = ROOT) -> None:
    """Raise ValueError where there is no clone, as where pip installs."""
    if not (root / "requirements.txt").is_file() or not (root / "tests").is_dir():
        text = f"this vitedu is installed in {root}. Clone the repository and run it there"
        raise ValueError(f"the command needs a clone, and {text}.")


def _create(root: Path, name: str) -> str:
    """Create an environment unless it is there, and give the path of its Python."""
    check_clone(root)
    python = _python(root / name)
    if not Path(python).exists() and not _run([sys.executable, "-m", "venv", str(root / name)]):
        shutil.rmtree(root / name, ignore_errors=True)
        remedy = "on Debian and Ubuntu: apt install python3-venv"
        raise OSError(f"{sys.executable} could not create {root / name}; {remedy}")
    return python


def _torch_first(root: Path, python: str, *words: str) -> None:
    """Have pip take torch without CUDA where that is right; the ordinary build follows if not."""
    if os.environ.get("PIP_ARGS") or sys.platform != "linux" or has_nvidia_gpu():
        return
    if not answers(f"{CPU_BUILD}/torch/"):
        print("No NVIDIA GPU here, but torch's CPU index gives no answer within three seconds,")
        print("so pip takes the ordinary build, which is 5.4 GB with its CUDA libraries.")
        return
    print(f"No NVIDIA GPU here: torch and torchvision come without CUDA, from {CPU_BUILD}.")
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    names = [line.split("#")[0].strip() for line in lines if line.startswith("torch")]
    if not _run([python, "-m", "pip", *words, "--index-url", CPU_BUILD, *names]):
        print("That failed, so the ordinary index follows.")


def _pip(root: Path, python: str, command: str, *words: str) -> None:
    own = shlex.split(os.environ.get("PIP_ARGS", ""))
    if not _run([python, "-m", "pip", command, *own, *words], cwd=root):
        raise OSError("pip stopped; run the same command again, what has arrived is kept.")


def _run(command: list[str], **options) -> bool:
    sys.stdout.flush()
    return subprocess.call(command, **options) == 0
