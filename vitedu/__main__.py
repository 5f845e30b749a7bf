"""The command line: ``vitedu``, or ``python -m vitedu``.

Role: read the words, call the module that does the work, and turn its outcome into an exit status:
0 success, 1 what was checked does not hold, 2 wrong use. A mistake of the caller (ValueError, a
missing or unreadable file) is one line on stderr and status 2. Each command imports what it needs,
so that ``--help``, ``list``, ``hint`` and ``progress`` answer without loading torch.
"""

import argparse
import os
import sys
from pathlib import Path


def main(argv: list[str] | None = None) -> int:
    """Run one command and give its exit status.

    Example:
        >>> main(["list", "01_patches"])  # doctest: +ELLIPSIS
        01_patches...
        0
    """
    args = build_parser().parse_args(argv)
    try:
        status = args.run(args)
        sys.stdout.flush()  # a closed pipe shows here, not at exit
    except BrokenPipeError:  # vitedu list | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        print(f"vitedu: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("vitedu: stopped", file=sys.stderr)
        return 130
    return status or 0


def build_parser() -> argparse.ArgumentParser:
    """Describe every command; nothing is imported for it."""
    from vitedu import __version__

    parser = argparse.ArgumentParser(
        prog="vitedu",
        description="Learn how a Vision Transformer works by writing every part of it.",
        epilog="Exit status: 0 success, 1 what was checked does not hold, 2 wrong use.",
    )
    parser.add_argument("--version", action="version", version=f"vitedu {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name, run, text):
        new = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        new.set_defaults(run=run)
        return new

    # --- for students ------------------------------------------------------------------------
    new = command("list", list_exercises, "list the exercises with points and minutes")
    new.add_argument("notebook", nargs="?", help="only this notebook, such as 01_patches")
    new = command("check", check_notebook, "judge the answers in a notebook, in a fresh kernel")
    new.add_argument("notebook", type=Path, help="the notebook with the answers; it is not changed")
    new.add_argument(
        "--seconds", type=float, default=600, help="time limit of one cell (default: %(default)s)"
    )
    new = command("hint", show_hint, "show the next of three hints for an exercise")
    new.add_argument("exercise", help="its id, such as patchify")
    new = command("solution", show_solution, "show the reference of an exercise")
    new.add_argument("exercise", help="its id, such as patchify")
    new = command("progress", show_progress, "show what is done and what is left")
    new.add_argument("notebook", nargs="?", help="only this notebook, such as 01_patches")
    command("doctor", run_doctor, "say what is installed, what will be used and what to mend")

    # --- for instructors ---------------------------------------------------------------------
    new = command("grade", grade_class, "grade a folder of returned, untrusted notebooks")
    new.add_argument("folder", type=Path, help="what the students handed in; it is only read")
    new.add_argument("--out", type=Path, required=True, help="folder for grades, pages and tables")
    new.add_argument("--notebook", help="grade this one only (default: those the class handed in)")
    new.add_argument("--exercises", nargs="+", default=[], metavar="ID", help="grade these only")
    new.add_argument("--only", nargs="+", default=[], metavar="STUDENT", help="grade these only")
    new.add_argument("--again", action="store_true", help="grade anew what has a grade")
    new.add_argument("--jobs", type=int, help="submissions at a time (default: cores)")
    new.add_argument("--dask", metavar="ADDRESS", help="grade on the workers of tcp://HOST:PORT")
    new.add_argument(
        "--runs", type=int, default=3, help="fresh processes an answer, 3 or more (default: 3)"
    )
    new.add_argument("--seed", type=int, help="repeat a grading (default: secret, one a student)")
    new.add_argument(
        "--student-from",
        default="auto",
        choices=["auto", "file", "folder", "moodle", "canvas", "metadata"],
        help="what names a student (default: %(default)s)",
    )
    new.add_argument(
        "--for",
        dest="formats",
        nargs="+",
        default=[],
        choices=["canvas", "moodle", "gradescope"],
        help="write files for these, too",
    )
    new.add_argument("--assignment", default="", help="name of the column in canvas.csv")
    new.add_argument(
        "--allow-unsafe", action="store_true", help="grade even where nothing can be isolated"
    )

    # --- for maintainers ---------------------------------------------------------------------
    new = command("solve", solve_notebooks, "write notebooks with the references filled in")
    new.add_argument("path", type=Path, help="a notebook or a folder of them")
    new.add_argument("--out", type=Path, default=Path("build/solved"), help="default: %(default)s")
    new = command("lint", lint_notebooks, "say where notebooks, references and syllabus disagree")
    new.add_argument("path", type=Path, help="a notebook or a folder of them")
    new = command("tour", tour_notebooks, "run the solved course and write it as HTML pages")
    new.add_argument(
        "path", type=Path, nargs="?", default=Path("notebooks"), help="default: %(default)s"
    )
    new.add_argument("--out", type=Path, default=Path("build/tour"), help="default: %(default)s")

    new = command("bank", run_bank, "run every known mistake and right answer through the checkers")
    new.add_argument("exercises", nargs="*", help="ids; default: all")
    new.add_argument("--seeds", type=int, help="how many (default: 20, with --mutate 3)")
    new.add_argument(
        "--mutate", action="store_true", help="judge every single-step change of the references"
    )
    new.add_argument(
        "--unseen", action="store_true", help="judge each mistake as if the bank did not hold it"
    )
    new = command("audit", run_audit, "show what the checkers decide about each answer in a file")
    new.add_argument("path", type=Path, help="a .py file or a notebook; it is executed")
    new.add_argument("--seeds", type=int, default=5, help="how many (default: %(default)s)")

    # --- for instructors: hand out ---------------------------------------------------------
    new = command("assign", assign_notebooks, "write the notebooks as assignments")
    new.add_argument("out", type=Path, help="folder to write to; with --gradescope a .zip file")
    new.add_argument(
        "notebooks", type=Path, nargs="?", default=Path("notebooks"), help="default: %(default)s"
    )
    kinds = new.add_mutually_exclusive_group()
    kinds.add_argument(
        "--nbgrader", action="store_true", help="as source assignments of an nbgrader course"
    )
    kinds.add_argument(
        "--gradescope", action="store_true", help="as the zip file of a Gradescope autograder"
    )

    # --- training ----------------------------------------------------------------------------
    new = command("train", train_model, "train a preset and write the run to a folder")
    new.add_argument("--data", help="shapes, cifar10 or a folder (default: shapes)")
    new.add_argument("--preset", help="which model (default: vit_micro_patch8_32)")
    new.add_argument("--epochs", type=int, help="default: as the preset's recipe says")
    new.add_argument("--batch-size", type=int, help="default: as the preset's recipe says")
    new.add_argument("--lr", type=float, help="peak learning rate (default: the recipe's)")
    new.add_argument("--seed", type=int, help="default: 0")
    new.add_argument("--limit", type=int, help="train on so many images only")
    new.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any field of TrainConfig or ViTConfig, such as cutmix_share=0.5 or rope=true; may be "
        "given often; a name that does not exist lists all",
    )
    new.add_argument("--compile", action="store_true", help="short for --set compile=true")
    new.add_argument("--out", type=Path, help="folder of the run (default: runs/PRESET-DATA-seedN)")
    new.add_argument(
        "--resume", action="store_true", help="go on with the unfinished run in that folder"
    )
    new.add_argument("--overwrite", action="store_true", help="remove the run in that folder first")
    add_machine(new)
    new = command("eval", eval_model, "measure a trained model on validation and test images")
    new.add_argument("--checkpoint", type=Path, required=True, help="the folder of a run")
    new.add_argument("--data", help="default: what the model was trained on")
    new.add_argument("--device", default="auto", help="auto, cpu, cuda, mps (default: auto)")
    new = command("predict", predict_images, "name the most probable classes of images")
    model = new.add_mutually_exclusive_group(required=True)
    model.add_argument("--checkpoint", type=Path, help="the folder of a run")
    model.add_argument(
        "--pretrained", metavar="NAME", help="published weights: vit_b_16, or a name of timm"
    )
    new.add_argument(
        "--weights", type=Path, help="with --pretrained: a file with them, no download"
    )
    new.add_argument("images", type=Path, nargs="+", help="image files")
    new.add_argument("--top", type=int, default=3, help="classes to name (default: %(default)s)")
    new.add_argument("--device", default="auto", help="auto, cpu, cuda, mps (default: auto)")
    new = command("bench", run_bench, "measure what the course promises")
    new.add_argument(
        "what",
        choices=["laptop", "checks", "grade", "train", "data", "cost", "ablations"],
        help="laptop: the training run of notebook 04; checks: how long a student waits for a verdict; "
        "grade: a made class of untrusted notebooks, beside nbgrader; "
        "train: our step beside other libraries'; data: our batches beside a DataLoader's; "
        "cost: time and FLOP against patch, width, depth and tokens; "
        "ablations: what each change to model and recipe is worth",
    )
    new.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")
    new.add_argument("--device", default="auto", help="auto, cpu, cuda, mps (default: auto)")
    new.add_argument(
        "--precision",
        nargs="+",
        default=["auto"],
        choices=["auto", "float32", "bfloat16", "float16"],
        help="of matrix products; train takes several (default: what the hardware does natively)",
    )
    new.add_argument("--students", type=int, default=200, help="grade: default %(default)s")
    new.add_argument("--jobs", type=int, help="grade: submissions at a time (default: cores)")
    new.add_argument("--notebook", default="01_patches", help="grade: default %(default)s")
    new.add_argument(
        "--compared", type=int, default=24, help="grade: students for nbgrader, too (default: 24)"
    )
    new.add_argument("--presets", nargs="+", help="train: which models (default: the course's)")
    new.add_argument("--batch", type=int, help="images a step (default: 128, for cost 32)")
    new.add_argument("--rounds", type=int, default=7, help="of all in turn (default: %(default)s)")
    new.add_argument("--compile", action="store_true", help="train: torch.compile as well")
    new.add_argument("--no-memory", action="store_true", help="train: leave out peak memory")
    new.add_argument("--out", type=Path, default=Path("build/cost.png"), help="cost: the figure")
    new.add_argument(
        "--json", type=Path, help="a file for all figures; ablations adds what it lacks, row by row"
    )
    new.add_argument("--data", default="cifar10", help="ablations: as in train (default: cifar10)")
    new.add_argument("--epochs", type=int, default=3, help="ablations: of each (default: 3)")
    new.add_argument("--only", nargs="+", default=[], help="ablations: parts of names of changes")

    return parser


