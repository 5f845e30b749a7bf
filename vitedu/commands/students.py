"""Commands for students: the syllabus, checks, hints, progress, their model, what is installed.

Role: their options and their printing. Not here: what they call.
"""

import json
import os
import runpy
import shlex
import sys
import webbrowser
from argparse import Namespace
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from vitedu.commands import (
    Commands,
    add_exercise,
    add_flag,
    add_model,
    add_path,
    exercise_named,
)

JSON_HELP = (
    "print a JSON list and nothing else, an object for each exercise: exercise (its id), "
    "status (passed, failed, error, not_attempted or not_checked), points, max_points, "
    "remarks (a list of objects: part, message, points, which are those lost), mistakes (a list of "
    "the ids of those recognised) and seconds (that the check took); of a Python file also whose "
    "the part is (yours, the course's or open)"
)

# shell -> the line that makes it complete, to be written where it starts
SHELLS = {
    "bash": "echo 'eval \"$(vitedu completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(vitedu completion zsh)\"' >> ~/.zshrc",
    "fish": "vitedu completion fish > ~/.config/fish/completions/vitedu.fish",
}


def add_commands(commands: Commands) -> None:
    """Describe the commands; nothing is imported for it."""
    text = "lay the notebooks into a folder of your own, your answers in them, and open JupyterLab"
    for name, words in {"lab": text, "start": "the same as lab"}.items():
        new = commands.add(name, start, words)
        add_path(new, "folder", "my-notebooks")
        new.add_argument("--lab-args", default="", metavar="WORDS", help="for JupyterLab")
        add_flag(new, "--no-lab", "lay them, and open nothing")
    new = commands.add("list", list_exercises, "list the exercises with points and minutes")
    new.add_argument("notebook", nargs="?", help="only this notebook, such as 01")
    add_flag(new, "--parts", "the parts of each check too: idea or polish, points")
    add_flag(new, "--models", "instead: the models that come along")
    text = "judge the answers in a notebook, a Python file or a folder of notebooks"
    new = commands.add("check", check_path, text)
    text = "a file with answers (.ipynb, .py), or a folder of notebooks; nothing is changed"
    new.add_argument("path", type=Path, metavar="PATH", help=text)
    new.add_argument(
        "--seconds", type=float, default=600, help="time limit of one cell (default: %(default)s)"
    )
    add_flag(new, "--json", JSON_HELP)
    new = commands.add("hint", show_hint, "show the next of three hints for an exercise")
    add_exercise(new)
    new = commands.add("solution", show_solution, "show the reference of an exercise")
    add_exercise(new)
    new = commands.add("progress", show_progress, "show what is done and what is left")
    new.add_argument("notebook", nargs="?", help="only this notebook, such as 01")
    text = "write your model as one file: your parts that passed; the course has the others"
    new = commands.add("export", export, text)
    new.add_argument(
        "file", nargs="?", type=Path, help="default: my_vit.py; with --onnx model.onnx"
    )
    add_flag(new, "--force", "write over a file that was edited")
    text = "with the text of the references, so that it runs without vitedu (my_vit_complete.py)"
    add_flag(new, "--complete", text)
    text = "instead: write a trained model as ONNX (pip install 'vitedu[onnx]')"
    add_flag(new, "--onnx", text)
    new.add_argument("--checkpoint", type=Path, help="with --onnx: the folder of a run")
    text = "with --onnx: a shipped or published model (default: vit_tiny_patch4_32.cifar10)"
    new.add_argument("--pretrained", metavar="NAME", help=text)
    add_model(new, "with --onnx and --checkpoint: the my_vit.py that the run trained")
    text = "write what makes a shell complete commands and exercises"
    new = commands.add("completion", write_completion, text)
    new.add_argument("shell", choices=sorted(SHELLS), help="your shell")
    text = "say what is installed, what will be used and what to mend"
    new = commands.add("doctor", run_doctor, text)
    text = "instead: run the solved first notebook, where nothing is to mend"
    add_flag(new, "--class", text, dest="lesson")


