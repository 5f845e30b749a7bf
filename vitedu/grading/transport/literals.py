"""Read answers that are only a name and numbers, without running them.

Role: ``read_literal``. ``judge`` runs all other answers in a worker.
"""

import ast
import dis

from vitedu.checks.answers import LocalAnswer, PlainValue
from vitedu.course.parsing import parse
from vitedu.grading.grades import Answer
from vitedu.grading.transport.messages import read_plain, write_plain


def read_literal(answer: Answer) -> PlainValue | None:
    """Read an answer that is only a name and numbers; None if it has to be run.

    Arithmetic counts as a number if Python's compiler folds it into a constant.

    Example:
        >>> read_literal(Answer("stem_tokens", "stem_tokens = 3 * 4  # a guess")).value
        12
        >>> read_literal(Answer("stem_tokens", "stem_tokens = 3 * four"))
    """
    try:
        (node,) = parse(answer.source).body
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return None
        if getattr(node.targets[0], "id", "") != answer.exercise:
            return None
        if not all(isinstance(part, _CONSTANT) for part in ast.walk(node.value)):
            return None
        code = compile(ast.Expression(node.value), "<answer>", "eval", dont_inherit=True)
        steps = [step for step in dis.get_instructions(code) if step.opname not in _IGNORED_STEPS]
        if len(steps) != 1 or steps[0].opname not in _CONSTANT_STEPS:
            return None
        plain = read_plain(write_plain(LocalAnswer(steps[0].argval).plain()))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None  # a worker will report what is wrong
    return None if plain.is_empty else plain


_CONSTANT = ast.Constant | ast.Tuple | ast.UnaryOp | ast.BinOp
_CONSTANT |= ast.unaryop | ast.operator | ast.expr_context
_IGNORED_STEPS = ("RESUME", "NOP", "CACHE", "RETURN_VALUE")
_CONSTANT_STEPS = ("LOAD_CONST", "RETURN_CONST", "LOAD_SMALL_INT")
