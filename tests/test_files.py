"""vitedu.ground.files: folders of each platform, whole files, locks that end with their owner."""

import subprocess
import sys
import threading

import pytest

from vitedu.ground import files


@pytest.fixture
def plain(monkeypatch, tmp_path):
    """A user without settings, whose home is empty."""
    for name in ("VITEDU_HOME", "VITEDU_CACHE", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "variable"),
    [(files.data_folder, "VITEDU_HOME"), (files.cache_folder, "VITEDU_CACHE")],
    ids=["data", "cache"],
)
def test_folder_follows_its_variable_and_expands_the_tilde(plain, monkeypatch, folder, variable):
    """The variable wins over the platform."""
    monkeypatch.setenv(variable, str(plain / "elsewhere"))
    assert folder() == plain / "elsewhere"
    monkeypatch.setenv(variable, "~/mine")
    assert folder() == plain / "mine"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the places of Linux")
def test_folders_of_linux_are_where_they_were(plain, monkeypatch):
    """With the variables of the desktop, and without."""
    assert files.data_folder() == plain / ".local" / "share" / "vitedu"
    assert files.cache_folder() == plain / ".cache" / "vitedu"
    monkeypatch.setenv("XDG_DATA_HOME", str(plain / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(plain / "cache"))
    assert files.data_folder() == plain / "data" / "vitedu"
    assert files.cache_folder() == plain / "cache" / "vitedu"


def test_error_while_writing_leaves_the_old_file_and_no_litter(tmp_path):
    """The new file takes the old one's place as a whole or not at all."""
    path = tmp_path / "a.json"
    files.write_whole(path, b"old")
    with pytest.raises(RuntimeError), files.replace_file(path) as new:
        new.write_bytes(b"half")
        raise RuntimeError
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert path.read_bytes() == b"old"


def test_threads_that_write_one_file_leave_it_whole(tmp_path):
    """Each has a file of its own, and the last one wins."""
    contents = [bytes([65 + i]) * 100_000 for i in range(8)]
    threads = [
        threading.Thread(target=files.write_whole, args=(tmp_path / "a", content))
        for content in contents
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "a").read_bytes() in contents
    assert len(list(tmp_path.iterdir())) == 1


def test_lock_of_another_process_is_seen_and_ends_with_it(tmp_path):
    """While it lives the answer is False; killed, it leaves a file that means nothing."""
    code = (
        "import sys, time; from pathlib import Path; from vitedu.ground import files\n"
        "with files.file_lock(Path(sys.argv[1]), 5): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with files.file_lock(tmp_path / "lock", 0.05) as alone:
            assert not alone
        other.kill()
        other.wait()
    with files.file_lock(tmp_path / "lock", 5) as alone:
        assert alone


def test_file_system_without_locks_holds_nobody_up(tmp_path, monkeypatch):
    """The block runs; what it writes is still replaced whole."""
    import filelock

    def no_locks(self, **options):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(filelock.FileLock, "acquire", no_locks)
    with files.file_lock(tmp_path / "lock", 5) as alone:
        assert alone