def start(args: Namespace) -> None:
    """Lay what is missing, write my_vit.py once a part has passed, and become JupyterLab."""
    from vitedu import course
    from vitedu.course import results
    from vitedu.course.workspace import lay_notebooks
    from vitedu.exercises import EXERCISES

    said, notebook = lay_notebooks(args.folder)
    print(said)
    entries = results.load()
    if any(results.is_passed(exercise, entries) for exercise in EXERCISES if exercise.part):
        from vitedu.exporting.export import bring_file

        bring_file(args.folder)
    if args.no_lab:
        return
    if find_spec("jupyterlab") is None:
        how = "pip install jupyterlab ipykernel ipywidgets"
        raise ValueError(f"there is no JupyterLab; {how}, or open {args.folder} in another editor.")
    if address := _running_address(args.folder):
        print(f"JupyterLab is running there already: {address.format(notebook)}")
        if "--no-browser" not in args.lab_args:
            webbrowser.open(address.format(notebook))
        return
    config = str(Path(course.__file__).parent)  # labconfig: no question about Jupyter's news
    paths = filter(None, [os.environ.get("JUPYTER_CONFIG_PATH"), config])
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(paths)
    os.chdir(args.folder)
    as_root = ["--allow-root"] * (getattr(os, "geteuid", os.getpid)() == 0)  # else it refuses
    sys.argv = ["jupyter-lab", *as_root, *shlex.split(args.lab_args), notebook]
    runpy.run_module("jupyterlab", run_name="__main__")


def _running_address(folder: Path) -> str:
    """Give the address of a JupyterLab that serves a folder, with what lets one in; "" if none."""
    from jupyter_server.serverapp import list_running_servers

    for server in list_running_servers():
        if Path(server["root_dir"]).resolve() == folder.resolve():
            return f"{server['url']}lab/tree/{{}}?token={server['token']}"
    return ""


def list_exercises(args: Namespace) -> None:
    """Print the syllabus as a table, or the models that come along."""
    from vitedu.exercises import (
        EXERCISES,
        describe_minutes,
        in_file,
        in_notebook,
        notebook_named,
    )

    if args.models:
        from vitedu.pretrained.reading import describe_shipped, shipped_models

        for name, record in shipped_models().items():
            print(f"{describe_shipped(name)}\n  {record['epochs']} epochs: {record['command']}")
        return
    chosen = in_notebook(notebook_named(args.notebook)) if args.notebook else list(EXERCISES)
    width = max(len(exercise.id) for exercise in chosen)
    for exercise in chosen:
        own = in_file(exercise.stem)
        if exercise == own[0]:
            points, minutes = sum(e.points for e in own), sum(e.minutes for e in own)
            time = f"{minutes} minutes of exercises"
            if exercise.core:
                time = f"{describe_minutes(exercise.notebook)}, {time}"
            print(f"{exercise.stem}  {points} points, {time}")
        print(
            f"  {exercise.number:<5}{exercise.id:<{width}}  {exercise.points:>2} points"
            f"  {exercise.minutes:>3} min  {exercise.title}"
        )
        for kind, share, part, words in list_parts(exercise.id) if args.parts else ():
            print(f"       {kind:<6} {share:>5.2f}  {part}: {words}")


def list_parts(exercise: str) -> Iterator[tuple[str, float, str, str]]:
    """Yield (idea or polish, points, name, what passing it shows) for the parts of a check."""
    from vitedu.checks.judging import findings
    from vitedu.checks.writing.checker import Checker, find_checker

    checker = find_checker(exercise)
    if not isinstance(checker, Checker):
        return
    parts = findings.list_parts(checker, checker.draw(0))
    for part, share in findings.share_points(checker, parts).items():
        kind = "polish" if findings.is_polish(checker, part) else "idea"
        yield kind, share, part, findings.words_of(checker, part)


