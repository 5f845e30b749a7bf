"""Commands for students: the syllabus, checks, hints, references, progress, what is installed.

Role: their options and their printing. Not here: what they call.
"""

from pathlib import Path

from vitedu.commands import Commands, stem


def add_commands(commands: Commands) -> None:
    """Describe the commands; nothing is imported for it."""
    new = commands.add("list", list_exercises, "list the exercises with points and minutes")
    new.add_argument("notebook", nargs="?", help="only this notebook, such as 01_patches")
    new = commands.add(
        "check", check_notebook, "judge the answers in a notebook, in a fresh kernel"
    )
    new.add_argument("notebook", type=Path, help="the notebook with the answers; it is not changed")
    new.add_argument(
        "--seconds", type=float, default=600, help="time limit of one cell (default: %(default)s)"
    )
    new = commands.add("hint", show_hint, "show the next of three hints for an exercise")
    new.add_argument("exercise", help="its id, such as patchify")
    new = commands.add("solution", show_solution, "show the reference of an exercise")
    new.add_argument("exercise", help="its id, such as patchify")
    new = commands.add("progress", show_progress, "show what is done and what is left")
    new.add_argument("notebook", nargs="?", help="only this notebook, such as 01_patches")
    commands.add("doctor", run_doctor, "say what is installed, what will be used and what to mend")


def list_exercises(args) -> int:
    """Print the syllabus as a table."""
    from vitedu.exercises import EXERCISES, in_notebook

    chosen = in_notebook(stem(args.notebook)) if args.notebook else list(EXERCISES)
    width = max(len(exercise.id) for exercise in chosen)
    notebook = None
    for exercise in chosen:
        if exercise.notebook != notebook:
            notebook = exercise.notebook
            own = in_notebook(notebook)
            points, minutes = sum(e.points for e in own), sum(e.minutes for e in own)
            print(f"{notebook}  {points} points, about {minutes} minutes of exercises")
        print(
            f"  {exercise.number:<5}{exercise.id:<{width}}  {exercise.points:>2} points"
            f"  {exercise.minutes:>3} min  {exercise.title}"
        )
    return 0


def check_notebook(args) -> int:
    """Judge one notebook; status 1 unless every exercise passed."""
    from vitedu.course.tour import check_notebook

    text, everything_passed = check_notebook(args.notebook, seconds=args.seconds)
    print(text)
    return 0 if everything_passed else 1


def show_hint(args) -> int:
    """Print the next hint and count it."""
    from vitedu.course.hints import next_hint
    from vitedu.exercises import find

    print(next_hint(find(args.exercise)))
    return 0


def show_solution(args) -> int:
    """Print the source of a reference."""
    from vitedu.course.references import solution_source
    from vitedu.exercises import find

    print(solution_source(find(args.exercise)))
    return 0


def show_progress(args) -> int:
    """Print the student's table."""
    from vitedu.course import results

    print(results.table_text(stem(args.notebook) if args.notebook else None))
    return 0


def run_doctor(args) -> int:
    """Print the findings; status 1 where something must be mended."""
    from vitedu.doctor import diagnose, text

    findings = diagnose()
    print(text(findings))
    return 1 if any(finding.state == "mend" for finding in findings) else 0
