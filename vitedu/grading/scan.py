"""What a person should look at in answers. Flags only, never points; nothing is run. (The rules follow.)"""

from vitedu.grading.grades import Answer, Flag


def scan_answer(answer: Answer) -> list[Flag]:
    """Look at one answer."""
    return []
