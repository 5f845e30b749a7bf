"""Recognise mutants that are right because they name the same axis, counted from the other end.

Role: explains such survivors for all exercises, so that no checker lists them. While the reference
answers the checker's cases, the numbers of axes of its tensors are recorded. Two texts that are
equal once every axis is counted from the front then do the same.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from vitedu import exercises
from vitedu.checks.engine import judge_answer
from vitedu.checks.writing.checker import find_checker
from vitedu.checks.writing.mistakes import run_source
from vitedu.course.parsing import parse
from vitedu.course.references import reference_source

Ranks = dict[int, set[int]]  # place in the text -> the numbers of axes that were met there

KEYWORDS = {"dim", "dims"}
# functions and methods that take axes by position: all their arguments, or the first
ALL = {"transpose", "permute", "flip", "flatten"}
FIRST = set(
    "sum mean any all max argmax argsort sort softmax log_softmax squeeze unsqueeze unflatten "
    "gather scatter scatter_add index_add unbind".split()
)
ADDING = {"unsqueeze", "stack"}  # their result, which they count in, has an axis more
LIBRARIES = {"torch", "F", "torch.nn.functional"}


@cache
def same_axes(exercise_id: str) -> Callable[[str], bool]:
    """Return a function: is a text the reference's, with axes counted from either end?

    Example:
        >>> same = same_axes("merge_heads")
        >>> text = ast.unparse(parse(reference_source(exercises.find("merge_heads"))))
        >>> [same(text.replace("transpose(1", f"transpose({axis}")) for axis in (1, -3, 0)]
        [True, True, False]
    """
    source = reference_source(exercises.find(exercise_id))
    ranks = _record_ranks(exercise_id, source)
    counted, words = _count_axes(source, ranks), _without_numbers(ast.unparse(parse(source)))
    return lambda text: _without_numbers(text) == words and _count_axes(text, ranks) == counted


def _without_numbers(text: str) -> str:
    return re.sub(r"[-\d]", "", text)


def _record_ranks(exercise_id: str, source: str) -> Ranks:
    ranks: Ranks = defaultdict(set)

    def met(place: int, thing: Any) -> Any:
        first = thing[0] if isinstance(thing, list | tuple) and thing else thing
        ranks[place].add(first.ndim if isinstance(first, torch.Tensor) else 0)
        return thing

    recording = ast.unparse(ast.fix_missing_locations(_Axes(None).visit(parse(source))))
    module = exercises.find(exercise_id).module
    answer = run_source(recording, exercise_id, module, met=met)
    if not judge_answer(find_checker(exercise_id), answer, 0).is_flawless:
        raise ValueError(f"the reference of {exercise_id} fails where its axes are recorded.")
    return ranks


def _count_axes(source: str, ranks: Ranks) -> str:
    """Write a text without docstrings, with every axis counted from the front."""
    tree = _Axes(ranks).visit(parse(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(ast.fix_missing_locations(tree))


class _Axes(ast.NodeTransformer):
    """Count every axis from the front; without ranks, make the text tell ``met`` of them."""

    def __init__(self, ranks: Ranks | None):
        self.ranks = ranks
        self.place = 0

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            node.value.value, (node.slice,) = self._count_from_front(node.value.value, [node.slice])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func).split(".")[-1]
        method = node.func if isinstance(node.func, ast.Attribute) else None
        if method and ast.unparse(method.value) in LIBRARIES:
            method = None
        own = 0 if method else 1
        end = len(node.args) if name in ALL else own + 1 if name in FIRST else own
        keywords = [word for word in node.keywords if word.arg in KEYWORDS]
        axes = [*node.args[own:end], *(word.value for word in keywords)]
        if not axes or not (method or node.args):
            return node
        more = name in ADDING
        if method:
            method.value, axes = self._count_from_front(method.value, axes, more)
        else:
            node.args[0], axes = self._count_from_front(node.args[0], axes, more)
        positional = len(axes) - len(keywords)
        node.args[own:end] = axes[:positional]
        if name == "transpose":
            node.args[own:end] = sorted(node.args[own:end], key=ast.unparse)
        for word, axis in zip(keywords, axes[positional:], strict=True):
            word.value = axis
        return node

    def _count_from_front(self, tensor: Any, axes: list, more: bool = False) -> tuple[Any, list]:
        self.place += 1
        if self.ranks is None:
            return parse(f"met({self.place}, {ast.unparse(tensor)})", mode="eval").body, axes
        met = self.ranks[self.place]
        if len(met) != 1 or met == {0}:  # an axis of tensors of several kinds has no one number
            return tensor, axes
        return tensor, [_from_front(axis, next(iter(met)) + more) for axis in axes]


def _from_front(axis: Any, rank: int) -> Any:
    """Count a literal axis, those of a tuple, or the bounds of a slice from the front."""
    if isinstance(axis, ast.Tuple | ast.List):
        axis.elts = [_from_front(part, rank) for part in axis.elts]
    elif isinstance(axis, ast.Slice):
        axis.lower, axis.upper = (_from_front(part, rank) for part in (axis.lower, axis.upper))
    elif isinstance(axis, ast.Constant | ast.UnaryOp):
        text = ast.unparse(axis)
        if text.lstrip("-").isdigit() and -rank <= int(text) < rank:
            return ast.Constant(int(text) % rank)
    return axis
