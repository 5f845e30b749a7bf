"""The commands of ``vitedu``, by who needs them: each module adds its own to the parser.

Role: the options, and the call of the module that does the work; what a command needs is imported
when it runs. Not here: the exit status of a mistake (``__main__``).
"""

from pathlib import Path


class Commands:
    """Where a module adds its commands: an argparse group of sub-commands."""

    def __init__(self, subparsers):
        self.subparsers = subparsers

    def add(self, name: str, run, text: str):
        """Add a command and return its parser.

        Args:
            name: what is typed.
            run: takes the parsed words, returns the exit status or None.
            text: one line of help.
        """
        new = self.subparsers.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}."
        )
        new.set_defaults(run=run)
        return new


def stem(name: str) -> str:
    """Read "notebooks/01_patches.ipynb" as "01_patches" and check that the syllabus knows it."""
    from vitedu.exercises import notebook_named

    return notebook_named(Path(name).name.removesuffix(".ipynb"))


def add_path(parser, name: str, default: str, text: str = "") -> None:
    """Add a path that has a default; one without dashes may be left out."""
    options = {} if name.startswith("-") else {"nargs": "?"}
    help = f"{text}default: {default}"
    parser.add_argument(name, type=Path, default=Path(default), help=help, **options)


def add_flag(parser, name: str, text: str, **options) -> None:
    """Add an option that is on or off."""
    parser.add_argument(name, action="store_true", help=text, **options)


def add_model(parser, text: str) -> None:
    """Add the option that names a student's file."""
    parser.add_argument("--model", metavar="FILE", type=Path, help=f"{text}; the file is executed")


def add_device(parser) -> None:
    """Add the option that says where to compute."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, mps (default: auto)")


def add_precision(parser, *, several: bool = False) -> None:
    """Add the option that says in which type to multiply matrices."""
    parser.add_argument(
        "--precision",
        nargs="+" if several else None,
        default=["auto"] if several else "auto",
        choices=["auto", "float32", "bfloat16", "float16"],
        help=f"of matrix products{', one or several' if several else ''} "
        "(default: what the hardware does natively)",
    )
