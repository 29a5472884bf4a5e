"""What of its file a Python function depends on: so an edit elsewhere in the file does not make its job run again.

The statements at the top of a file are of two kinds. Some only give names to things: a plain function or class, an
assignment of plain data. Such a statement counts if the function uses its name, directly or through others that count;
a name in a text is used too, as there are libraries that look it up (`df.query("x > @LIMIT")`). All other statements
may do anything when the file is loaded, so they always count, with all that they use. So do imports, but what is in a
module beside the file counts for those who use it, if loading it only gives names to things. Where it cannot be told
what a function uses (`globals()`, `eval`, its own source...) there is no answer, and the whole file counts. Being wrong
here would give a wrong result quietly; being careful costs one more run."""

import ast
import copy
import hashlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from mendflow.formats.python.dynamic_lookups import CannotTell, ImportNode, demand_plain_sight, names_in_text

_PLAIN_DECORATORS: Final = frozenset({"property", "staticmethod", "classmethod"})
_SIMPLE: Final = (ast.Constant, ast.Name, ast.Tuple, ast.List, ast.expr_context)
_OPERATIONS: Final = (
    ast.UnaryOp,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Subscript,
    ast.Slice,
    ast.Set,
    ast.Dict,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.Starred,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)
"""They run no code of anybody if they are about plain data, and may run any if they are about something with a name."""

_DATA: Final = (ast.Constant, ast.Tuple, *_OPERATIONS)
OURS: Final = "mendflow"
_VALUES: Final = frozenset({"Table", "Retry"})
"""What of this package only says something, and does nothing when it is made."""

_SETTERS: Final = frozenset({"setattr", "delattr", "__setattr__", "__delattr__", "object"})
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class BesideModules(Protocol):
    """The modules in the folder of a file that it imports."""

    def of(self, statement: ImportNode) -> Mapping[str, str]:
        """The modules that an import statement loads, with all that these load: their paths and digests."""
        ...

    def tree(self, path: str) -> ast.Module | None:
        """What is in one of them; None if it is not Python."""
        ...


class _Known(NamedTuple):
    """What is known of the names at the top of a file: those that it has from this package, and those that are only
    imported, or classes."""

    ours: set[str]
    modules: set[str]


class FunctionSlices:
    """What each function of a file depends on."""

    def __init__(self, source: bytes, beside: BesideModules) -> None:
        """Raises SyntaxError, ValueError or RecursionError if the source is not Python."""
        tree = ast.parse(source)
        self._statements = _loaded(tree)
        self._known = _known_names(tree)
        self._beside = beside
        self._plain: dict[str, bool] = {}
        self._names = {id(each): _names_given_by(each) for each in self._statements}
        self._used = {id(each): _names_used_by(each, self._known) for each in self._statements}
        given = {name for names in self._names.values() for name in names}
        self._rebinds = {id(each): _names_rebound_by(each) & given for each in self._statements}
        everywhere = {name for used in self._used.values() for name in used}
        self._always = [each for each in self._statements if self._may_do_anything(each, everywhere)]

    def digest(self, name: str) -> str:
        """A digest of what a function of this file depends on; empty if that cannot be told."""
        try:
            counted = self.of(name.partition(".")[0])
            modules = self._modules_of(counted)
            for module in modules:
                self._demand_plain_module(module)
        except (CannotTell, RecursionError):
            return ""
        marks = [f"{each} {modules[each]}" for each in sorted(modules)]
        known = {id(each) for each in counted}
        imports = [each for each in self._statements if isinstance(each, ImportNode) and not self._is_our_import(each)]
        others = self._modules_of([each for each in imports if id(each) not in known])
        loads = [text for each in sorted(others.keys() - modules) for text in self._imports_in(each)]
        known |= {id(each) for each in imports}
        texts = [ast.dump(_without_our_decorators(each, self._known)) for each in self._statements if id(each) in known]
        return hashlib.sha256("\n".join([name, *marks, *loads, *texts]).encode()).hexdigest()[:40]

    def of(self, name: str) -> list[ast.stmt]:
        """The statements that count for this name, in the order of the file; also all imports count, by their text."""
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
            demand_plain_sight(_without_our_decorators(each, self._known))
        return found

    def _modules_of(self, statements: list[ast.stmt]) -> dict[str, str]:
        """The modules beside the file that these statements import, and their digests."""
        found: dict[str, str] = {}
        for statement in statements:
            for node in ast.walk(statement):
                if isinstance(node, ImportNode):
                    found |= self._beside.of(node)
        return found

    def _demand_plain_module(self, module: str) -> None:
        """A module that looks into code may find things of the file that calls it."""
        tree = self._beside.tree(module)
        if tree is None:
            raise CannotTell
        demand_plain_sight(tree)

    def _imports_in(self, module: str) -> list[str]:
        """What a module imports when it is loaded."""
        tree = self._beside.tree(module)
        return [ast.dump(each) for each in tree.body if isinstance(each, ImportNode)] if tree is not None else []

    def _is_our_import(self, statement: ImportNode) -> bool:
        return self._names[id(statement)] <= self._known.ours

    def _may_change(self, statement: ast.stmt, name: str) -> bool:
        """Whether a statement may change something that others use too: a function a list while it runs, or give
        another name to it; or an attribute of anything."""
        if name in self._rebinds[id(statement)]:
            return True
        if isinstance(statement, ImportNode) or name not in self._used[id(statement)]:
            return False
        return any(name in self._names[id(each)] and _gives_changeable(each) for each in self._statements)

    def _may_do_anything(self, statement: ast.stmt, everywhere: set[str]) -> bool:
        names = self._names[id(statement)]
        if isinstance(statement, ImportNode):
            modules = self._beside.of(statement)
            if "*" in names or getattr(statement, "module", "") == "__future__":
                return True
            return bool(modules) and not (names <= everywhere and all(map(self._is_plain, modules)))
        if any(each.startswith("__") and each.endswith("__") for each in names):
            return True  # Python itself may ask for it
        return not _only_names(statement, self._known)

    def _is_plain(self, module: str) -> bool:
        """Whether loading a module beside the file only gives names to things."""
        if module not in self._plain:
            tree = self._beside.tree(module)
            self._plain[module] = tree is not None and all(
                _only_names(each, _known_names(tree)) for each in _loaded(tree)
            )
        return self._plain[module]


