"""The methods to isolate the fork server, strongest first, and what each needs.

Role: ``METHODS`` lists those of each platform. ``plan_launch`` turns one into a command and the
set-up that the fork server reads. The canary finds out what a method is worth. ``confinement``
restricts each worker after its fork.

* ``bwrap``: bubblewrap: no network, own process numbers, and only the files that Python needs.
* ``namespaces``: for root without bubblewrap; the fork server enters new namespaces itself.
* ``sandbox-exec``: Apple's tool, which is deprecated without a successor. Written from
  its manual and not tried on a Mac.
* ``plain``: only what a process can give up itself: Landlock, the filter of system calls, limits,
  its user.

Colab is Linux with root in a container that refuses most namespaces.
"""

import json
import os
import shutil
import site
import stat
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from vitedu.grading.box.limits import MB, Limits

METHODS = {
    "linux, root": ("bwrap", "namespaces", "plain"),
    "linux": ("bwrap", "plain"),
    "darwin": ("sandbox-exec", "plain"),
}
USERS = (60706, 400)  # the first, and how many: user numbers that no system assigns
BOOT = """
import json, sys
view, libraries = json.loads(sys.argv[1])
sys.path[:0] = [view]
sys.path += libraries
from vitedu.grading.box import fork_server
getattr(fork_server, sys.argv[2])(*sys.argv[3:])
"""
SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
STORES = ("/nix/store", "/gnu/store")  # where some systems keep all libraries
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SCRATCH = "/scratch"  # inside bubblewrap; not /tmp, because a Python environment may be in there
OWN_PACKAGES = ("vitedu", "__editable__.vitedu", "__editable___vitedu")  # names in site-packages
# Libraries that contain answers of the course; no answer needs them. They are hidden on disk, and
# importing them is refused, so that it fails alike whether a machine has them or not.
SOLUTION_LIBRARIES = (
    "timm torchvision transformers vit_pytorch x_transformers xformers open_clip flash_attn scipy "
    "sklearn jax flax keras tensorflow paddle mxnet torchmetrics torcheval ignite kornia monai "
    "diffusers fastai skimage torch_geometric mmpretrain lightly"
).split()
# capabilities of the fork server
CAPABILITIES = ("SYS_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN")
PROFILE = """(version 1)
(allow default)
(deny network*)
(deny file-write*)
(allow file-write* (subpath "{tmp}") (literal "/dev/null"))
(deny file-read* (subpath "/Users") (subpath "/Volumes"))
(allow file-read* {readable})
(deny signal (target others))
"""


@dataclass
class LaunchPlan:
    """How to start the fork server."""

    command: list[str]
    environment: dict[str, str]
    setup: dict  # the first message to it
    required: list[str] = field(default_factory=list)  # files that a worker must be able to read


def available_methods() -> tuple[str, ...]:
    """Return the methods of this platform.

    Raises:
        OSError: there is none.
    """
    root = ", root" if sys.platform == "linux" and os.geteuid() == 0 else ""
    if sys.platform + root not in METHODS:
        raise OSError(
            f"vitedu grade needs Linux or macOS (got {sys.platform}); on Windows, use WSL."
        )
    return METHODS[sys.platform + root]


