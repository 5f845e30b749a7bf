"""``make bench-checks``, ``bench-grade``, ``bench-train``: checkers, grader, training measured."""

import argparse
import sys

import torch

from bench.checks import bench_busy, bench_checks
from bench.grade import bench_grade
from bench.train import bench_train
from vitedu.commands import add_device
from vitedu.ground.hardware import check_device, pick_device


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
    new = what.add_parser("train", help="our training step beside other libraries'")
    new.add_argument("--presets", nargs="+", default=["vit_tiny_patch4_32"])
    new.add_argument("--compile", action="store_true", help="torch.compile as well")
    new.add_argument("--batch", type=int, default=128, help="images (default: %(default)s)")
    new.add_argument("--rounds", type=int, default=7, help="of all in turn (default: %(default)s)")
    new.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    add_device(new)
    args = parser.parse_args(argv)
    try:
        if args.what == "train":
            check_device(args.device)
            device = pick_device() if args.device == "auto" else torch.device(args.device)
            options = {"batch": args.batch, "rounds": args.rounds, "compiled": args.compile}
            bench_train(device, getattr(torch, args.precision), args.presets, **options)
            return 0
        if args.what == "checks" and args.busy:
            return 0 if bench_busy(args.busy) else 1
        if args.what == "checks":
            return 0 if bench_checks(args.seeds) else 1
        words = args.students, args.jobs, args.notebook, args.compared
        return 0 if bench_grade(*words) else 1
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
