"""Without what POSIX alone has, all but the grader works, and the grader says why it does not.

Windows is simulated: its modules and signals are taken away, the rest of this system stays.
"""

import ast
import io
import json
import os
import subprocess
import sys

import pytest
from test_imports import MODULES, import_statements

from vitedu.__main__ import main
from vitedu.commands import doctor
from vitedu.course import results

POSIX = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}
NO_POSIX = f"""
import signal, sys
sys.modules.update(dict.fromkeys({POSIX - {"posix"}}))
for name in ("SIGALRM", "ITIMER_REAL", "alarm", "getitimer", "setitimer", "SIGHUP", "SIGUSR1"):
    delattr(signal, name)
"""
ANSWERS = """
def gelu(x):
    return x * (1 + (x / 2**0.5).erf()) / 2
def softmax(x, dim=-1):
    return x
"""


@pytest.fixture
def windows(tmp_path, monkeypatch):
    """Let every Python that is started here, kernels too, begin without POSIX."""
    (tmp_path / "sitecustomize.py").write_text(NO_POSIX)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")  # of a file there
    return tmp_path


def test_only_the_grader_imports_what_posix_alone_has():
    """Elsewhere no module does, not even inside a function."""
    users = set()
    for module, path in MODULES.items():
        for node, _ in import_statements(path):
            names = [alias.name for alias in node.names]
            names = [node.module] if isinstance(node, ast.ImportFrom) else names
            users |= {module} if POSIX & set(names) else set()
    assert users and all(module.startswith("grading.") for module in users)


@pytest.mark.slow
def test_every_other_module_can_be_imported(windows):
    """In one process, with what each imports at its top."""
    modules = [name for name in MODULES if not name.startswith(("grading", "__"))]
    code = "import importlib, sys; [importlib.import_module('vitedu.' + m) for m in sys.argv[1:]]"
    done = subprocess.run([sys.executable, "-c", code, *modules], capture_output=True, text=True)
    assert done.returncode == 0 and len(modules) > 150, done.stderr


@pytest.mark.slow
def test_answers_are_checked(windows):
    """A right and a wrong one, without a time limit."""
    (path := windows / "answers.py").write_text(ANSWERS)
    command = [sys.executable, "-m", "vitedu", "check", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    found = {row["exercise"]: row["status"] for row in json.loads(done.stdout)}
    assert found == {"gelu": "passed", "softmax": "failed"}, done.stderr


def test_grading_is_refused_in_one_line(monkeypatch, capsys):
    """Before a file is looked at; the doctor says the same, as a note."""
    monkeypatch.setitem(sys.modules, "resource", None)
    reason = "grading isolates answers by what Linux offers; on Windows work in WSL."
    assert main(["grade", "nowhere", "--out", "nowhere"]) == 2
    assert capsys.readouterr().err == f"vitedu: {reason}\n"
    found = doctor.grading()
    assert (found.state, found.text) == ("note", f"isolation none: {reason}")


def test_a_check_mark_that_a_file_cannot_hold_is_no_error(monkeypatch):
    """Redirected output has 256 characters there."""
    monkeypatch.setattr(results, "table_text", lambda notebook: "\u2713 softmax")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    assert main(["progress"]) == 0
    assert sys.stdout.buffer.getvalue().split() == [b"?", b"softmax"]
