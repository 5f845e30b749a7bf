"""Setting up without make: what pip is asked for, where torch comes from, and what is said."""

import os
from pathlib import Path

import pytest

from vitedu.__main__ import main
from vitedu.course import environments

ROOT = Path(__file__).parents[1]
ORDINARY = "-m pip install --requirement requirements.txt --editable ."
INDEX = f"--retries 1 --index-url {environments.CPU_BUILD} torch>=2.9 torchvision>=0.24"


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


def test_without_a_gpu_torch_comes_from_its_index_for_cpus(clone, capsys):
    """Both packages in one command, before the others, and the output says so."""
    environments.set_up(clone.root)
    venv = f"-m venv {clone.root / '.venv'}"
    assert clone.calls == [venv, f"-m pip install {INDEX}", ORDINARY]
    assert (
        f"torch and torchvision come without CUDA, from {environments.CPU_BUILD}."
        in capsys.readouterr().out
    )


def test_a_download_that_breaks_there_leaves_the_ordinary_build(clone, capsys):
    """Set-up goes on; where the ordinary index breaks too, it says what to do."""
    clone.failing = ("--index-url",)
    environments.set_up(clone.root)
    assert clone.calls[-1] == ORDINARY
    assert "That failed, so pip takes the ordinary build, 5.4 GB" in capsys.readouterr().out
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


def test_bundle_takes_torch_for_cpus_and_says_how_it_is_installed(clone, tmp_path):
    """Wheels of an earlier bundle go, a folder with other things is left alone."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "old-1.0.whl").touch()
    environments.bundle(folder, clone.root)
    into = f"-m pip wheel --wheel-dir {folder}"
    assert clone.calls == [f"{into} {INDEX}", f"{into} --requirement requirements.txt ."]
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
