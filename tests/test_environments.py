"""Setting up without make: what pip is asked for, where torch comes from, and what is said."""

import os
import threading
import time
import zipfile
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from vitedu.__main__ import main
from vitedu.course import environments

ROOT = Path(__file__).parents[1]
ORDINARY = "-m pip install --requirement requirements.txt --editable ."
FROM_CPU_INDEX = "-m pip install --index-url {} torch>=2.9 torchvision>=0.24"


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder; ``slow`` in an address is answered after a second."""

    def do_GET(self):
        """Wait, if the address says so, and answer."""
        time.sleep("slow" in self.path)
        with suppress(OSError):  # nobody may be waiting any more
            super().do_GET()

    def log_message(self, *words):
        """Say nothing."""


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Stand for torch's index: two wheels for CPUs that hold nothing; give its address."""
    folder = tmp_path / "whl" / "cpu"
    for name in ("torch", "torchvision"):
        (folder / name).mkdir(parents=True)
        about = f"{name}-99.0+cpu.dist-info"
        with zipfile.ZipFile(folder / name / f"{name}-99.0+cpu-py3-none-any.whl", "w") as wheel:
            head = f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.0+cpu\n"
            tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            for file, text in {"METADATA": head, "WHEEL": tags, "RECORD": ""}.items():
                wheel.writestr(f"{about}/{file}", text)
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *args: Quiet(*args, directory=str(tmp_path))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/whl/cpu"
    monkeypatch.setattr(environments, "CPU_BUILD", address)
    yield address
    server.shutdown()
    server.server_close()


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Give a folder that looks like a clone on Linux without a GPU, and the list of commands."""
    root, calls = tmp_path / "clone", []
    (root / "tests").mkdir(parents=True)
    for name in ("requirements.txt", "pyproject.toml"):
        (root / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")

    def run(command, **options):
        calls.append(" ".join(command[1:]))
        return not any(word in calls[-1] for word in clone.failing)

    clone = type("Clone", (), {"root": root, "calls": calls, "failing": ()})
    monkeypatch.setattr(environments, "_run", run)
    monkeypatch.setattr(environments, "has_nvidia_gpu", lambda: False)
    monkeypatch.setattr(environments.sys, "platform", "linux")
    monkeypatch.delenv("PIP_ARGS", raising=False)
    return clone


def test_without_a_gpu_torch_comes_from_its_index_for_cpus(index, clone, capsys):
    """Both packages in one command, before the others, and the output says so."""
    environments.set_up(clone.root)
    venv = f"-m venv {clone.root / '.venv'}"
    assert clone.calls == [venv, FROM_CPU_INDEX.format(index), ORDINARY]
    assert f"torch and torchvision come without CUDA, from {index}." in capsys.readouterr().out


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/cpu", "{index}/nowhere"])
def test_an_index_that_does_not_answer_leaves_the_ordinary_build(
    address, index, clone, monkeypatch, capsys
):
    """It is asked for three seconds at most; the output says what comes instead, and its size."""
    monkeypatch.setattr(environments, "CPU_BUILD", address.format(index=index))
    environments.set_up(clone.root)
    assert clone.calls[1:] == [ORDINARY]
    out = capsys.readouterr().out
    assert "gives no answer within three seconds" in out and "5.4 GB" in out
    start = time.monotonic()
    assert not environments.answers(f"{index}/slow", 0.2)
    assert time.monotonic() - start < 3 == environments.INDEX_SECONDS


def test_a_download_that_breaks_there_leaves_the_ordinary_build(index, clone, capsys):
    """Set-up goes on; where the ordinary index breaks too, it says what to do."""
    clone.failing = ("--index-url",)
    environments.set_up(clone.root)
    assert clone.calls[-1] == ORDINARY
    assert "so the ordinary index follows" in capsys.readouterr().out
    clone.failing = ("--requirement",)
    with pytest.raises(OSError, match="run the same command again"):
        environments.set_up(clone.root)


@pytest.mark.parametrize("reason", ["PIP_ARGS", "gpu", "darwin", "win32"])
def test_torch_is_the_ordinary_one_where_that_is_right(reason, clone, monkeypatch, capsys):
    """Where the user says so, has a GPU, or a system whose ordinary build is without CUDA."""
    words = ""
    if reason == "PIP_ARGS":
        monkeypatch.setenv("PIP_ARGS", "--index-url 'http://a b/'")
        words = "--index-url http://a b/ "
    elif reason == "gpu":
        monkeypatch.setattr(environments, "has_nvidia_gpu", lambda: True)
    else:
        monkeypatch.setattr(environments.sys, "platform", reason)
    environments.set_up(clone.root)
    assert clone.calls[1:] == [ORDINARY.replace("install", f"install {words}".strip())]
    assert "GPU" not in capsys.readouterr().out


def test_an_environment_that_stands_is_kept_and_one_that_fails_is_removed(clone, monkeypatch):
    """On Debian the module venv lacks a part, and what it left would stand in the way."""
    python = Path(environments._python(clone.root / ".venv"))
    python.parent.mkdir(parents=True)
    clone.failing = ("-m venv",)
    with pytest.raises(OSError, match="could not create .*apt install python3-venv"):
        environments.set_up(clone.root)
    assert not (clone.root / ".venv").exists()
    python.parent.mkdir(parents=True)
    python.touch()
    monkeypatch.setenv("PIP_ARGS", "--quiet")
    environments.set_up(clone.root)
    assert clone.calls[1:] == [ORDINARY.replace("install", "install --quiet")]


def test_tests_are_set_up_once_and_pytest_gets_the_words(clone, monkeypatch):
    """Again where a list is newer than the stamp; the status is pytest's."""
    ran, set_up = [], []
    stamp = clone.root / ".venv-test" / ".test"

    def prepare(root):
        set_up.append(root)
        stamp.parent.mkdir(exist_ok=True)
        stamp.touch()

    monkeypatch.setattr(environments, "set_up_tests", prepare)
    monkeypatch.setattr(environments.subprocess, "call", lambda *a, **o: ran.append((a, o)) or 5)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for _ in range(2):
        assert environments.run_tests(["-k", "patch"], clone.root) == 5
    assert set_up == [clone.root]
    (command,), options = ran[0]
    assert command[1:3] == ["-m", "pytest"] and command[-2:] == ["-k", "patch"]
    assert options["env"]["OMP_NUM_THREADS"] == "1" and options["cwd"] == clone.root
    assert "PYTHONDONTWRITEBYTECODE" not in options["env"]
    later = stamp.stat().st_mtime + 10
    os.utime(clone.root / "pyproject.toml", (later, later))
    environments.run_tests([], clone.root)
    assert len(set_up) == 2


def test_bundle_takes_torch_for_cpus_and_says_how_it_is_installed(index, clone, tmp_path):
    """Wheels of an earlier bundle go, a folder with other things is left alone."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "old-1.0.whl").touch()
    environments.bundle(folder, clone.root)
    into = f"-m pip wheel --wheel-dir {folder}"
    torch = FROM_CPU_INDEX.format(index).removeprefix("-m pip install")
    assert clone.calls == [into + torch, f"{into} --requirement requirements.txt ."]
    assert [file.name for file in folder.iterdir()] == [environments.HOW_TO]
    environments.bundle(folder, clone.root)
    (folder / "thesis.tex").touch()
    with pytest.raises(ValueError, match="other things than wheels"):
        environments.bundle(folder, clone.root)


@pytest.mark.parametrize("words", ["setup", "setup --test", "test", "bundle"])
def test_outside_a_clone_one_line_says_what_is_missing(words, monkeypatch, tmp_path, capsys):
    """The tests are no part of the wheel."""
    for function in ("set_up", "set_up_tests", "run_tests", "bundle"):
        monkeypatch.setattr(getattr(environments, function), "__defaults__", (tmp_path,))
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert capsys.readouterr().err.startswith("vitedu: the command needs a clone")