def plan_launch(method: str, limits: Limits, view: Path, tmp: Path) -> LaunchPlan:
    """Make the command and the set-up of a method.

    Args:
        method: a name of ``METHODS``.
        limits: of the workers.
        view: folder with the package's files for the box.
        tmp: an empty folder.

    Raises:
        OSError: something that the method needs is missing; the message says what.
    """
    root = sys.platform == "linux" and os.geteuid() == 0
    python = os.path.realpath(sys.executable)
    libraries = library_folders()
    readable = [python, str(Path(sys.base_prefix) / "lib"), *libraries, *SYSTEM, *STORES]
    readable += [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    readable = [path for path in dict.fromkeys(readable) if os.path.exists(path)]
    own_mounts = method in ("bwrap", "namespaces")
    required = [python, os.__file__, os.path.join(libraries[0], "torch", "__init__.py")]
    # A worker's user may lack access to folders that root can read. Inside bubblewrap the files are
    # mounted elsewhere, so there it always has access.
    own_user = root and (method == "bwrap" or not any(map(find_private_part, required)))
    inside_view, inside_tmp = ("/box", SCRATCH) if method == "bwrap" else (str(view), str(tmp))
    boot = [python, "-I", "-S", "-B", "-c", BOOT, json.dumps([inside_view, libraries])]
    environment = {
        "PATH": "/nowhere",
        "USER": "student",
        "HOME": inside_tmp,
        "TMPDIR": inside_tmp,
        "MPLCONFIGDIR": inside_tmp,
        "MPLBACKEND": "Agg",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    }
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    setup = {
        "limits": asdict(limits),
        "forks": sys.platform == "linux",  # on other systems the libraries do not survive a fork
        "new_namespaces": method == "namespaces",
        "own_pids": own_mounts,
        "mounts": own_mounts,
        "uid": USERS[0] if own_user else 0,
        "tmp": inside_tmp,
        "hidden_libraries": SOLUTION_LIBRARIES,
        # Every rule costs a worker a call. Hidden paths are covered by mounts, or else refused
        # by the many rules that the fork server gives itself before it forks.
        "readable": [inside_view, *readable],
        "visible_paths": [] if own_mounts else [inside_view, *find_visible(readable)],
        # bubblewrap covers them itself
        "hidden_paths": find_hidden(readable) if method == "namespaces" else [],
        "python": boot,
    }
    command = boot
    if method == "bwrap":
        command = [*bubblewrap_command(root, limits, view, readable), *boot]
    elif method == "sandbox-exec":
        tool = shutil.which("sandbox-exec")
        if tool is None:
            raise OSError("sandbox-exec is not there")
        paths = " ".join(f'(subpath "{path}")' for path in (tmp, view, *readable))
        command = [tool, "-p", PROFILE.format(tmp=tmp, readable=paths), *boot]
    return LaunchPlan(command, environment, setup, required)


def bubblewrap_command(root: bool, limits: Limits, view: Path, readable: list[str]) -> list[str]:
    """Write bubblewrap's part of the command, up to the program."""
    tool = shutil.which("bwrap")
    if tool is None:
        raise OSError("bubblewrap is not installed")
    words = [tool, "--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid"]
    words += ["--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--cap-drop", "ALL"] if root else ["--unshare-user"]
    for name in CAPABILITIES if root else ("SYS_ADMIN", "SETPCAP"):
        words += ["--cap-add", f"CAP_{name}"]
    parents = {parent for path in readable for parent in Path(path).parents} - {Path("/")}
    for parent in sorted(parents - {Path(path) for path in readable}):
        words += ["--dir", str(parent)]  # otherwise only its owner could open it
    for path in readable:
        if os.path.islink(path) and path in SYSTEM:
            words += ["--symlink", os.readlink(path), path]
        else:
            words += ["--ro-bind", path, path]
    for path in find_hidden(readable):
        if os.path.isdir(path):
            words += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
        else:
            words += ["--ro-bind", "/dev/null", path]
    words += ["--ro-bind", str(view), "/box", "--proc", "/proc"]
    words += ["--size", str(limits.tmp_mb * MB), "--tmpfs", SCRATCH, "--chdir", SCRATCH]
    for device in DEVICES:
        words += ["--dev-bind", device, device]
    return [*words, "--remount-ro", "/"]


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


def find_hidden(readable: list[str]) -> list[str]:
    """List copies of this package and libraries with answers inside folders of packages."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    paths = []
    for path in readable:
        for folder in (path, f"{path}/{version}/site-packages", f"{path}/python3/dist-packages"):
            for pattern in (*[f"{name}*" for name in OWN_PACKAGES], *SOLUTION_LIBRARIES):
                paths += [str(entry) for entry in Path(folder).glob(pattern)]
    return sorted(set(paths))


def find_visible(readable: list[str]) -> list[str]:
    """List paths that together cover everything except the hidden ones; Landlock can only allow."""
    hidden = {Path(path) for path in find_hidden(readable)}
    paths, todo = [], [Path(path) for path in readable]
    while todo:
        path = todo.pop()
        if path in hidden:
            continue
        if path.is_dir() and any(hidden_path.is_relative_to(path) for hidden_path in hidden):
            todo += path.iterdir()
        else:
            paths.append(str(path))
    return sorted(paths)


def find_private_part(path: str) -> str:
    """Return the first part of a path that other users cannot enter or read, or ""."""
    path = os.path.realpath(path)
    for part in [*reversed(Path(path).parents), Path(path)]:
        mode = part.stat().st_mode
        if not mode & (stat.S_IXOTH if part.is_dir() else stat.S_IROTH):
            return str(part)
    return ""
