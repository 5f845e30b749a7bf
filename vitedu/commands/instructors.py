"""Commands for instructors: hand out, and grade what comes back.

Role: their options. Not here: what they call (``vitedu.grading``).
"""

from pathlib import Path

from vitedu.commands import Commands, add_path, stem


def add_commands(commands: Commands) -> None:
    """Describe the commands; nothing is imported for it."""
    new = commands.add("assign", assign_notebooks, "write the notebooks as assignments")
    new.add_argument("out", type=Path, help="folder to write to; with --gradescope a .zip file")
    add_path(new, "notebooks", "notebooks")
    kinds = new.add_mutually_exclusive_group()
    kinds.add_argument(
        "--nbgrader", action="store_true", help="as source assignments of an nbgrader course"
    )
    kinds.add_argument(
        "--gradescope", action="store_true", help="as the zip file of a Gradescope autograder"
    )
    new = commands.add("grade", grade_class, "grade a folder of returned, untrusted notebooks")
    new.add_argument("folder", type=Path, help="what the students handed in; it is only read")
    new.add_argument("--out", type=Path, required=True, help="folder for grades, pages and tables")
    new.add_argument("--notebook", help="grade this one only (default: those the class handed in)")
    new.add_argument("--exercises", nargs="+", default=[], metavar="ID", help="grade these only")
    new.add_argument("--only", nargs="+", default=[], metavar="STUDENT", help="grade these only")
    new.add_argument("--again", action="store_true", help="grade anew what has a grade")
    new.add_argument("--jobs", type=int, help="submissions at a time (default: cores)")
    new.add_argument("--dask", metavar="ADDRESS", help="grade on the workers of tcp://HOST:PORT")
    new.add_argument(
        "--runs", type=int, default=3, help="runs of each answer, 3 or more (default: 3)"
    )
    new.add_argument(
        "--polish",
        type=float,
        metavar="PERCENT",
        help="the most that remarks cost, of an exercise's points: 0 to 25 (default: 25)",
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
    new.add_argument(
        "--with",
        dest="decisions",
        type=Path,
        metavar="OPEN_CSV",
        help="read points and comments for open grades from a filled-in open.csv",
    )
    new.add_argument("--assignment", default="", help="name of the column in canvas.csv")
    new.add_argument(
        "--allow-unsafe", action="store_true", help="grade even where nothing can be isolated"
    )


def assign_notebooks(args) -> None:
    """Write what students, nbgrader or Gradescope get."""
    if args.gradescope:
        from vitedu.grading.adapters.gradescope import write_autograder

        print(write_autograder(args.out, args.notebooks))
        return
    from vitedu.grading.adapters.assign import assign, assign_nbgrader

    for path in (assign_nbgrader if args.nbgrader else assign)(args.out, args.notebooks):
        print(path)


def grade_class(args) -> int:
    """Grade a class; status 2 where the folders, the options or the machine will not do."""
    from vitedu.doctor import NO_BOX, can_isolate

    if not can_isolate():
        raise ValueError(f"{NO_BOX}.")
    from vitedu.grading.pages.publish import main_grade

    parts = None
    if args.dask:
        from dataclasses import replace
        from functools import partial

        from vitedu.grading.adapters.cluster import Cluster
        from vitedu.grading.student import real_parts

        parts = replace(real_parts(), open_box=partial(Cluster, args.dask))
    return main_grade(
        args.folder,
        args.out,
        parts=parts,
        formats=args.formats,
        assignment=args.assignment,
        decisions=args.decisions,
        jobs=args.jobs,
        student_from=args.student_from,
        exercises=args.exercises,
        notebook=stem(args.notebook) if args.notebook else None,
        only=args.only,
        runs=args.runs,
        polish=None if args.polish is None else args.polish / 100,
        seed=args.seed,
        again=args.again,
        allow_unsafe=args.allow_unsafe,
    )
