"""``make bench-checks`` and ``make bench-grade``: measure the checkers and the grader."""

import argparse
import sys

from bench.checks import bench_busy, bench_checks
from bench.grade import bench_grade
from vitedu.commands import stem


def main(argv: list[str] | None = None) -> int:
    """Measure; return 0 if all aims are met, else 1, and 2 on wrong use."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    new = what.add_parser("checks", help="how long a student waits for a verdict")
    new.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")
    new.add_argument("--busy", type=int, help="ask instead whether reports depend on the load")
    new = what.add_parser("grade", help="a made class of untrusted notebooks, beside nbgrader")
    new.add_argument("--students", type=int, default=200, help="default: %(default)s")
    new.add_argument("--jobs", type=int, help="submissions at a time (default: cores)")
    new.add_argument("--notebook", default="01_patches", help="default: %(default)s")
    new.add_argument("--compared", type=int, default=24, help="for nbgrader, too: %(default)s")
    args = parser.parse_args(argv)
    try:
        if args.what == "checks" and args.busy:
            return 0 if bench_busy(args.busy) else 1
        if args.what == "checks":
            return 0 if bench_checks(args.seeds) else 1
        words = args.students, args.jobs, stem(args.notebook), args.compared
        return 0 if bench_grade(*words) else 1
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
