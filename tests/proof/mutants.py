"""Make every single-step change of a function or class: operators, constants, names, statements.

Role: turns source text into ``Mutant``s, with the standard library only. Nothing is run or judged
here; ``proof.mutation`` does that.

Why no library: mutmut copies the project and runs pytest on the copy, and cosmic-ray runs a command
for each mutant. Neither changes axes, drops calls or swaps arguments. Here a mutant costs one call
of a checker in this process, and the changes are those that matter in tensor code.

Docstrings, annotations and the messages of errors are never changed. The type of an error is, and
so is whether it is raised.
"""

import ast
import copy
import difflib
import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from vitedu.course.parsing import parse

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
OPPOSITES = {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
POWERS = {ast.Mult: ast.Pow, ast.Pow: ast.Mult, ast.MatMult: ast.Mult}

# names that are exchanged: functions, methods and types that take the same arguments
ALIKE = (
    {"sum", "mean"},
    {"sin", "cos"},
    {"amax", "amin"},
    {"max", "min"},
    {"argmax", "argmin"},
    {"sqrt", "square"},
    {"exp", "expm1"},
    {"log", "log1p"},
    {"erf", "erfc"},
    {"rand", "randn"},
    {"cat", "stack"},
    {"zeros", "ones"},
    {"int", "round"},
    {"train", "eval"},
    {"float", "double"},
    {"squeeze", "unsqueeze"},
    {"ValueError", "TypeError"},
)


@dataclass(frozen=True)
class Mutant:
    """One change: the lines before and after it, without messages, and the changed source."""

    before: str
    after: str
    source: str

    @property
    def change(self) -> str:
        """Describe the change in one line: the new line, or the line that was removed."""
        return self.after if self.after not in ("", "pass") else f"without: {self.before}"


def mutants(source: str, given: tuple[str, ...] = ()) -> Iterator[Mutant]:
    """Make every mutant of a function or class. No text is made twice.

    Args:
        source: of one function or class.
        given: methods that are not changed.

    Example:
        >>> [mutant.after for mutant in mutants("def half(x):\\n    return x / 2")][:4]
        ['pass', 'return x + 2', 'return x - 2', 'return x * 2']
    """
    tree = parse(source)
    original = ast.unparse(bare(copy.deepcopy(tree)))
    texts = {ast.unparse(tree)}
    packed = pickle.dumps(tree)  # unpacked ten times faster than copied
    for path, node in places(tree, given):
        for new in variants(node, siblings(tree, node)):
            changed = replace_node(packed, path, new)
            text = ast.unparse(changed)
            if text not in texts:
                texts.add(text)
                yield Mutant(*differing_lines(original, ast.unparse(bare(changed))), text)


# code of a function that changes a result
SPOILED = "(lambda y: (y[0] + 1, *y[1:]) if isinstance(y, tuple) else y + 1)"


def shortcuts(source: str, conditions: Iterable[str]) -> Iterator[Mutant]:
    """Make mutants that are wrong for special arguments only, as a faulty early return would be.

    Args:
        source: of one function, or of a class with a ``forward``.
        conditions: expressions of its arguments; each makes one mutant.

    Example:
        >>> [mutant.change for mutant in shortcuts("def half(x):\\n    return x / 2", ["x == 0"])]
        ['wrong where x == 0']
    """
    for condition in conditions:
        tree = parse(source)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        call = next((node for node in calls if node.name == "forward"), calls[0])
        for node in ast.walk(call):
            if isinstance(node, ast.Return) and node.value is not None:
                right = ast.unparse(node.value)
                spoiled = f"{SPOILED}({right}) if is_special else {right}"
                node.value = parse(spoiled, mode="eval").body
        call.body[:0] = parse(f"is_special = {condition}").body
        yield Mutant("", f"wrong where {condition}", ast.unparse(ast.fix_missing_locations(tree)))


# --- the tree -----------------------------------------------------------------------------------


def places(node: ast.AST, given: tuple[str, ...], path: tuple = ()) -> Iterator[tuple]:
    """Yield everything that may be changed: (path from the root, node or list of statements)."""
    yield path, node
    if _is_negative_number(node) or _is_docstring(node):
        return  # a negative number is treated as one constant
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns") or (isinstance(node, ast.Raise) and field == "exc"):
            continue
        if isinstance(value, list):
            if field == "body" and path:  # not the module's body: it holds the definition itself
                yield (*path, field), value
            for index, child in enumerate(value):
                if isinstance(child, ast.AST) and getattr(child, "name", None) not in given:
                    yield from places(child, given, (*path, field, index))
        elif isinstance(value, ast.AST):
            yield from places(value, given, (*path, field))


def replace_node(packed: bytes, path: tuple, new) -> ast.AST:
    """Unpack a tree and put another node, or list of statements, at the end of a path."""
    root, new = pickle.loads(packed), copy.deepcopy(new)
    *parents, last = path
    place: Any = root
    for step in parents:
        place = place[step] if isinstance(step, int) else getattr(place, step)
    if isinstance(last, int):
        place[last : last + 1] = [new]
    else:
        setattr(place, last, new)
    return root


def bare(tree: ast.AST) -> ast.AST:
    """Remove docstrings and the arguments of errors, in place; an empty body becomes ``pass``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args = [ast.Constant(...)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return tree


def differing_lines(old: str, new: str) -> tuple[str, str]:
    """Return the lines only in ``old`` and those only in ``new``, each joined into one line."""
    old_lines, new_lines = old.splitlines(), new.splitlines()
    before, after = [], []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old_lines, new_lines, False).get_opcodes():
        if tag != "equal":
            before += [line.strip() for line in old_lines[i:j]]
            after += [line.strip() for line in new_lines[k:m]]
    return "; ".join(before), "; ".join(after)


def siblings(tree: ast.AST, node) -> set[str]:
    """Return the names bound together with a name: as parameters, or by one unpacking."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return set()
    beside = set()
    for place in ast.walk(tree):
        names: list[str] = []
        if isinstance(place, ast.arguments):
            names = [argument.arg for argument in place.args if argument.arg != "self"]
        elif isinstance(place, ast.Tuple) and isinstance(place.ctx, ast.Store):
            names = [item.id for item in place.elts if isinstance(item, ast.Name)]
        if node.id in names:
            beside |= set(names)
    return beside - {node.id}


# --- the changes --------------------------------------------------------------------------------


def variants(node, beside: set[str]) -> Iterator:
    """Yield every replacement of a node or of a list of statements; ``beside`` has its siblings."""
    if isinstance(node, list):
        yield from _bodies(node)
        return
    kind = type(node).__name__
    yield from _BY_KIND.get(kind, lambda node: ())(node)
    if isinstance(node, ast.Name):
        for name in sorted(beside):
            yield ast.Name(name, node.ctx)


def edit(node: ast.AST, **fields) -> Any:
    """Copy a node with other values for some fields."""
    new = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def drop_item(items: list, index: int) -> list:
    """Copy a list with one item left out."""
    return items[:index] + items[index + 1 :]


def swap_pairs(items: list) -> Iterator[list]:
    """Yield a copy of a list for each two items, with the two swapped."""
    for i, j in itertools.combinations(range(len(items)), 2):
        new = list(items)
        new[i], new[j] = new[j], new[i]
        yield new


def _bodies(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Remove one statement; unwrap a ``with``; stop a loop after its first iteration."""
    for index, statement in enumerate(body):
        if _is_docstring(statement) or isinstance(statement, ast.Pass | ast.FunctionDef):
            continue
        rest = drop_item(body, index)
        yield rest if any(not _is_docstring(other) for other in rest) else [*rest, ast.Pass()]
        if isinstance(statement, ast.With):
            yield [*body[:index], *statement.body, *body[index + 1 :]]
        if isinstance(statement, ast.For | ast.While):
            once = edit(statement, body=[*statement.body, ast.Break()])
            yield [*body[:index], once, *body[index + 1 :]]


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _binary(node: ast.BinOp) -> Iterator[ast.AST]:
    kind = type(node.op)
    if kind in ARITHMETIC:
        for other in ARITHMETIC:
            if other is not kind:
                yield edit(node, op=other())
    if kind in POWERS:
        yield edit(node, op=POWERS[kind]())
    if kind not in (ast.Add, ast.Mult):  # these are commutative
        yield edit(node, left=node.right, right=node.left)
    yield node.left
    yield node.right


def _update(node: ast.AugAssign) -> Iterator[ast.AST]:
    for other in ARITHMETIC:
        if other is not type(node.op):
            yield edit(node, op=other())
    yield ast.copy_location(ast.Assign([node.target], node.value), node)


def _comparison(node: ast.Compare) -> Iterator[ast.AST]:
    kind = type(node.ops[0])
    others = COMPARISONS if kind in COMPARISONS else (OPPOSITES[kind],)
    for other in others:
        if other is not kind:
            yield edit(node, ops=[other(), *node.ops[1:]])


def _boolean(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield edit(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
    for index in range(len(node.values)):
        rest = drop_item(node.values, index)
        yield rest[0] if len(rest) == 1 else edit(node, values=rest)


def _unary(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand
    if _is_negative_number(node):
        yield from _numbers(-ast.literal_eval(node.operand))


def _is_negative_number(node) -> bool:
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    )


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield from _numbers(value)
    elif isinstance(value, str):
        yield ast.Constant(value + "_")


def _numbers(value: float) -> Iterator[ast.Constant]:
    """Yield numbers near a number; for a small integer, which may be an axis, all small ones."""
    if isinstance(value, int):
        others: set[float] = {value - 1, value + 1, 0, 2 * value, -value} | (
            {-2, -1, 0, 1, 2} if abs(value) < 3 else set()
        )
    else:
        others = {value + 1, value - 1, 0.0, 2 * value, value / 2, 10 * value, value / 10, -value}
    for other in sorted(others - {value}):
        yield ast.Constant(other)


def _call(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Attribute):
        yield node.func.value  # x.f(...) -> x
    if node.args and not isinstance(node.args[0], ast.Starred):
        yield node.args[0]  # f(x, ...) -> x
    for arguments in swap_pairs(node.args):
        yield edit(node, args=arguments)
    for index in range(len(node.args)):
        yield edit(node, args=drop_item(node.args, index))
    for index in range(len(node.keywords)):
        yield edit(node, keywords=drop_item(node.keywords, index))


def _row(node: ast.Tuple | ast.List) -> Iterator[ast.AST]:
    for items in swap_pairs(node.elts):
        yield edit(node, elts=items)
    if isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
        for index in range(len(node.elts)):
            yield edit(node, elts=drop_item(node.elts, index))


def _subscript(node: ast.Subscript) -> Iterator[ast.AST]:
    if isinstance(node.ctx, ast.Load):
        yield node.value


def _slice(node: ast.Slice) -> Iterator[ast.AST]:
    yield ast.Slice(node.upper, node.lower, node.step)
    for bound in ("lower", "upper", "step"):
        if getattr(node, bound) is not None:
            yield edit(node, **{bound: None})


def _choice(node: ast.IfExp) -> Iterator[ast.AST]:
    yield node.body
    yield node.orelse
    yield edit(node, body=node.orelse, orelse=node.body)


def _condition(node: ast.If | ast.While) -> Iterator[ast.AST]:
    yield edit(node, test=ast.UnaryOp(ast.Not(), node.test))
    yield edit(node, test=ast.Constant(True))


def _comprehension(node: ast.comprehension) -> Iterator[ast.AST]:
    for index in range(len(node.ifs)):
        yield edit(node, ifs=drop_item(node.ifs, index))


def _function(node: ast.FunctionDef) -> Iterator[ast.AST]:
    for index in range(len(node.decorator_list)):
        yield edit(node, decorator_list=drop_item(node.decorator_list, index))
    for index in range(len(node.args.defaults)):
        if index == 0:  # without a later default the signature would be invalid
            yield edit(node, args=edit(node.args, defaults=node.args.defaults[1:]))


def _raise(node: ast.Raise) -> Iterator[ast.AST]:
    if isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
        yield from (edit(node, exc=edit(node.exc, func=new)) for new in _name(node.exc.func))


def _name(node: ast.Name) -> Iterator[ast.AST]:
    for names in ALIKE:
        for other in sorted(names - {node.id}) if node.id in names else ():
            yield edit(node, id=other)


def _attribute(node: ast.Attribute) -> Iterator[ast.AST]:
    for names in ALIKE:
        for other in sorted(names - {node.attr}) if node.attr in names else ():
            yield edit(node, attr=other)


_BY_KIND: dict[str, Callable[..., Iterable]] = {
    "BinOp": _binary,
    "AugAssign": _update,
    "Compare": _comparison,
    "BoolOp": _boolean,
    "UnaryOp": _unary,
    "Constant": _constant,
    "Call": _call,
    "Tuple": _row,
    "List": _row,
    "Subscript": _subscript,
    "Slice": _slice,
    "IfExp": _choice,
    "If": _condition,
    "While": _condition,
    "comprehension": _comprehension,
    "FunctionDef": _function,
    "Raise": _raise,
    "Name": _name,
    "Attribute": _attribute,
}
