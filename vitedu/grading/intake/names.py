"""Find which names a Python statement binds, changes and reads. Nothing is run.

Role: ``bindings``, ``changes``, ``reads``, ``global_names``, ``definition_reads``. ``statements``
uses them to decide which statements an answer needs.
"""

import ast
import symtable
from collections.abc import Iterable, Iterator


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield each name that a statement binds in its own scope, and the node that binds it."""
    work: list[tuple[ast.AST, ast.AST]] = [(node, node)]
    while work:
        node, holder = work.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], alias
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, holder
        if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, holder
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue
        if isinstance(node, ast.AugAssign):
            work.append((node.value, node))
            continue
        if isinstance(node, ast.stmt):
            holder = node
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            inner = [n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            yield from ((target.id, holder) for target in inner)
            continue
        work += [(child, holder) for child in ast.iter_child_nodes(node)]


# methods that change their object; those of torch end in "_"
MUTATING_METHODS = set(
    "append extend insert add update setdefault pop popitem remove discard clear sort reverse "
    "train eval load_state_dict register_buffer register_parameter add_module".split()
)


def changes(node: ast.AST) -> Iterator[str]:
    """Yield the names whose values a statement changes, also by a decorator or ``zero_()``.

    Example:
        >>> sorted(changes(ast.parse("for p in model.parameters():\\n    p.zero_()").body[0]))
        ['model', 'p']
    """
    work: list[ast.AST] = [node]
    while work:
        node = work.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:  # @add_to_class(Block)
                arguments = decorator.args if isinstance(decorator, ast.Call) else []
                yield from (each.id for each in arguments if isinstance(each, ast.Name))
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id in ("setattr", "delattr") and isinstance(node.args[0], ast.Name):
                yield node.args[0].id
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method in MUTATING_METHODS or (method.endswith("_") and not method.startswith("_")):
                # weight.zero_(), and nn.init.zeros_(weight)
                yield from (name for each in (node.func, *node.args[:1]) if (name := _root(each)))
        if isinstance(node, ast.For):  # for parameter in model.parameters(): parameter.zero_()
            targets = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
            changed = [name for inner in node.body for name in changes(inner)]
            yield from changed
            if not targets.isdisjoint(changed):
                yield from (each.id for each in ast.walk(node.iter) if isinstance(each, ast.Name))
            work += [node.target, node.iter, *node.orelse]  # the body once, or each level doubles
            continue
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            if name := _root(node):
                yield name
        work += ast.iter_child_nodes(node)


def _root(node: ast.AST) -> str:
    """Return the name with which a chain of attributes, items and calls begins, or ""."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def reads(statements: Iterable[ast.stmt], bound: set[str]) -> set[str]:
    """Return the names that statements read before they bind them.

    Args:
        statements: in order.
        bound: names that are already bound; the statements' own are added to it.
    """
    read_names: set[str] = set()
    for node in statements:
        inner = [
            b
            for b in ("body", "handlers", "cases", "orelse", "finalbody")
            if getattr(node, b, None)
        ]
        if not inner or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            read_names |= _find_reads(ast.unparse(node)) - bound
            bound |= {name for name, _ in bindings(node)}
            continue
        for name, value in ast.iter_fields(node):  # the head: a condition, an iterable, a context
            for part in value if isinstance(value, list) else [value]:
                if name not in inner and isinstance(part, ast.expr | ast.withitem | ast.pattern):
                    if isinstance(part, ast.withitem):
                        part = part.context_expr
                    if isinstance(part, ast.expr) and name != "target":
                        read_names |= _find_reads(ast.unparse(part)) - bound
        after = set(bound)
        if isinstance(node, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith):
            head = (
                [node.target] if hasattr(node, "target") else [i.optional_vars for i in node.items]
            )
            after |= {
                n.id for part in head if part for n in ast.walk(part) if isinstance(n, ast.Name)
            }
        for name in inner:
            known = set(after)
            read_names |= reads(getattr(node, name), known)
            if isinstance(node, ast.With | ast.For) and name == "body":
                bound |= known
    return read_names


def _find_reads(text: str) -> set[str]:
    """Return the globals that a statement or expression reads, also inside its functions."""
    return set(_walk_globals(symtable.symtable(text, "cell", "exec"), top=True))


def _walk_globals(table: symtable.SymbolTable, top: bool = False) -> Iterator[str]:
    for symbol in table.get_symbols():
        outer = symbol.is_referenced() and (top or symbol.is_global())
        if outer or symbol.is_declared_global():  # symtable counts ``calls += 1`` as no reference
            yield symbol.get_name()
    for child in table.get_children():
        yield from _walk_globals(child)


def global_names(node: ast.AST) -> set[str]:
    """Return the names that functions inside a statement declare ``global``."""
    return {name for n in ast.walk(node) if isinstance(n, ast.Global) for name in n.names}


def definition_reads(node: ast.stmt) -> set[str]:
    """Return what a definition reads when it is executed: bases, decorators, defaults.

    Example:
        >>> code = "class A(B):\\n    x = c\\n    def f(self): return d"
        >>> sorted(definition_reads(ast.parse(code).body[0]))
        ['B']
    """
    parts: list[ast.AST] = list(getattr(node, "decorator_list", []))
    if isinstance(node, ast.ClassDef):
        parts += [*node.bases, *node.keywords]
    if isinstance(node, ast.FunctionDef):
        parts += [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
    return {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}
