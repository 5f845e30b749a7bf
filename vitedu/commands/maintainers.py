"""Commands for maintainers of notebooks and checkers, and for who sets a clone up.

Role: their options. Not here: what they call.
"""

from argparse import Namespace
from pathlib import Path

from vitedu.commands import Commands, add_flag, add_notebooks, add_path


def add_commands(commands: Commands) -> None:
    """Describe the commands; nothing is imported for it."""
    new = commands.add("setup", set_up, "set up a clone once; the variable PIP_ARGS goes to pip")
    add_flag(new, "--test", "instead: what its tests need")
    text = "collect wheels for machines without a network, as this one in system and Python"
    add_path(commands.add("bundle", collect_wheels, text), "folder", "build/bundle")
    new = commands.add("test", run_tests, "pass every test of a clone; sets them up if need be")
    new.add_argument("words", nargs="*", metavar="-- WORD", help="for pytest, such as -- -k patch")
    new = commands.add("slug", set_repository, "write the address of a clone into all links")
    new.add_argument("repository", nargs="?", help="owner/name; without it, renew this version's")
    new = commands.add("solve", solve_notebooks, "write notebooks with the references filled in")
    new.add_argument("path", type=Path, help="a notebook or a folder of them")
    add_path(new, "--out", "build/solved")
    new = commands.add(
        "lint", lint_notebooks, "say where notebooks, references and syllabus disagree"
    )
    new.add_argument("path", type=Path, help="a notebook or a folder of them")
    add_flag(new, "--fix", "first write stubs and check cells, and clear outputs")
    new = commands.add("tour", tour_notebooks, "run the solved course, for the pages")
    add_notebooks(new, "path")
    add_path(new, "--out", "build/runs")
    new = commands.add(
        "site", build_site, "build the course as pages, from a run of the solved course"
    )
    add_notebooks(new, "path")
    add_flag(new, "--instructor", "with the solutions, folded")
    new.add_argument("--out", type=Path, help="default: build/site, or build/site-instructor")
    add_path(new, "--runs", "build/runs", "keeps the run; ")


def set_up(args: Namespace) -> None:
    """Install the course, or what its tests need."""
    from vitedu.course import environments

    (environments.set_up_tests if args.test else environments.set_up)()


def collect_wheels(args: Namespace) -> None:
    """Write a folder that installs the course offline."""
    from vitedu.course.environments import bundle

    bundle(args.folder)


def run_tests(args: Namespace) -> int:
    """Run pytest and give its status."""
    from vitedu.course.environments import run_tests

    return run_tests(args.words)


def set_repository(args: Namespace) -> None:
    """Write the address and say what changed."""
    from vitedu.course import colab, environments

    environments.check_clone()
    repository = args.repository or colab.REPOSITORY
    changed = colab.set_repository(environments.ROOT, repository)
    print(*changed, f"The address is {repository}, the version {colab.TAG}.", sep="\n")
    if repository == colab.PLACEHOLDER:
        print("It is the placeholder. Set yours: vitedu slug owner/name")
    else:
        print(f"Colab finds it once it is released: git tag {colab.TAG}; git push --tags")


def solve_notebooks(args: Namespace) -> None:
    """Write the solved variant of notebooks."""
    from vitedu.course.notebooks import solve

    for path in solve(args.path, args.out):
        print(path)


def lint_notebooks(args: Namespace) -> int:
    """Print every problem; status 1 if there is one."""
    from vitedu.course.lint import fix_notebook, lint
    from vitedu.course.notebooks import find_notebooks

    paths = find_notebooks(args.path)
    for path in paths if args.fix else ():
        print(f"{path.name}: {'mended' if fix_notebook(path) else 'nothing to mend'}")
    problems = [problem for path in paths for problem in lint(path)]
    print(*problems, f"{len(paths)} notebooks, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


def tour_notebooks(args: Namespace) -> int:
    """Run the solved course; status 1 if a notebook fails."""
    from vitedu.course.tour import tour

    return 0 if tour(args.path, args.out) else 1


def build_site(args: Namespace) -> int:
    """Build the pages and print what is wrong with them; status 1 if something is."""
    from vitedu.bench.front import draw_front
    from vitedu.course.site import write_site

    out = args.out or Path("build/site-instructor" if args.instructor else "build/site")
    problems = write_site(
        args.path, out, runs=args.runs, instructor=args.instructor, draw=draw_front
    )
    print(*problems, f"{out / 'index.html'}, {len(problems)} problems", sep="\n")
    return 1 if problems else 0
