"""What a statement of a cell does to the names of a notebook: which it binds, which it changes, which it uses.

A statement changes the value of a name if it assigns to a part of it, or calls a method of it. A value that is given to
a function may be changed there, which cannot be seen from outside: the name is handed over."""

import ast
import builtins
from collections.abc import Iterator
from typing import Final, NamedTuple

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES: Final = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
PLAIN: Final = (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
"""What binds its names whatever happens, and whatever they were before."""
CHANGING: Final = frozenset(
    {"setattr", "delattr", "exec", "eval", "next", "vars", "globals", "locals", "map", "filter"}
)
HARMLESS: Final = frozenset({*dir(builtins), "display"}) - CHANGING
"""Functions that leave what they are given as it is."""


class CellEffects(NamedTuple):
    """Names of a notebook, as a statement has them. `assigned` are those of which it changes a part, `asked` those of
    which it calls a method, `handed_over` those that it gives to functions that may change them. What it uses `later`
    is in the bodies of functions."""

    bound: frozenset[str]
    assigned: frozenset[str]
    asked: frozenset[str]
    handed_over: frozenset[str]
    called: frozenset[str]
    used: frozenset[str]
    later: frozenset[str]
    shares: frozenset[str]
    """Names that may be names of the same value, or of a part of it, after the statement."""
    replaces: bool


def effects_of(statement: ast.stmt) -> CellEffects:
    here = list(_in_this_scope(statement))
    running = list(ast.walk(statement)) if isinstance(statement, ast.ClassDef) else here
    used = {node.id for node in running if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    used |= {name for node in here for name in _assigned(node)}
    return CellEffects(
        bound=frozenset(name for node in here for name in _bound(node)),
        assigned=frozenset(name for node in here for name in _assigned(node)),
        asked=frozenset(name for node in here for name in _asked(node)),
        handed_over=frozenset(name for node in here for name in _handed_over(node)),
        called=frozenset(name for node in here for name in _called(node)),
        used=frozenset(used),
        later=frozenset(_used_later(statement)),
        shares=frozenset(name for node in here for name in _sharing(node)),
        replaces=isinstance(statement, PLAIN) and getattr(statement, "value", True) is not None,
    )


def changed_inside(statement: ast.stmt, *, by_assignment: bool) -> set[str]:
    """The names of the notebook that a function may change when it is called, by an assignment or in any way."""
    nodes = list(ast.walk(statement))
    stated = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    changed = {name for node in nodes for name in _assigned(node)}
    if not by_assignment:
        changed |= {name for node in nodes for name in (*_asked(node), *_handed_over(node))}
    return stated | (changed - own)


def _in_this_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The node, and what is below it and runs when it does: no bodies of functions, no variables of comprehensions."""
    yield node
    for field, value in ast.iter_fields(node):
        hidden = isinstance(node, SCOPES) and field == "body"
        if hidden or (isinstance(node, ast.comprehension) and field == "target"):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _in_this_scope(each)


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def _assigned(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
            yield from _root(node)
        case ast.AugAssign(target=target):
            yield from _root(target)


def _asked(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _root(node.func)


def _called(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield node.func.id


def _handed_over(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Call) or (isinstance(node.func, ast.Name) and node.func.id in HARMLESS):
        return
    for each in (*node.args, *(keyword.value for keyword in node.keywords)):
        yield from _parts(each)


def _sharing(node: ast.AST) -> Iterator[str]:
    """`a = b`, `a = [b, c]`, `for a in b`, `with b as a`: a change of one may be a change of the other."""
    match node:
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            pairs = [(target, value)]
        case ast.For(target=target, iter=value) | ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            pairs = [(target, value)]
        case _:
            return
    for target, value in pairs:
        if parts := set(_parts(value)):
            yield from parts
            yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def _parts(value: ast.AST) -> Iterator[str]:
    """The names whose values an expression hands on, or parts of these. What is computed is a value of its own."""
    match value:
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Starred():
            yield from _root(value)
        case ast.Call(func=ast.Attribute() as method):
            yield from _root(method)  # `p.values()`, `p.get("a")`
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.IfExp() | ast.BoolOp() | ast.NamedExpr():
            for each in ast.iter_child_nodes(value):
                yield from _parts(each)


def _root(node: ast.AST) -> Iterator[str]:
    """The name that a path such as `a.b[0].c` begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Call):
        yield from _root(node.func)


def _used_later(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, SCOPES):
            yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value  # an annotation may be a text