def check_path(args: Namespace) -> int:
    """Judge a notebook, a Python file or a folder; status 1 unless everything passed."""
    from vitedu.course.tour import CheckedFile, check_file
    from vitedu.exporting.importing import YOURS, find_owners

    def judge(path: Path) -> CheckedFile:
        is_python = path.suffix == ".py" and path.is_file()
        owners = find_owners(path.read_text("utf-8", "replace")) if is_python else {}
        owners = {name: owner for name, owner in owners.items() if owner != YOURS}
        return check_file(path, seconds=args.seconds, owners=owners)

    paths, rows = [args.path], []
    if args.path.is_dir():
        from vitedu.course.workspace import find_answered

        paths, untouched = find_answered(args.path)
        if untouched and not args.json:
            print(f"nothing written yet: {', '.join(untouched)}")
    for path in paths:
        if args.path.is_dir() and not args.json:
            print(f"\n{path}", flush=True)
        checked = judge(path)
        rows += checked.rows
        if not args.json:
            print(checked.text)
        elif checked.problem:
            print(f"vitedu: {path}: stopped early: {checked.problem}", file=sys.stderr)
    if args.json:
        print(json.dumps(rows, indent=1))
    return 0 if all(row["status"] == "passed" for row in rows) else 1


def show_hint(args: Namespace) -> None:
    """Print the next hint and count it."""
    from vitedu.course.hints import next_hint

    print(next_hint(exercise_named(args.exercise)))


def show_solution(args: Namespace) -> None:
    """Print the source of a reference."""
    from vitedu.course.references import solution_source

    print(solution_source(exercise_named(args.exercise)))


def show_progress(args: Namespace) -> None:
    """Print the student's table."""
    from vitedu.course import results
    from vitedu.exercises import notebook_named

    print(results.table_text(notebook_named(args.notebook) if args.notebook else None))


def export(args: Namespace) -> None:
    """Write the student's model, or a trained one as ONNX."""
    if args.onnx:
        return export_onnx(args)
    if args.checkpoint or args.pretrained or args.model:
        raise ValueError("--checkpoint, --pretrained and --model go with --onnx.")
    from vitedu.exporting.export import export_model

    export_model(args.file, force=args.force, complete=args.complete)


def export_onnx(args: Namespace) -> None:
    """Write a trained model as ONNX, and say how near its outputs are."""
    from vitedu.exporting import onnx_file
    from vitedu.fitting.saved_run import load_run
    from vitedu.pretrained.loading import load_pretrained

    onnx_file.require()
    path = args.file or Path("model.onnx")
    if path.exists() and not args.force:
        raise ValueError(f"{path} is there already; --force writes over it.")
    if args.checkpoint:
        model, description = load_run(args.checkpoint, "cpu", args.model)
        shape = description["model"]
    else:
        model = load_pretrained(args.pretrained or "vit_tiny_patch4_32.cifar10")
        shape = vars(model.config)
    side, channels = shape["image_size"], shape["in_channels"]
    difference = onnx_file.export_onnx(model, path, side, channels)
    print(f"{path} maps normalised images (B, {channels}, {side}, {side}) to what the model gives.")
    print(f"onnxruntime and torch differ by {difference:.1e} at most, tried on four images.")


def write_completion(args: Namespace) -> None:
    """Print the shell's lines; on a terminal, say first where they go."""
    try:
        import argcomplete
    except ImportError:
        raise ValueError("completion needs argcomplete: pip install argcomplete") from None
    print(f"# {SHELLS[args.shell]}")
    print(argcomplete.shellcode(["vitedu"], shell=args.shell))


def run_doctor(args: Namespace) -> int:
    """Print the findings; status 1 where something must be mended."""
    from vitedu.commands.doctor import check_lesson, diagnose, text

    findings = check_lesson() if args.lesson else diagnose()
    print(text(findings))
    return 1 if any(finding.state == "mend" for finding in findings) else 0
