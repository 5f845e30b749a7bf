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
        "lint", lint_notebooks, "say where notebooks, references and syllabus disagree"
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

    new = commands.add(
        "bank", run_bank, "run every known mistake and right answer through the checkers"
    )
    new.add_argument("exercises", nargs="*", help="ids; default: all")
    new.add_argument("--seeds", type=int, help="how many (default: 20, with --mutate 3)")
    new.add_argument(
        "--mutate", action="store_true", help="judge every single-step change of the references"
    )
    new.add_argument(
        "--unseen", action="store_true", help="judge each mistake as if the bank did not hold it"
    )
    new = commands.add(
        "audit", run_audit, "show what the checkers decide about each answer in a file"
    )
    new.add_argument("path", type=Path, help="a .py file or a notebook; it is executed")
    new.add_argument("--seeds", type=int, default=5, help="how many (default: %(default)s)")


def solve_notebooks(args) -> int:
    """Write the solved variant of notebooks."""
    from vitedu.course.notebooks import solve

    for path in solve(args.path, args.out):
        print(path)
    return 0


def lint_notebooks(args) -> int:
    """Print every problem, and what each exercise costs; status 1 if there is a problem."""
    from vitedu.course.lint import lint, missing_notebooks
    from vitedu.course.notebooks import find_notebooks
    from vitedu.course.price import has_checker_file, price_table
    from vitedu.course.stub_text import fix_stubs

    paths = find_notebooks(args.path)
    for path in paths if args.fix else ():
        print(f"{path.name}: wrote {', '.join(fix_stubs(path)) or 'nothing'}")
    problems = [problem for path in paths for problem in lint(path, has_checker=has_checker_file)]
    if args.path.is_dir():
        problems += missing_notebooks(args.path)
    print(price_table(args.path))
    for problem in problems:
        print(problem)
    print(f"{len(paths)} notebooks, {len(problems)} problems")
    return 1 if problems else 0


def tour_notebooks(args) -> int:
    """Run the solved course; status 1 if a notebook fails."""
    from vitedu.course.tour import tour

    return 0 if tour(args.path, args.out) else 1


def build_site(args) -> int:
    """Build the pages and print what is wrong with them; status 1 if something is."""
    from vitedu.course.site import site

    out = args.out or Path("build/site-instructor" if args.instructor else "build/site")
    found = site(args.path, out, runs=args.runs, instructor=args.instructor)
    for problem in found:
        print(problem)
    print(f"{out / 'index.html'}, {len(found)} problems")
    return 1 if found else 0


def run_bank(args) -> int:
    """Print the catch matrix, or what becomes of mutants; status 1 unless all are right."""
    if args.mutate:
        from vitedu.checks.proof.mutation import main_mutate

        return main_mutate(args.exercises, args.seeds or 3)
    from vitedu.checks.proof.bank import main_bank, main_unseen

    if args.unseen:
        return main_unseen(args.exercises)
    return main_bank(args.exercises, args.seeds or 20)


def run_audit(args) -> int:
    """Print every property's verdict; status 1 if an answer fails."""
    from vitedu.checks.proof.audit import main_audit

    return main_audit(args.path, args.seeds)