def add_machine(parser) -> None:
    """Add the options that say where and in which type to train."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, mps (default: auto)")
    parser.add_argument(
        "--precision",
        default="auto",
        choices=["auto", "float32", "bfloat16", "float16"],
        help="of matrix products (default: what the hardware does natively)",
    )


def list_exercises(args) -> int:
    """Print the syllabus as a table."""
    from vitedu.exercises import EXERCISES, in_notebook

    chosen = in_notebook(stem(args.notebook)) if args.notebook else list(EXERCISES)
    width = max(len(exercise.id) for exercise in chosen)
    notebook = None
    for exercise in chosen:
        if exercise.notebook != notebook:
            notebook = exercise.notebook
            own = in_notebook(notebook)
            points, minutes = sum(e.points for e in own), sum(e.minutes for e in own)
            print(f"{notebook}  {points} points, about {minutes} minutes of exercises")
        print(
            f"  {exercise.number:<5}{exercise.id:<{width}}  {exercise.points:>2} points"
            f"  {exercise.minutes:>3} min  {exercise.title}"
        )
    return 0


def check_notebook(args) -> int:
    """Judge one notebook; status 1 unless every exercise passed."""
    from vitedu.tour import check_notebook

    text, everything_passed = check_notebook(args.notebook, seconds=args.seconds)
    print(text)
    return 0 if everything_passed else 1


def show_hint(args) -> int:
    """Print the next hint and count it."""
    from vitedu import results
    from vitedu.exercises import find

    exercise = find(args.exercise)
    if not exercise.hints:
        raise ValueError(f"there is no hint for {exercise.id} yet.")
    number = min(results.hint_taken(exercise.id), len(exercise.hints))
    print(f"hint {number} of {len(exercise.hints)}: {exercise.hints[number - 1]}")
    return 0


def show_solution(args) -> int:
    """Print the source of a reference."""
    from vitedu.exercises import find
    from vitedu.references import reference_source

    print(reference_source(find(args.exercise)))
    return 0


def show_progress(args) -> int:
    """Print the student's table."""
    from vitedu import results

    print(results.table_text(stem(args.notebook) if args.notebook else None))
    return 0