def _loaded(tree: ast.Module) -> list[ast.stmt]:
    """The statements that do something where the file is loaded by its name: no texts, and not what is for a script, or
    for type checkers only."""
    skipped = {"__name__ == '__main__'"}
    for each in tree.body:
        if isinstance(each, ImportNode):
            plain = {alias.name for alias in each.names if alias.asname is None}
            if isinstance(each, ast.ImportFrom) and each.module == "typing" and "TYPE_CHECKING" in plain:
                skipped.add("TYPE_CHECKING")
            elif isinstance(each, ast.Import) and "typing" in plain:
                skipped.add("typing.TYPE_CHECKING")
    others = [each for each in tree.body if getattr(each, "module", "") != "typing" and not _is_import_of_typing(each)]
    given = {name for each in others for name in _names_stored_in(each)}
    skipped = {text for text in skipped if not {"*", text.split()[0].split(".")[0]} & given}
    return [each for each in tree.body if not _does_nothing(each) and not _is_skipped(each, skipped)]


def _is_import_of_typing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and all(
        alias.asname is None and (alias.name == "typing" or "typing" not in alias.name) for alias in statement.names
    )


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _is_skipped(statement: ast.stmt, tests: set[str]) -> bool:
    return isinstance(statement, ast.If) and not statement.orelse and ast.unparse(statement.test) in tests


def _names_stored_in(statement: ast.stmt) -> set[str]:
    """The names that it gives to something, however deep: also those of its functions."""
    stored = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | _names_given_by(statement)


def _only_names(statement: ast.stmt, known: _Known) -> bool:
    """Whether all that a statement does is to give a name to something."""
    if isinstance(statement, ImportNode):
        return True
    if isinstance(statement, FunctionNode):
        return _is_plain_function(statement, known)
    if isinstance(statement, ast.ClassDef):
        if statement.decorator_list or statement.bases or statement.keywords:
            return False
        return all(_does_nothing(each) or _only_names_in_class(each, known) for each in statement.body)
    if isinstance(statement, ast.Assign):
        return all(map(_is_name, statement.targets)) and _is_plain(statement.value, known)
    if isinstance(statement, ast.AnnAssign):
        value = statement.value is None or _is_plain(statement.value, known)
        return _is_name(statement.target) and value and _is_annotation(statement.annotation)
    return False


def _only_names_in_class(statement: ast.stmt, known: _Known) -> bool:
    """In a class, things with a `__set_name__` learn of the class."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.expr) and any(isinstance(node, ast.Name) for node in ast.walk(value)):
        return False
    return _only_names(statement, known)


def _is_plain_function(function: FunctionNode, known: _Known) -> bool:
    if getattr(function, "type_params", None):
        return False
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    notes = [each.annotation for each in every if each is not None and each.annotation is not None]
    notes += [function.returns] if function.returns is not None else []
    defaults = [*given.defaults, *(each for each in given.kw_defaults if each is not None)]
    decorators = [each for each in function.decorator_list if not _is_ours(each, known)]
    plain = all(isinstance(each, ast.Name) and each.id in _PLAIN_DECORATORS for each in decorators)
    return plain and all(map(_is_annotation, notes)) and all(_is_plain(each, known) for each in defaults)


def _is_annotation(value: ast.expr) -> bool:
    """Whether it is made of names, as types are: `dict[str, int] | None`."""
    return all(isinstance(node, (*_SIMPLE, *_OPERATIONS, ast.Attribute)) for node in ast.walk(value))


def _is_plain(value: ast.expr, known: _Known) -> bool:
    """Whether evaluating it runs no code of anybody: no call, no comprehension, nothing that waits, and no operator of
    something that may have its own. What a lambda would do when it is called is another matter."""
    pending: list[ast.AST] = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda):
            pending += [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
        elif isinstance(node, ast.Attribute):
            root = _root_of(node)
            if root not in known.modules:
                return False
        elif isinstance(node, ast.Dict) and all(isinstance(each, ast.Constant) for each in node.keys):
            pending.extend(node.values)
        elif isinstance(node, _OPERATIONS):
            if any(isinstance(each, ast.expr) and not isinstance(each, _DATA) for each in ast.walk(node)):
                return False
        elif isinstance(node, _SIMPLE):
            pending.extend(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Call) and _makes_our_value(node, known):
            pending += [*node.args, *(each.value for each in node.keywords)]
        else:
            return False
    return True


def _makes_our_value(call: ast.Call, known: _Known) -> bool:
    """`Table("samples.csv")`, also as `mendflow.Table`: it is read when its rows are asked for."""
    called = call.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return name in _VALUES and _root_of(called) in known.ours


def _root_of(node: ast.expr) -> str:
    """The name that a chain of attributes and subscripts begins with; empty if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)


