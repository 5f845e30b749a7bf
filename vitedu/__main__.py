"""The command line: ``vitedu``, or ``python -m vitedu``.

Role: read the words, call the command (``vitedu.commands``), and turn its outcome into an exit
status: 0 success, 1 what was checked does not hold, 2 wrong use. A mistake of the caller
(ValueError, a missing or unreadable file) is one line on stderr and status 2. Each command imports
what it needs, so that ``--help``, ``list``, ``hint`` and ``progress`` answer without loading torch.
"""

import argparse
import io
import os
import sys

from vitedu.commands import Commands, bench, instructors, maintainers, students, training


def main(argv: list[str] | None = None) -> int:
    """Run one command and give its exit status.

    Example:
        >>> main(["list", "01_patches"])  # doctest: +ELLIPSIS
        01_patches...
        0
    """
    for stream in (sys.stdout, sys.stderr):  # a file on Windows may know no check mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
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
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    commands = Commands(subparsers)
    for group in (students, instructors, maintainers, training, bench):
        group.add_commands(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