def run_doctor(args) -> int:
    """Print the findings; status 1 where something must be mended."""
    from vitedu.doctor import diagnose, text

    findings = diagnose()
    print(text(findings))
    return 1 if any(finding.state == "mend" for finding in findings) else 0


def grade_class(args) -> int:
    """Grade a class; status 2 where the folders, the options or the machine will not do."""
    from vitedu.grading.publish import main_grade

    parts = None
    if args.dask:
        from dataclasses import replace
        from functools import partial

        from vitedu.grading.cluster import Cluster
        from vitedu.grading.student import real_parts

        parts = replace(real_parts(), open_box=partial(Cluster, args.dask))
    return main_grade(
        args.folder,
        args.out,
        parts=parts,
        formats=args.formats,
        assignment=args.assignment,
        jobs=args.jobs,
        student_from=args.student_from,
        exercises=args.exercises,
        notebook=stem(args.notebook) if args.notebook else None,
        only=args.only,
        runs=args.runs,
        seed=args.seed,
        again=args.again,
        allow_unsafe=args.allow_unsafe,
    )


def solve_notebooks(args) -> int:
    """Write the solved variant of notebooks."""
    from vitedu.notebooks import solve

    for path in solve(args.path, args.out):
        print(path)
    return 0


def lint_notebooks(args) -> int:
    """Print every problem; status 1 if there is one."""
    from vitedu.checks.api import has_checker
    from vitedu.notebook_lint import lint, missing_notebooks
    from vitedu.notebooks import find_notebooks

    paths = find_notebooks(args.path)
    problems = [problem for path in paths for problem in lint(path, has_checker=has_checker)]
    if args.path.is_dir():
        problems += missing_notebooks(args.path)
    for problem in problems:
        print(problem)
    print(f"{len(paths)} notebooks, {len(problems)} problems")
    return 1 if problems else 0


