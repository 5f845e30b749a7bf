"""Commands for instructors: hand out, and grade what comes back.

Role: their options. Not here: what they call (``vitedu.grading``).
"""

from argparse import Namespace
from pathlib import Path

from vitedu.commands import Commands, add_flag, add_notebooks


def add_commands(commands: Commands) -> None:
    """Describe the commands; nothing is imported for it."""
    new = commands.add("assign", assign_notebooks, "write the notebooks as assignments")
    new.add_argument("out", type=Path, help="folder to write to; with --gradescope a .zip file")
    add_notebooks(new, "notebooks")
    kinds = new.add_mutually_exclusive_group()
    add_flag(kinds, "--nbgrader", "as source assignments of an nbgrader course")
    add_flag(kinds, "--gradescope", "as the zip file of a Gradescope autograder")
    _add_choice(new, "hand out")
    new = commands.add("grade", grade_class, "grade a folder of returned, untrusted notebooks")
    new.add_argument(
        "folder", type=Path, nargs="?", help="what the students handed in; it is only read"
    )
    new.add_argument("--out", type=Path, help="folder for grades, pages and tables")
    add_flag(new, "--example", "make a class of six in --out, and grade it")
    new.add_argument("--notebook", help="grade this one only (default: those the class handed in)")
    _add_choice(new, "grade")
    new.add_argument("--only", nargs="+", default=[], metavar="STUDENT", help="grade these only")
    add_flag(new, "--again", "grade anew what has a grade")
    new.add_argument("--jobs", type=int, help="submissions at a time (default: cores + 1, up to 6)")
    new.add_argument(
        "--polish",
        type=float,
        default=25.0,
        metavar="PERCENT",
        help="the most that remarks cost, of an exercise's points: 0 to 25 (default: 25)",
    )
    new.add_argument("--seed", type=int, help="repeat a grading (default: secret, one a student)")
    new.add_argument(
        "--for",
        dest="formats",
        nargs="+",
        default=[],
        choices=["canvas", "moodle", "gradescope"],
        help="write files for these, too",
    )
    add_flag(new, "--anonymous", "write pages without names too, into the folder anonymous")
    new.add_argument(
        "--with",
        dest="decisions",
        type=Path,
        metavar="OPEN_CSV",
        help="read points and comments for open grades from a filled-in open.csv",
    )
    new.add_argument("--assignment", default="", help="name of the column in canvas.csv")
    add_flag(new, "--allow-unsafe", "grade even where nothing can be isolated")


def _add_choice(command, verb: str) -> None:
    command.add_argument(
        "--exercises",
        nargs="+",
        default=[],
        metavar="ID",
        help=f"{verb} these only: ids, numbers or ranges, such as 1.1-1.5 2.2 softmax",
    )
    add_flag(command, "--core", f"{verb} the core exercises only")


def assign_notebooks(args: Namespace) -> None:
    """Write what students, nbgrader or Gradescope get."""
    from vitedu.exercises import EXERCISES, select

    known = select(args.exercises) if args.exercises else EXERCISES
    chosen = [exercise for exercise in known if exercise.core or not args.core]
    if args.gradescope:
        from vitedu.grading.adapters.gradescope import write_autograder

        print(write_autograder(args.out, args.notebooks, chosen))
        return
    from vitedu.grading.adapters.assign import assign, assign_nbgrader

    write = assign_nbgrader if args.nbgrader else assign
    print(*write(args.out, args.notebooks, chosen), sep="\n")


def grade_class(args: Namespace) -> int:
    """Grade a class; status 2 where the folders, the options or the machine will not do."""
    from vitedu.commands.doctor import refuse_windows
    from vitedu.exercises import notebook_named

    refuse_windows()
    from vitedu.grading.pages.publish import main_grade

    folder, out = args.folder, args.out
    if args.example:
        from vitedu.grading.adapters.example import write_class

        out = out or Path("example")
        folder, out = write_class(out / "submissions"), out / "grades"
    if not folder or not out:
        raise ValueError("name the folder with the returned notebooks, and --out; or --example.")
    args.notebook = notebook_named(args.notebook) if args.notebook else None
    args.polish /= 100
    args.formats = [*args.formats, *["anonymous"] * args.anonymous]
    names = "formats assignment decisions jobs exercises core notebook only polish seed again "
    names += "allow_unsafe"
    options = {name: getattr(args, name) for name in names.split()}
    return main_grade(folder, out, **options)