def _known_names(tree: ast.Module) -> _Known:
    ours: set[str] = set()
    imported: set[str] = set()
    others: set[str] = set()
    classes = {each.name for each in tree.body if isinstance(each, ast.ClassDef)}
    rebound = {
        name
        for each in tree.body
        if not isinstance(each, ImportNode)
        for name in (_names_given_by(each) | _names_rebound_by(each))
        if not (isinstance(each, ast.ClassDef) and name == each.name)
    }
    for node in tree.body:
        if isinstance(node, ImportNode):
            for alias in node.names:
                name = alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0])
                module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
                is_ours = module.split(".")[0] == OURS and not getattr(node, "level", 0)
                (ours if is_ours else others).add(name)
                imported.add(name)
    if "*" in imported:
        return _Known(set(), set())
    return _Known(ours - others - rebound - classes, (imported | classes) - rebound)


def _is_ours(decorator: ast.expr, known: _Known) -> bool:
    """Whether a decorator is one of this package: it says how a job is run, and what matters of that is in the job."""
    if isinstance(decorator, ast.Call):
        given = [*decorator.args, *(each.value for each in decorator.keywords)]
        return _is_ours(decorator.func, known) and all(_is_option(each, known) for each in given)
    return not isinstance(decorator, ast.Subscript) and _root_of(decorator) in known.ours


def _is_option(value: ast.expr, known: _Known) -> bool:
    """Whether to evaluate it does nothing to others: plain data, or something of this package."""
    if isinstance(value, ast.Call):
        return _is_ours(value, known)
    if isinstance(value, ast.Tuple | ast.List):
        return all(_is_option(each, known) for each in value.elts)
    if isinstance(value, ast.Dict):
        return all(each is None or _is_option(each, known) for each in (*value.keys, *value.values))
    return _is_plain(value, known) or _is_annotation(value)


def _without_our_decorators(statement: ast.stmt, known: _Known) -> ast.stmt:
    if not isinstance(statement, FunctionNode):
        return statement
    bare = copy.copy(statement)
    bare.decorator_list = [each for each in statement.decorator_list if not _is_ours(each, known)]
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
    """The names of the file that its functions give to something else while they run, or of whose things they set or
    remove a part (`math.floor = mine`)."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Global):
            found |= set(node.names)
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(_root_of(node))
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else _root_of(node.func)
            if called in _SETTERS:
                found.add(_root_of(node.args[0]))
    return found - {""}


def _names_used_by(statement: ast.stmt, known: _Known) -> set[str]:
    """Every name in it, also its own locals and the words of its texts: one too many only makes more count."""
    skipped: set[int] = set()
    if isinstance(statement, FunctionNode):
        decorators = [each for each in statement.decorator_list if _is_ours(each, known)]
        skipped = {id(node) for each in decorators for node in ast.walk(each)}
    found: set[str] = set()
    classes: list[str] = []
    for node in ast.walk(statement):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Global):
            found |= set(node.names)
        elif isinstance(node, ast.ClassDef):
            classes.append(node.name.lstrip("_"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            found |= names_in_text(node.value)
    private = [name for name in found if name.startswith("__") and not name.endswith("__")]
    return found | {f"_{each}{name}" for each in classes for name in private}  # as Python names them in a class


def _gives_changeable(statement: ast.stmt) -> bool:
    """Whether what it names can be changed in place, or named anew by a function (`global`)."""
    if isinstance(statement, ImportNode):
        return False
    if isinstance(statement, FunctionNode):  # a default is one thing for all calls
        defaults = [*statement.args.defaults, *statement.args.kw_defaults]
        nodes = [node for each in defaults if each is not None for node in ast.walk(each)]
        return any(isinstance(node, ast.List | ast.Dict | ast.Set | ast.Call | ast.comprehension) for node in nodes)
    if isinstance(statement, ast.ClassDef):
        return any(isinstance(each, ast.Assign | ast.AnnAssign) and _gives_changeable(each) for each in statement.body)
    value = getattr(statement, "value", None)
    return not (isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(value, ast.Constant))