def tour_notebooks(args) -> int:
    """Run the solved course; status 1 if a notebook fails."""
    from vitedu.tour import tour

    return 0 if tour(args.path, args.out) else 1


def assign_notebooks(args) -> int:
    """Write what students, nbgrader or Gradescope get."""
    if args.gradescope:
        from vitedu.grading.gradescope import write_autograder

        print(write_autograder(args.out, args.notebooks))
        return 0
    from vitedu.grading.assign import assign, assign_nbgrader

    for path in (assign_nbgrader if args.nbgrader else assign)(args.out, args.notebooks):
        print(path)
    return 0


def run_bank(args) -> int:
    """Print the catch matrix, or what becomes of mutants; status 1 unless the checkers decide all rightly."""
    if args.mutate:
        from vitedu.checks.mutation import main_mutate

        return main_mutate(args.exercises, args.seeds or 3)
    from vitedu.checks.bank import main_bank, main_unseen

    if args.unseen:
        return main_unseen(args.exercises)
    return main_bank(args.exercises, args.seeds or 20)


def run_audit(args) -> int:
    """Print every property's verdict; status 1 if an answer fails."""
    from vitedu.checks.audit import main_audit

    return main_audit(args.path, args.seeds)


def train_model(args) -> int:
    """Train; status 1 if the loss broke, 130 if interrupted."""
    from vitedu.runs import DEFAULT_DATA, DEFAULT_PRESET, main_train

    names = ("epochs", "batch_size", "lr", "seed", "device", "precision", "compile")
    given = {name: str(getattr(args, name)) for name in names}
    unsaid = ("None", "False", "auto")
    settings = [f"{name}={text}" for name, text in given.items() if text not in unsaid]
    words = args.preset or DEFAULT_PRESET, Path(args.data or DEFAULT_DATA).name, args.seed or 0
    return main_train(
        data=args.data,
        preset_name=args.preset,
        limit=args.limit,
        settings=[*settings, *args.set],
        out=args.out or Path("runs") / "{}-{}-seed{}".format(*words),
        resume=args.resume,
        overwrite=args.overwrite,
    )


