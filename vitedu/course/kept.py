"""Measurements of a student's own, kept beside the results, so that a later cell shows them again.

Role: the three calls of notebooks; ``course.results`` has the file. Nothing here is judged.
"""

from vitedu.course import results


def keep(notebook: str, name: str, value: float) -> None:
    """Store a number under a name; a later number of this name replaces it."""
    with results.edit("measurements", notebook) as numbers:
        numbers[name] = value


def forget(notebook: str, name: str) -> None:
    """Remove a number, such as that of a run that went wrong; an unknown name changes nothing."""
    with results.edit("measurements", notebook) as numbers:
        numbers.pop(name, None)


def kept(notebook: str) -> dict[str, float]:
    """Give the numbers of a notebook by their names, in the order in which they first came."""
    return results.load_table("measurements").get(notebook, {})
