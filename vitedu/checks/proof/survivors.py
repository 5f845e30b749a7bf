"""The mutants that pass, and why: what ``vitedu.checks.proof.mutation`` holds its run against.

Both tables go from an exercise and a reason to the lines as ``vitedu bank --mutate`` prints them. A line whose mutant
is rejected, or no longer made, is an error: the tables stay exact.
"""

# methods that the notebook gives to the student
GIVEN: dict[str, tuple[str, ...]] = {}


# can not be told apart by any input that the contract allows
EQUIVALENT: dict[str, dict[str, tuple[str, ...]]] = {}


# differ, but only where exercises.md asks for nothing
LEFT_OPEN: dict[str, dict[str, tuple[str, ...]]] = {}


def lines(table: dict[str, dict[str, tuple[str, ...]]], exercise_id: str) -> set[str]:
    """Collect the lines that a table explains for an exercise."""
    return {line for group in table.get(exercise_id, {}).values() for line in group}
