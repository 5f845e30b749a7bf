"""Control groups: a memory limit for a worker and everything that it starts.

Role: ``find_folders`` in which groups can be made, and ``Group``, the group of one worker. Both
versions of the kernel's interface are supported. A worker joins its group through a descriptor that
the parent opened, so the box does not need to see the folder. If no folder is writable, as in most
containers, there is no group, and only the limits of the process apply.

Reference: the kernel's documentation, admin-guide/cgroup-v1/memory and admin-guide/cgroup-v2.
"""

import itertools
import os
import time
from pathlib import Path

from vitedu.grading.box.limits import MB, Limits

SPARE_MB = 256  # copied pages of the fork server, and tables of the kernel
# version -> (the files with the limits, the file that counts kills). The second limit is for memory
# plus swap in version 1, and for swap alone in version 2.
FILES = {
    1: (["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"], "memory.oom_control"),
    2: (["memory.max", "memory.swap.max"], "memory.events"),
}
CONTROLLERS = ("memory", "pids")
_numbers = itertools.count(1)


def find_folders(own: str | None = None, mounts: str | None = None) -> dict[str, tuple[int, Path]]:
    """Return, for ``memory`` and ``pids``, the version and a folder where a group can be made.

    Args:
        own: text of /proc/self/cgroup; default: the file is read.
        mounts: text of /proc/self/mountinfo; default: the file is read.

    Returns:
        Empty if no memory limit is possible.
    """
    own = read_file(Path("/proc/self/cgroup")) if own is None else own
    mounts = read_file(Path("/proc/self/mountinfo")) if mounts is None else mounts
    folders: dict[str, tuple[int, Path]] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        version = 1 if controllers else 2
        names = set(CONTROLLERS) & set(controllers.split(",") if controllers else CONTROLLERS)
        for words in map(str.split, mounts.splitlines()):
            kind, _, options = words[words.index("-") + 1 :][:3]
            if kind != ("cgroup" if version == 1 else "cgroup2"):
                continue
            top = Path(words[4])
            folder = Path(os.path.normpath(top / os.path.relpath(path, words[3])))
            for name in names - set(folders):
                if version == 2 or name in options.split(","):
                    place = find_usable(folder, name, version, top)
                    if place:
                        folders[name] = (version, place)
    return folders if "memory" in folders else {}


def find_usable(folder: Path, controller: str, version: int, top: Path) -> Path | None:
    """Return the folder, or in version 2 one above it, where a group gets this controller."""
    places = [folder] if version == 1 else [folder, *folder.parents]
    for place in places:
        if not place.is_relative_to(top) or not os.access(place, os.W_OK):
            continue
        if version == 1 or controller in read_file(place / "cgroup.subtree_control").split():
            return place
    return None


def read_file(path: Path) -> str:
    """Read a file of the kernel; "" if it does not exist."""
    try:
        return path.read_text()
    except OSError:
        return ""


class Group:
    """The control group of one worker.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, places: dict[str, tuple[int, Path]], limits: Limits):
        name = f"vitedu-{os.getpid()}-{next(_numbers)}"
        self.version, _ = places["memory"]
        self.folders = list(dict.fromkeys(place / name for _, place in places.values()))
        self.memory = places["memory"][1] / name
        self.fds: list[int] = []
        try:
            for folder in self.folders:
                folder.mkdir()
            most = (limits.memory_mb + limits.tmp_mb + SPARE_MB) * MB
            limit_file, swap_file = FILES[self.version][0]
            (self.memory / limit_file).write_text(str(most))
            if (self.memory / swap_file).exists():
                (self.memory / swap_file).write_text("0" if self.version == 2 else str(most))
            if "pids" in places:
                (places["pids"][1] / name / "pids.max").write_text(str(limits.processes))
            for folder in self.folders:
                self.fds.append(os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
        except OSError:
            self.close()
            raise

    def count_kills(self) -> int:
        """Count the processes of this group that the kernel killed because memory ran out."""
        lines = read_file(self.memory / FILES[self.version][1]).splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def close(self) -> None:
        """Remove the group. Its processes must have ended."""
        for fd in self.fds:
            os.close(fd)
        self.fds.clear()
        for folder in self.folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:  # the kernel is still removing the last process
                    time.sleep(0.01)
                else:
                    break


def remove_stale_groups(places: dict[str, tuple[int, Path]]) -> None:
    """Remove the groups of graders that were killed."""
    for _, place in places.values():
        for folder in place.glob("vitedu-*-*"):
            if not Path("/proc", folder.name.split("-")[1]).exists():
                try:
                    folder.rmdir()
                except OSError:
                    pass
