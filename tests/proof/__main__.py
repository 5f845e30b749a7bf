"""``make proof``: judge banks, unseen mistakes and mutants, or the answers of a file."""

import argparse
import sys
from pathlib import Path

from proof.audit import main_audit
from proof.bank import main_bank, main_unseen
from proof.mutation import main_mutate, mutable_exercises
from vitedu import exercises


def main(argv: list[str] | None = None) -> int:
    """Run what was asked for; return 0 if everything holds, else 1, and 2 on wrong use."""
    parser = argparse.ArgumentParser(prog="python -m proof", description=__doc__)
    parser.add_argument("exercises", nargs="*", metavar="EXERCISE", help="ids; default: all")
    parser.add_argument(
        "--seeds", type=int, help="students (default: 20; 3 for mutants, 5 for --audit)"
    )
    parser.add_argument(
        "--audit", type=Path, help="judge the answers of this file, a .py or a notebook"
    )
    args = parser.parse_args(argv)
    try:
        if args.audit:
            return main_audit(args.audit, args.seeds or 5)
        for exercise_id in args.exercises:
            exercises.find(exercise_id)
        ids = [id_ for id_ in args.exercises if id_ in mutable_exercises()]
        status = main_bank(args.exercises, args.seeds or 20)
        if ids or not args.exercises:
            print()
            status |= main_unseen(ids)
            print()
            status |= main_mutate(ids, args.seeds or 3)
        return status
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
