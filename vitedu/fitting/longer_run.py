"""The longer run of notebook 04: the student's own model learns in a process beside the notebook.

Role: start it, say how far it is, stop it, go on with it, and give the weights that the notebook
ends with. Not here: the training, which is that of ``vitedu train --model my_vit.py`` (``runs``).

Each run is a numbered folder in ``longer_runs`` of the student's results: what ``runs`` writes, and
the wish and the log. Its process holds a lock while it lives. So there are never two, and after a
restart of the kernel it is found again. It has a session of its own and the lowest priority, on
Linux and macOS nice 19, on Windows idle; an interrupt of the kernel does not reach it.
``VITEDU_BACKGROUND=0`` turns it off, for machines that many people share.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vitedu.exporting.export import export_model
from vitedu.exporting.importing import find_file
from vitedu.fitting.checkpoints import DESCRIPTION, load_checkpoint, load_description
from vitedu.fitting.model_file import COPY
from vitedu.fitting.runs import METRICS, STATE, main_train
from vitedu.ground.files import data_folder, file_lock, write_whole
from vitedu.ground.progressbar import duration
from vitedu.plots.explorer import kernel_answers

WISH, LOG, LOCK = "wish.json", "log.txt", "lock"
MOST_EPOCHS = 40  # as the shipped model had; later this recipe learns photographs by heart
SECONDS = 60.0  # for a process to begin or to end
_processes: list[subprocess.Popen] = []  # Python warns of one that it forgets while it runs


def start(
    minutes: Any,
    epoch_seconds: float,
    *,
    lr: float | None = None,
    anew: bool = False,
    data: str = "cifar10",
    limit: int | None = None,
) -> None:
    """Start a run of the student's file, or go on with the one that was broken off.

    Args:
        minutes: what it may take; the number of epochs follows, so that its schedule ends.
        epoch_seconds: what one epoch takes on this computer.
        lr: the peak rate, by default that of notebook 01.
        anew: begin from the start where a run was broken off.
        data, limit: as ``vitedu train`` takes them.
    """
    folder = _latest()
    state = _state(folder) if folder else ""
    if os.environ.get("VITEDU_BACKGROUND") == "0":
        print("Longer runs are switched off on this computer (VITEDU_BACKGROUND=0).")
    elif not kernel_answers():
        print("No longer run is started here: the profile is quick, or nobody is looking.")
    elif not isinstance(minutes, int | float) or isinstance(minutes, bool) or not minutes > 0:
        print("No longer run is started. Give it minutes, such as 10, 30 or 480 for a night.")
    elif state == "running":
        print("A longer run is going on already, and there is never a second one.")
        progress()
    elif state == "finished" and not anew:
        progress()
        print("anew=True begins another one.")
    else:
        if folder is None or anew or state != "stopped":
            folder = _home() / str(1 + int(folder.name if folder else 0))
            folder.mkdir(parents=True)
            source = find_file()
            if not source.is_file():
                export_model(source)
            write_whole(folder / COPY, source.read_bytes())
            epochs = max(1, min(MOST_EPOCHS, int(60 * minutes / epoch_seconds)))
            wish = {"epochs": epochs, "lr": lr, "words": {"data": data, "limit": limit}}
            write_whole(folder / WISH, json.dumps(wish).encode())
        _spawn(folder)
        progress()


def progress() -> None:
    """Print how far the newest run is."""
    folder = _latest()
    if folder is None:
        print("No longer run has been started.")
        return
    state, epochs, rows = _state(folder), _wish(folder)["epochs"], _rows(folder)
    words = f"longer run {folder.name}: {state}, {len(rows)} of {epochs} epochs"
    if rows:
        words += f", validation accuracy {rows[-1]['validation_accuracy']:.1%}"
    if state == "running":
        seconds = sum(row["seconds"] for row in rows) / max(1, len(rows)) * (epochs - len(rows))
        words += f", about {duration(seconds)} left" if rows else ", the first one has begun"
    elif state == "stopped":
        words += "; start it, and it goes on after the last of these"
    elif state == "broken":
        lines = (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        words += f". Its last line: {lines[-1] if lines else '(nothing)'}"
    print(f"{words}.")


def stop() -> None:
    """Stop the run; its finished epochs are kept, and ``start`` goes on after them."""
    folder = _latest()
    if folder is None or not _is_running():
        print("No longer run is going on.")
        return
    os.kill(_wish(folder)["process"], signal.SIGTERM)
    end = time.monotonic() + SECONDS
    while _is_running() and time.monotonic() < end:
        time.sleep(0.1)
    progress()


def save_model(model: nn.Module, data: Any, what: str) -> Path | None:
    """Write weights as ``my_vit.pt`` beside ``my_vit.py``, which reads them.

    Args:
        model: a ``VisionTransformer``, the student's or the reference's.
        data: has ``class_names``, ``mean`` and ``std``.
        what: which run made it, in words.

    Returns:
        The file; None where ``VITEDU_KEEP_SOURCES=0`` allows none.
    """
    if os.environ.get("VITEDU_KEEP_SOURCES") == "0":
        return None
    path = find_file().with_suffix(".pt")
    config: Any = model.config
    known = {"class_names": list(data.class_names)}
    known |= {"mean": data.mean.tolist(), "std": data.std.tolist()}
    weights = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    torch.save({"weights": weights, "what": what, "model": asdict(config), "data": known}, path)
    return path


def load_newest(model: nn.Module) -> str:
    """Give a model the weights of the newest longer run that is finished, else of ``my_vit.pt``.

    Returns:
        Which weights these are, in words; "" if there are none that fit, and nothing has changed.
    """
    path = find_file().with_suffix(".pt")
    finished = [folder for folder in reversed(_folders()) if _state(folder) == "finished"]
    for place in (*finished, *[path] * path.is_file()):
        try:
            if place == path:
                about = torch.load(path, weights_only=True)
                model.load_state_dict(about["weights"])
                return about.get("what", path.name)
            weights, description = load_checkpoint(place)
            model.load_state_dict(weights)
        except Exception as error:  # damaged, or of another shape: my_vit.py may have been edited
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            print(f"{place} is passed over: {reason}")
        else:
            outcome = description["outcome"]
            return f"{outcome['epochs']} epochs of longer run {place.name}"
    return ""


def _home() -> Path:
    return data_folder() / "longer_runs"


def _folders() -> list[Path]:
    """List the runs, the oldest first."""
    return sorted((p.parent for p in _home().glob(f"[0-9]*/{WISH}")), key=lambda p: int(p.name))


def _latest() -> Path | None:
    return max(_folders(), key=lambda folder: int(folder.name), default=None)


def _wish(folder: Path) -> dict[str, Any]:
    return json.loads((folder / WISH).read_text(encoding="utf-8"))


def _rows(folder: Path) -> list[dict]:
    path = folder / METRICS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines]


def _is_running() -> bool:
    for process in _processes:
        process.poll()  # one that has ended is no zombie
    if not _home().is_dir():
        return False
    with file_lock(_home() / LOCK, 0) as is_free:
        return not is_free


def _state(folder: Path) -> str:
    """Say "running", "finished", "stopped" (goes on if started) or "broken" (does not)."""
    if folder == _latest() and _is_running():
        return "running"
    if (folder / STATE).is_file():
        return "stopped"
    known = load_description(folder) if (folder / DESCRIPTION).is_file() else {}
    return "finished" if "outcome" in known else "broken"


def _spawn(folder: Path) -> None:
    """Start the process of a run, note its number, and wait until it has the lock or has ended."""
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.IDLE_PRIORITY_CLASS | subprocess.CREATE_NO_WINDOW}
    command = [sys.executable, "-m", "vitedu.fitting.longer_run", str(folder)]
    apart |= {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    apart["env"] = {**os.environ, "MPLBACKEND": "agg"}
    with open(folder / LOG, "ab") as log:
        process = subprocess.Popen(command, stdout=log, **apart)
    _processes.append(process)
    write_whole(folder / WISH, json.dumps(_wish(folder) | {"process": process.pid}).encode())
    while process.poll() is None and not _is_running():
        time.sleep(0.1)


def main(folder: Path) -> int:
    """Train in this process; what ``_spawn`` starts."""
    if sys.platform != "win32":
        os.nice(19)
    with file_lock(folder.parent / LOCK, SECONDS) as alone:
        if not alone:
            print("another longer run is going on")
            return 1
        wish = _wish(folder)
        settings = [f"{name}={wish[name]}" for name in ("epochs", "lr") if wish[name]]
        return main_train(folder, wish["words"], settings, resume=True, model_path=folder / COPY)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
