"""Commands for maintainers of notebooks and checkers.

Role: their options. Not here: what they call.
"""

from pathlib import Path

from vitedu.commands import Commands


def add_commands(commands: Commands) -> None:
    """Describe the commands; nothing is imported for it."""
    new = commands.add("solve", solve_notebooks, "write notebooks with the references filled in")
    new.add_argument("path", type=Path, help="a notebook or a folder of them")
    new.add_argument("--out", type=Path, default=Path("build/solved"), help="default: %(default)s")
    new = commands.add(
        "lint", lint_notebooks, "say where notebooks, references, syllabus and checkers disagree"
    )
    new.add_argument("path", type=Path, help="a notebook or a folder of them")
    new.add_argument(
        "--fix", action="store_true", help="first write signatures, docstrings and check cells"
    )
    new = commands.add("tour", tour_notebooks, "run the solved course and write it as HTML pages")
    new.add_argument(
        "path", type=Path, nargs="?", default=Path("notebooks"), help="default: %(default)s"
    )
    new.add_argument("--out", type=Path, default=Path("build/tour"), help="default: %(default)s")
    new = commands.add(
        "site", build_site, "build the course as pages, from a run of the solved course"
    )
    new.add_argument(
        "path", type=Path, nargs="?", default=Path("notebooks"), help="default: %(default)s"
    )
    new.add_argument("--instructor", action="store_true", help="with the solutions, folded")
    new.add_argument("--out", type=Path, help="default: build/site, or build/site-instructor")
    new.add_argument(
        "--runs", type=Path, default=Path("build/runs"), help="keeps the run; default: %(default)s"
    )


def solve_notebooks(args) -> int:
    """Write the solved variant of notebooks."""
    from vitedu.course.notebooks import solve

    for path in solve(args.path, args.out):
        print(path)
    return 0


def lint_notebooks(args) -> int:
    """Print every problem, and what each exercise costs; status 1 if there is a problem."""
    from vitedu.commands.inspection import checker_problems
    from vitedu.course.core import core_table
    from vitedu.course.lint import lint, missing_notebooks
    from vitedu.course.notebooks import find_notebooks, read
    from vitedu.course.price import price_table
    from vitedu.course.stub_text import fix_stubs

    paths = find_notebooks(args.path)
    for path in paths if args.fix else ():
        print(f"{path.name}: wrote {', '.join(fix_stubs(path)) or 'nothing'}")
    problems = [problem for path in paths for problem in lint(path)]
    if args.path.is_dir():
        problems += missing_notebooks(args.path) + checker_problems()
    print(price_table(args.path))
    print(core_table({path.stem: read(path) for path in paths}))
    for problem in problems:
        print(problem)
    print(f"{len(paths)} notebooks, {len(problems)} problems")
    return 1 if problems else 0


def tour_notebooks(args) -> int:
    """Run the solved course and draw the gallery; status 1 if a notebook fails."""
    from vitedu.bench.gallery import draw_gallery
    from vitedu.course.tour import tour

    all_passed = tour(args.path, args.out)
    gallery = args.out.parent / "gallery.png"
    print(f"{draw_gallery(gallery)} pictures in {gallery}")
    return 0 if all_passed else 1


def build_site(args) -> int:
    """Build the pages and print what is wrong with them; status 1 if something is."""
    from vitedu.course.site import write_site

    out = args.out or Path("build/site-instructor" if args.instructor else "build/site")
    problems = write_site(args.path, out, runs=args.runs, instructor=args.instructor)
    for problem in problems:
        print(problem)
    print(f"{out / 'index.html'}, {len(problems)} problems")
    return 1 if problems else 0
