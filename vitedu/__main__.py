"""The command line: ``vitedu``, or ``python -m vitedu``.

Role: read the words, call the command (``vitedu.commands``), and turn its outcome into an exit
status: 0 success, 1 what was checked does not hold, 2 wrong use, 130 stopped. A mistake of the
caller (ValueError, a missing or unreadable file) is one line on stderr and status 2, and so is
every other error, such as one in a student's file. Each command imports what it needs, so that
``--help``, ``list``, ``hint`` and ``progress`` answer without loading torch.
"""

import argparse
import io
import os
import sys
import traceback

from vitedu.commands import Commands, bench, instructors, maintainers, students, training

# group -> an example, and the modules with its commands
GROUPS = {
    "learn": ("lab", [students]),
    "teach": ("grade submissions/ --out grades/", [instructors]),
    "train": ("predict photo.jpg", [training]),
    "maintain": ("lint notebooks", [maintainers, bench]),
}


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
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may follow; see ``vitedu completion``
        import argcomplete

        argcomplete.autocomplete(parser)
    args = parser.parse_args(argv)
    try:
        status = args.run(args)
        sys.stdout.flush()  # a closed pipe shows here, not at exit
    except BrokenPipeError:  # vitedu list | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.filename and error.strerror:
            text = f"{error.filename}: {error.strerror}"
        print(f"vitedu: {text}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("vitedu: stopped", file=sys.stderr)
        return 130
    except Exception as error:  # of a student's file that a command runs, or of our own
        if os.environ.get("VITEDU_TRACEBACK"):
            raise
        print(f"vitedu: {describe(error)}", file=sys.stderr)
        return 2
    return status or 0


def build_parser() -> argparse.ArgumentParser:
    """Describe every command; nothing is imported for it."""
    from vitedu import __version__

    parser = argparse.ArgumentParser(
        prog="vitedu",
        usage="vitedu COMMAND ...",
        description="Learn how a Vision Transformer works by writing every part of it.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"vitedu {__version__}")
    parser.set_defaults(run=lambda args: parser.print_help())
    subparsers = parser.add_subparsers(prog="vitedu", metavar="COMMAND", help=argparse.SUPPRESS)
    parts = []
    for group, (example, modules) in GROUPS.items():
        commands = Commands(subparsers, group)
        for module in modules:
            module.add_commands(commands)
        parts.append("\n".join([f"{group}, such as: vitedu {example}", *commands.lines]))
    words = "vitedu COMMAND --help: its options. Exit status: 0 success, "
    words += "1 what was checked does not hold, 2 wrong use, 130 stopped."
    parser.epilog = "\n\n".join([*parts, words])
    return parser


def describe(error: Exception) -> str:
    """Write an error that no command foresaw in one line, with the place where it was raised.

    Example:
        >>> try:
        ...     {}["x"]
        ... except KeyError as error:
        ...     print(describe(error))  # doctest: +ELLIPSIS
        KeyError: 'x' (..., line 1); VITEDU_TRACEBACK=1 shows all lines
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(str(error).split())
    place = f"{last.filename}, line {last.lineno}"
    return f"{type(error).__name__}: {words} ({place}); VITEDU_TRACEBACK=1 shows all lines"


if __name__ == "__main__":
    sys.exit(main())
