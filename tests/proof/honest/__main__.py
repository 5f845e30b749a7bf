"""``make honest``: grade honest notebooks as one class, and print what each loses."""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from proof.honest import students
from proof.honest.grading import grade
from proof.honest.running import wrong_answers


def main(argv: list[str] | None = None) -> int:
    """Print a row a student; return 0 if each has the verdict that is fair, else 1."""
    parser = argparse.ArgumentParser(prog="python -m proof.honest", description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--run", action="store_true", help="run the notebooks and ask check, too")
    parser.add_argument("--out", type=Path, help="folder for the notebooks, pages and tables")
    args = parser.parse_args(argv)
    chosen = [s for s in students() if not args.names or s.name.startswith(tuple(args.names))]
    problems = 0
    for student, wrong in wrong_answers(chosen) if args.run else ():
        problems += len(wrong)
        print(f"{student.name}: {'; '.join(wrong) or 'right'}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        verdicts = grade(chosen, args.out or Path(folder))
    for verdict in verdicts:
        print(f"{verdict.student:34}{verdict.word:6}{' '.join(verdict.exercises)}")
        for line in [*verdict.reasons, *verdict.accusations]:
            print(f"    {line}")
    counts = Counter(verdict.word for verdict in verdicts)
    print(", ".join(f"{counts[word]} {word}" for word in ("full", "open", "below")))
    return int(bool(problems) or not all(verdict.is_fair for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