def eval_model(args) -> int:
    """Print validation and test accuracy."""
    from vitedu.runs import main_eval

    return main_eval(checkpoint=args.checkpoint, data=args.data, device=args.device)


def predict_images(args) -> int:
    """Print the most probable classes of each image."""
    from vitedu.runs import check_device, main_predict

    if args.pretrained:
        from vitedu.pretrained import name_images

        check_device(args.device)
        return name_images(
            args.pretrained, args.images, weights=args.weights, top=args.top, device=args.device
        )
    if args.weights:
        raise ValueError("--weights goes with --pretrained; a run's folder holds its own.")
    return main_predict(
        checkpoint=args.checkpoint, images=args.images, top=args.top, device=args.device
    )


def run_bench(args) -> int:
    """Run a benchmark; status 1 if the aim is not met."""
    if args.what == "checks":
        from vitedu.checks.timing import bench_checks

        return 0 if bench_checks(args.seeds) else 1
    if args.what == "grade":
        from vitedu.grading.bench import bench_grade

        choices = {"out": args.json, "compared": args.compared}
        return 0 if bench_grade(args.students, args.jobs, stem(args.notebook), **choices) else 1
    if args.what in ("train", "data", "cost"):
        return bench_speed(args)
    if args.what == "ablations":
        return bench_changes(args)
    from vitedu.benchmarks import bench_laptop

    if len(args.precision) > 1:
        raise ValueError("bench laptop takes one --precision.")
    return 0 if bench_laptop(args.seeds, args.device, args.precision[0]) else 1


def bench_changes(args) -> int:
    """Train what is missing of the list of changes and print the table."""
    from vitedu.ablations import bench_ablations
    from vitedu.runs import check_device, load

    check_device(args.device)
    out = args.json or Path("build/ablations.jsonl")
    options = {"epochs": args.epochs, "seeds": args.seeds, "only": args.only}
    bench_ablations(load(args.data), out, device=args.device, **options)
    print(f"rows in {out}")
    return 0


def bench_speed(args) -> int:
    """Time steps, batches or sizes; status 1 if the aim of ``bench train`` is not met."""
    import torch

    from vitedu.hardware import pick_device, pick_precision
    from vitedu.runs import check_device

    check_device(args.device)
    device = pick_device() if args.device == "auto" else torch.device(args.device)
    native = str(pick_precision(device)).removeprefix("torch.")
    precisions = [native if name == "auto" else name for name in args.precision]
    if "float16" in precisions:
        raise ValueError(
            "float16 needs a gradient scaler, which these steps leave out; use float32."
        )
    if args.what == "train":
        from vitedu.bench_train import bench_train

        is_met = bench_train(
            device,
            precisions,
            args.presets,
            batch=args.batch or 128,
            rounds=args.rounds,
            compiled=args.compile,
            memory=not args.no_memory,
            json=args.json,
        )
        return 0 if is_met else 1
    if args.what == "data":
        from vitedu.bench_data import bench_data

        bench_data(device, batch=args.batch or 128, rounds=args.rounds, json=args.json)
        return 0
    from vitedu.bench_cost import bench_cost

    if len(precisions) > 1:
        raise ValueError("bench cost takes one --precision.")
    bench_cost(
        device,
        precisions[0],
        args.out,
        batch=args.batch or 32,
        rounds=args.rounds,
        json=args.json,
    )
    return 0


def stem(name: str) -> str:
    """Read "notebooks/01_patches.ipynb" as "01_patches" and check that the syllabus knows it."""
    from vitedu.exercises import notebook_named

    return notebook_named(Path(name).name.removesuffix(".ipynb"))


if __name__ == "__main__":
    sys.exit(main())
