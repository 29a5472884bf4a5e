"""What of its file a Python function depends on: so an edit elsewhere in the file does not make its job run again.

The statements at the top of a file are of two kinds. Some only give names to things: a plain function or class, an
import, an assignment of plain data. Such a statement counts if the function uses its name, directly or through others
that count. All other statements may do anything when the file is loaded, so they always count, with all that they use.
Where it cannot be told what a function uses (`globals()`, `eval`, its own source...) there is no answer, and the whole
file counts. Being wrong here would give a wrong result quietly; being careful costs one more run."""

import ast
import copy
import hashlib
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

READS_NAMES: Final = frozenset(
    {"globals", "locals", "vars", "eval", "exec", "compile", "breakpoint", "__import__", "__file__", "__loader__"}
    | {"__spec__", "__builtins__", "__dict__", "__globals__", "__code__"}
)
"""Whoever uses these may reach any name of the file by its text, or the file itself."""

LOOKS_INTO_CODE: Final = frozenset(
    {"importlib", "inspect", "linecache", "pkgutil", "runpy", "ast", "dis", "types", "code", "codeop", "trace", "gc"}
    | {"pickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "copyreg", "unittest", "doctest"}
)
"""Modules that find functions and classes by their names, or look at their source."""

_OF_SYS: Final = frozenset({"modules", "_getframe", "settrace", "setprofile", "meta_path"})
_PLAIN_DECORATORS: Final = frozenset({"property", "staticmethod", "classmethod"})
_PLAIN: Final = (
    ast.Constant,
    ast.Name,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.UnaryOp,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Starred,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.Lambda,
    ast.arguments,
    ast.arg,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)
OURS: Final = "mendflow"
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
ImportNode = ast.Import | ast.ImportFrom


class BesideModules(Protocol):
    """The modules in the folder of a file that it imports."""

    def of(self, statement: ImportNode) -> Mapping[str, str]:
        """The modules that an import statement loads, with all that these load: their paths and digests."""
        ...

    def tree(self, path: str) -> ast.Module | None:
        """What is in one of them; None if it is not Python."""
        ...


class CannotTell(Exception):
    """What the function uses cannot be told: its whole file counts."""


class FunctionSlices:
    """What each function of a file depends on."""

    def __init__(self, source: bytes, beside: BesideModules) -> None:
        """Raises SyntaxError, ValueError or RecursionError if the source is not Python."""
        tree = ast.parse(source)
        self._statements = [each for each in tree.body if not _is_passed_over(each)]
        self._ours = _our_names(tree)
        self._beside = beside
        self._plain: dict[str, bool] = {}
        self._names = {id(each): _names_given_by(each) for each in self._statements}
        self._used = {id(each): _names_used_by(each, self._ours) for each in self._statements}
        self._rebinds = {id(each): _names_rebound_by(each) for each in self._statements}
        everywhere = {name for used in self._used.values() for name in used}
        self._always = [each for each in self._statements if self._may_do_anything(each, everywhere)]

    def digest(self, name: str) -> str:
        """A digest of what a function of this file depends on; empty if that cannot be told."""
        try:
            counted = self.of(name.partition(".")[0])
        except (CannotTell, RecursionError):
            return ""
        modules: dict[str, str] = {}
        for statement in counted:
            for node in ast.walk(statement):
                if isinstance(node, ImportNode):
                    modules |= self._beside.of(node)
        marks = [f"{each} {modules[each]}" for each in sorted(modules)]
        texts = [ast.dump(_without_our_decorators(each, self._ours)) for each in counted]
        return hashlib.sha256("\n".join([name, *marks, *texts]).encode()).hexdigest()[:40]

    def of(self, name: str) -> list[ast.stmt]:
        """The statements that count for this name, in the order of the file."""
        if not any(name in self._names[id(each)] for each in self._statements):
            raise CannotTell
        counted = {id(each) for each in self._always}
        wanted = {name, *(used for each in self._always for used in self._used[id(each)])}
        pending = list(wanted)
        while pending:
            asked = pending.pop()
            for each in self._statements:
                if id(each) not in counted and (asked in self._names[id(each)] or self._may_change(each, asked)):
                    counted.add(id(each))
                    new = self._used[id(each)] - wanted
                    wanted |= new
                    pending += new
        found = [each for each in self._statements if id(each) in counted]
        for each in found:
            _demand_plain_sight(each)
        return found

    def _may_change(self, statement: ast.stmt, name: str) -> bool:
        """Whether a function may change, while it runs, a list or the like that others use too."""
        if name in self._rebinds[id(statement)]:
            return True
        if not isinstance(statement, FunctionNode | ast.ClassDef) or name not in self._used[id(statement)]:
            return False
        return any(name in self._names[id(each)] and _gives_changeable(each) for each in self._statements)

    def _may_do_anything(self, statement: ast.stmt, everywhere: set[str]) -> bool:
        if isinstance(statement, ImportNode):
            names, modules = self._names[id(statement)], self._beside.of(statement)
            if "*" in names or getattr(statement, "module", "") == "__future__":
                return True
            return bool(modules) and not (names <= everywhere and all(map(self._is_plain, modules)))
        return not _only_names(statement, self._ours)

    def _is_plain(self, module: str) -> bool:
        """Whether loading a module beside the file only gives names to things."""
        if module not in self._plain:
            tree = self._beside.tree(module)
            self._plain[module] = tree is not None and all(
                _only_names(each, _our_names(tree)) for each in tree.body if not _is_passed_over(each)
            )
        return self._plain[module]


def _is_passed_over(statement: ast.stmt) -> bool:
    """Whether a statement does nothing where the file is loaded by its name: a text, or what is for a script only."""
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return ast.unparse(statement.test) in ("__name__ == '__main__'", "TYPE_CHECKING", "typing.TYPE_CHECKING")


def _only_names(statement: ast.stmt, ours: set[str]) -> bool:
    """Whether all that a statement does is to give a name to something."""
    if isinstance(statement, ImportNode):
        return True
    if isinstance(statement, FunctionNode):
        return _is_plain_function(statement, ours)
    if isinstance(statement, ast.ClassDef):
        if statement.decorator_list or statement.bases or statement.keywords:
            return False
        return all(_is_passed_over(each) or _only_names(each, ours) for each in statement.body)
    if isinstance(statement, ast.Assign):
        return all(map(_is_name, statement.targets)) and _is_plain(statement.value)
    if isinstance(statement, ast.AnnAssign):
        value = statement.value is None or _is_plain(statement.value)
        return _is_name(statement.target) and value and _is_plain(statement.annotation)
    return False


def _is_plain_function(function: FunctionNode, ours: set[str]) -> bool:
    if function.name == "__getattr__":
        return False  # of a module, it is asked for any name
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    notes = [each.annotation for each in every if each is not None and each.annotation is not None]
    evaluated = [*given.defaults, *(each for each in given.kw_defaults if each is not None), *notes]
    evaluated += [function.returns] if function.returns is not None else []
    decorators = [each for each in function.decorator_list if not _is_ours(each, ours)]
    plain = all(isinstance(each, ast.Name) and each.id in _PLAIN_DECORATORS for each in decorators)
    return plain and all(map(_is_plain, evaluated))


def _is_plain(value: ast.expr) -> bool:
    """Whether evaluating it runs no code of anybody: no call, no comprehension, nothing that waits. What a lambda would
    do when it is called is another matter."""
    pending: list[ast.AST] = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda):
            pending += [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
            continue
        if not isinstance(node, _PLAIN):
            return False
        pending.extend(ast.iter_child_nodes(node))
    return True


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)


