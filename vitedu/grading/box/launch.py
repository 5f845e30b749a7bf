"""How the fork server is started, and what its workers may see.

Role: ``plan_launch`` makes a command and the set-up that the fork server reads. The canary finds
out what that is worth on this machine.
"""

import json
import os
import site
import stat
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from vitedu.grading.box.limits import Limits
from vitedu.grading.box.linux import NEWEST_LANDLOCK

USERS = (60706, 400)  # the first, and how many: user numbers that no system assigns
BOOT = """
import json, sys
view, libraries = json.loads(sys.argv[1])
sys.path[:0] = [view]
sys.path += libraries
from vitedu.grading.box import fork_server
fork_server.serve(sys.argv[2])
"""
SYSTEM = "/usr/lib /usr/lib64 /lib /lib64 /etc/ld.so.cache /etc/alternatives /nix/store".split()
OWN_PACKAGES = ("vitedu", "__editable__.vitedu", "__editable___vitedu")  # names in site-packages
# Libraries that contain answers of the course; no answer needs them. They are hidden on disk, and
# importing them is refused, so that it fails alike whether a machine has them or not.
SOLUTION_LIBRARIES = (
    "timm torchvision transformers vit_pytorch x_transformers xformers open_clip flash_attn scipy "
    "sklearn jax flax keras tensorflow paddle mxnet torchmetrics torcheval ignite kornia monai "
    "diffusers fastai skimage torch_geometric mmpretrain lightly"
).split()


@dataclass
class LaunchPlan:
    """How to start the fork server."""

    command: list[str]
    environment: dict[str, str]
    setup: dict  # the first message to it
    required: list[str]  # files that a worker must be able to read


def plan_launch(limits: Limits, view: Path, empty: Path) -> LaunchPlan:
    """Make the command and the set-up."""
    if sys.platform != "linux":
        words = f"vitedu grade needs Linux (got {sys.platform})"
        raise OSError(f"{words}; on Windows, use WSL, on macOS a virtual machine with Linux.")
    python = os.path.realpath(sys.executable)
    libraries = library_folders()
    readable = [python, str(Path(sys.base_prefix) / "lib"), *libraries, *SYSTEM]
    readable += [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    readable = [path for path in dict.fromkeys(readable) if os.path.exists(path)]
    required = [python, os.__file__, os.path.join(libraries[0], "torch", "__init__.py")]
    boot = [python, "-I", "-S", "-B", "-c", BOOT, json.dumps([str(view), libraries])]
    visible, folders = find_visible(readable)
    environment = {n: path for n, path in os.environ.items() if n == "LD_LIBRARY_PATH"}
    environment |= {"PATH": "/nowhere", "USER": "student", "MPLBACKEND": "Agg"}
    environment |= dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), str(empty))
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment |= {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"} | dict.fromkeys(threads, "1")
    setup = {
        "limits": asdict(limits),
        "uid": USERS[0] if os.geteuid() == 0 else 0,
        "is_private": any(map(find_private_part, [*required, str(view)])),
        "empty": str(empty),
        "hidden_libraries": SOLUTION_LIBRARIES,
        "visible_paths": [str(view), str(empty), *visible],
        "listed_folders": folders,
        "newest_landlock": NEWEST_LANDLOCK,
    }
    return LaunchPlan(boot, environment, setup, required)


def library_folders() -> list[str]:
    """Return the folders of installed packages on this Python's path, the one with torch first."""
    names = ("site-packages", "dist-packages")
    user = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    folders = [os.path.abspath(path) for path in [*sys.path, user] if Path(path).name in names]
    folders = [path for path in dict.fromkeys(folders) if os.path.isdir(path)]
    folders.sort(key=lambda path: not os.path.isdir(os.path.join(path, "torch")))
    if not folders:
        raise OSError(f"no folder of installed packages is on the path of {sys.executable}")
    return folders


def find_visible(readable: list[str]) -> tuple[list[str], list[str]]:
    """List what covers everything except copies of this package and libraries with answers.

    Landlock can only allow, so a folder with such an entry is replaced by its other entries.

    Returns:
        (paths that can be read, folders with hidden paths in them, which can only be listed)
    """
    inner = ("", f"python{sys.version_info[0]}.{sys.version_info[1]}/site-packages")
    places = [Path(path, name) for path in readable for name in (*inner, "python3/dist-packages")]
    patterns = (*[f"{name}*" for name in OWN_PACKAGES], *SOLUTION_LIBRARIES)
    hidden = {path for place in places for pattern in patterns for path in place.glob(pattern)}
    paths, folders, todo = [], [], [Path(path) for path in readable]
    while todo:
        path = todo.pop()
        if path in hidden:
            continue
        if path.is_dir() and any(hidden_path.is_relative_to(path) for hidden_path in hidden):
            folders.append(str(path))
            todo += path.iterdir()
        else:
            paths.append(str(path))
    return sorted(paths), sorted(folders)


def find_private_part(path: str) -> str:
    """Return the first part of a path that other users cannot enter or read, or ""."""
    path = os.path.realpath(path)
    for part in [*reversed(Path(path).parents), Path(path)]:
        mode = part.stat().st_mode
        if not mode & (stat.S_IXOTH if part.is_dir() else stat.S_IROTH):
            return str(part)
    return ""
