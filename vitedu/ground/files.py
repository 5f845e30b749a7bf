"""Where a user's files belong, and how a file is written that others read or that may be cut off.

Role: the folder of results, the folder of downloads, replacing a file in one step, a lock between
processes. Nothing here loads torch or numpy. Not here: what the files hold (``course.results``,
``fitting.checkpoints``, ``data``).
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNFINISHED = ".new"  # the suffix of a file that is being written


def data_folder() -> Path:
    """Give the folder of results, which need not exist yet: ``VITEDU_HOME``, else the usual one."""
    from platformdirs import user_data_path

    usual = user_data_path("vitedu", appauthor=False)
    return Path(os.environ.get("VITEDU_HOME") or usual).expanduser()


def cache_folder() -> Path:
    """Give the folder of downloads: ``VITEDU_CACHE``, else the usual one."""
    from platformdirs import user_cache_path

    usual = user_cache_path("vitedu", appauthor=False, opinion=False)
    return Path(os.environ.get("VITEDU_CACHE") or usual).expanduser()


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Give the path of a new file, which replaces ``path`` when the block ends without error.

    A reader sees the old file or the new one, never a part. Each writer has a file of its own.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replace_file(Path(folder) / "a.txt") as new:
        ...         _ = new.write_text("whole")
        ...     [path.name for path in Path(folder).iterdir()]
        ['a.txt']
    """
    path = Path(path)
    new = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{UNFINISHED}")
    try:
        yield new
        os.replace(new, path)
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file in one step that survives a power cut: the content reaches the disk first.

    Raises:
        OSError: the file cannot be written; the old one is as it was.
    """
    with replace_file(path) as new, open(new, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def file_lock(path: Path, seconds: float) -> Iterator[bool]:
    """Hold a lock between processes and threads while the block runs.

    The operating system drops the lock when its process ends, so that a killed one holds nobody up.
    The file itself stays and means nothing.

    Args:
        path: the file of the lock; its folder exists.
        seconds: how long to wait for another holder; 0 asks once.

    Yields:
        False if another one still holds the lock; the caller decides what to do then. True
        otherwise, also on a file system that knows no locks.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "lock"
        ...     with file_lock(path, 1) as first, file_lock(path, 0) as second:
        ...         first, second
        (True, False)
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=seconds, poll_interval=0.01)
        alone = True
    except Timeout:
        alone = False
    except (OSError, NotImplementedError):  # a file system without locks
        alone = True
    try:
        yield alone
    finally:
        lock.release()