def _our_names(tree: ast.Module) -> set[str]:
    """The names that the file has from this package."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ImportNode):
            ours = isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == OURS
            for alias in node.names:
                if ours or (isinstance(node, ast.Import) and alias.name.split(".")[0] == OURS):
                    found.add((alias.asname or alias.name).split(".")[0])
    rebound = [name for each in tree.body if not isinstance(each, ImportNode) for name in _names_given_by(each)]
    return found - set(rebound)


def _is_ours(decorator: ast.expr, ours: set[str]) -> bool:
    """Whether a decorator is one of this package: it says how a job is run, and what matters of that is in the job."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ours


def _without_our_decorators(statement: ast.stmt, ours: set[str]) -> ast.stmt:
    if not isinstance(statement, FunctionNode):
        return statement
    bare = copy.copy(statement)
    bare.decorator_list = [each for each in statement.decorator_list if not _is_ours(each, ours)]
    return bare


def _names_given_by(statement: ast.stmt) -> set[str]:
    """The names that a statement may give to something in the file."""
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ImportNode):
        return imported_names(statement)
    return {
        each.id if isinstance(each, ast.Name) else each.name
        for each in _outside_functions(statement)
        if isinstance(each, FunctionNode | ast.ClassDef)
        or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store | ast.Del))
    } | {
        name for each in _outside_functions(statement) if isinstance(each, ImportNode) for name in imported_names(each)
    }


def _outside_functions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement that run when it does."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))


def imported_names(statement: ImportNode) -> set[str]:
    if isinstance(statement, ast.Import):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    return {alias.asname or alias.name for alias in statement.names}


def _names_rebound_by(statement: ast.stmt) -> set[str]:
    """The names of the file that its functions give to something else while they run."""
    return {name for node in ast.walk(statement) if isinstance(node, ast.Global) for name in node.names}


def _names_used_by(statement: ast.stmt, ours: set[str]) -> set[str]:
    """Every name in it, also its own locals: one too many only makes more count."""
    skipped: set[int] = set()
    if isinstance(statement, FunctionNode):
        decorators = [each for each in statement.decorator_list if _is_ours(each, ours)]
        skipped = {id(node) for each in decorators for node in ast.walk(each)}
    found: set[str] = set()
    for node in ast.walk(statement):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Global):
            found |= set(node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)  # an annotation in quotes, or a name for getattr
    return found


def _gives_changeable(statement: ast.stmt) -> bool:
    """Whether what it names can be changed in place, or named anew by a function (`global`)."""
    if isinstance(statement, FunctionNode | ast.ClassDef | ImportNode):
        return False
    value = getattr(statement, "value", None)
    return not (isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(value, ast.Constant))


def _demand_plain_sight(statement: ast.stmt) -> None:
    """Raise `CannotTell` for what may find things of the file in another way than by writing their names."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id in READS_NAMES:
            raise CannotTell
        if isinstance(node, ast.Attribute) and (node.attr in READS_NAMES or node.attr in _OF_SYS):
            raise CannotTell
        if isinstance(node, ImportNode) and _modules_of(node) & LOOKS_INTO_CODE:
            raise CannotTell
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ".py" in node.value:
            raise CannotTell
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes) and b".py" in node.value:
            raise CannotTell


def _modules_of(node: ImportNode) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    return {(node.module or "").split(".")[0], *(alias.name for alias in node.names if not node.module)}
