"""Functions whose text shows that they can neither read nor leave anything: plain computation on their arguments.

Such a function needs no process of its own. It may use its arguments, local names, constants, and short lists of
builtins, of methods of plain data and of functions of a few modules; and the constants and such functions of its file.
No file, no other module, no attribute. It is made from these texts alone, so its module is not executed either.
Whatever is not on the lists makes it an ordinary function.

A list, a dict or a set that stands in the file is made anew for each call, with the functions that use it: what a call
puts there is not there for the next. That holds where nothing in the file can have changed it before the call."""

import ast
import builtins
import hashlib
import importlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, Final

from mendflow.core.model.values import Value
from mendflow.pilot.slot.messages import FunctionCall
from mendflow.pilot.worker.defining_modules import arguments_of, does_something, only_defines
from mendflow.pilot.worker.folder_modules import FileState, state_of
from mendflow.pilot.worker.module_sources import source_file
from mendflow.pilot.worker.recorded_lookups import unrecorded_stat

FunctionMaker = Callable[[], Callable[..., Value]]
"""Makes a function for one call."""

SOURCE_BYTES_MAX: Final = 1 << 20
KNOWN_MAX: Final = 1000

_BUILTINS: Final = frozenset(
    (
        *("abs", "all", "any", "bool", "bytes", "chr", "dict", "divmod", "enumerate", "filter", "float"),
        *("frozenset", "int", "isinstance", "len", "list", "map", "max", "min", "ord", "pow", "print", "range"),
        *("repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip"),
        *("ArithmeticError", "AssertionError", "Exception", "IndexError", "KeyError", "LookupError"),
        *("OverflowError", "RuntimeError", "TypeError", "ValueError", "ZeroDivisionError"),
    )
)
_METHODS: Final = frozenset(
    (
        *("add", "append", "capitalize", "casefold", "copy", "count", "difference", "discard", "endswith"),
        *("extend", "find", "get", "index", "insert", "intersection", "isalnum", "isalpha", "isdigit"),
        *("isspace", "issubset", "issuperset", "items", "join", "keys", "lower", "lstrip", "partition", "pop"),
        *("remove", "replace", "reverse", "rfind", "rpartition", "rsplit", "rstrip", "setdefault", "sort"),
        *("split", "splitlines", "startswith", "strip", "swapcase", "title", "union", "update", "upper"),
        *("values", "zfill"),
    )
)
_MODULES: Final = {
    "math": frozenset(name for name in dir(math) if not name.startswith("_")),
    "json": frozenset({"dumps", "loads"}),
    "time": frozenset({"monotonic", "perf_counter", "sleep", "time"}),
}
"""Functions of modules that keep nothing."""

_STATEMENTS: Final = (
    *(ast.Return, ast.Assign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Expr),
    *(ast.Pass, ast.Break, ast.Continue, ast.Raise, ast.Assert, ast.Try, ast.ExceptHandler),
)
_EXPRESSIONS: Final = (
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Dict, ast.Set, ast.List, ast.Tuple, ast.ListComp),
    *(ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Compare, ast.Constant, ast.Subscript, ast.Slice, ast.Starred),
    *(ast.JoinedStr, ast.FormattedValue, ast.NamedExpr),
    *(ast.comprehension, ast.keyword, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)


class StatelessFunctions:
    """Those that this process knows, by their source; None where a function is an ordinary one."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str, str | FileState], FunctionMaker | None] = {}

    def find(self, call: FunctionCall) -> Callable[..., Value] | None:
        """The function of a call. One without a digest may be edited at any time: its file is looked at again."""
        if "." in call.name or not call.folder:
            return None
        key = (call.folder, call.module, call.name, call.sha256 or _state_of(call))
        if key not in self._known:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[key] = _read(call)
        make = self._known[key]
        return None if make is None else make()


def _state_of(call: FunctionCall) -> FileState:
    """The state of the file that `source_file` finds, which most often is this one."""
    try:
        status = unrecorded_stat(f"{call.folder}/{call.module.replace('.', '/')}.py")
    except OSError:
        return state_of(source_file(call.folder, call.module))
    return status.st_ino, status.st_size, status.st_ctime_ns


def _read(call: FunctionCall) -> FunctionMaker | None:
    path = source_file(call.folder, call.module)
    try:
        if not path or os.path.getsize(path) > SOURCE_BYTES_MAX:
            return None
        with open(path, "rb") as file:
            source = file.read()
    except OSError:
        return None
    if call.sha256 and hashlib.sha256(source).hexdigest() != call.sha256:
        return None
    return stateless_function(source, call.name, path, call.module)


def stateless_function(source: bytes, name: str, path: str = "", module: str = "") -> FunctionMaker | None:
    """What makes the function of this name, for one call, if it is the only thing of that name and stateless; None
    otherwise."""
    try:
        text = _ModuleText(ast.parse(source, path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not text.takes(name) or not text.takes_plain_data(name):
        return None
    space: dict[str, Any] = {"__builtins__": {each: getattr(builtins, each) for each in _BUILTINS}}
    space |= {"__name__": module or name, **text.constants}
    space |= {each: importlib.import_module(each) for each in text.modules}
    data = [text.data[each] for each in sorted(text.taken_data)]
    parts: list[ast.stmt] = [*data, *(_bare(each) for each in text.taken.values())]
    made = compile(ast.Module(parts, []), path or name, "exec", dont_inherit=True)
    if data:
        return lambda: _executed(made, dict(space), name)
    function = _executed(made, space, name)
    return lambda: function


def _executed(made: CodeType, space: dict[str, Any], name: str) -> Callable[..., Value]:
    exec(made, space)  # noqa: S102 - definitions and nothing else: of the function, which was to be run anyway
    function: Callable[..., Value] = space[name]
    return function


def _bare(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function without what is only said about it."""
    function.decorator_list, function.returns = [], None
    for argument in arguments_of(function.args):
        argument.annotation = None
    return function


class _ModuleText:
    """What the text of a module says: its functions, its constants, the lists and the like that stand in it, and the
    modules that it imports, each if it is the only thing of that name. `taken` are the functions that were found to be
    stateless, `taken_data` the names of the data that they use."""

    def __init__(self, tree: ast.Module) -> None:
        names = Counter(_bound_names(tree))
        self._bound = frozenset(names)
        self._tree = tree
        self._functions = {
            each.name: each for each in tree.body if isinstance(each, ast.FunctionDef) and names[each.name] == 1
        }
        self.constants = {
            target.id: value
            for each in tree.body
            if isinstance(each, ast.Assign) and len(each.targets) == 1
            if isinstance(target := each.targets[0], ast.Name) and names[target.id] == 1
            if (value := _constant(each.value)) is not None
        }
        self.modules = {
            alias.name
            for each in tree.body
            if isinstance(each, ast.Import)
            for alias in each.names
            if alias.asname is None and alias.name in _MODULES and names[alias.name] == 1
        }
        self.data = {
            target.id: each
            for each in (tree.body if only_defines(tree) else ())
            if isinstance(each, ast.Assign) and len(each.targets) == 1
            if isinstance(target := each.targets[0], ast.Name) and names[target.id] == 1
            if target.id not in self.constants and _is_literal(each.value)
        }
        self.taken: dict[str, ast.FunctionDef] = {}
        self.taken_data: set[str] = set()

    def takes(self, name: str) -> bool:
        """Whether the function of this name, and those that it calls, are stateless."""
        function = self._functions.get(name)
        if name in self.taken or function is None or "*" in self._bound:
            return name in self.taken
        is_job = all(_is_job_decorator(each, self._tree, self._bound) for each in function.decorator_list)
        given = function.args
        if not is_job or not all(map(_is_constant, (*given.defaults, *filter(None, given.kw_defaults)))):
            return False
        self.taken[name] = function
        nodes = [inner for statement in function.body for inner in ast.walk(statement)]
        return self._has_allowed_names(function, nodes) and all(map(self._is_allowed, nodes))

    def takes_plain_data(self, name: str) -> bool:
        """Whether the annotations of a taken function ask for nothing but plain data: others change its arguments."""
        given = (argument.annotation for argument in arguments_of(self.taken[name].args))
        return all(each is None or _is_plain_annotation(each, self._bound) for each in given)

    def _has_allowed_names(self, function: ast.FunctionDef, nodes: list[ast.AST]) -> bool:
        local = {argument.arg for argument in arguments_of(function.args)}
        local |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        local |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
        local |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        known = local | (_BUILTINS - self._bound) | self.constants.keys() | self.data.keys()
        self.taken_data |= {node.id for node in nodes if isinstance(node, ast.Name) and node.id in self.data} - local
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        members = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and self._is_member(node, local)}
        for node in nodes:
            if isinstance(node, ast.Name) and node.id not in known and id(node) not in members:
                helper = self._functions.get(node.id)
                if id(node) not in called or helper is None or helper.decorator_list or not self.takes(node.id):
                    return False
            is_method = isinstance(node, ast.Attribute) and id(node.value) not in members
            if is_method and (id(node) not in called or getattr(node, "attr", "") not in _METHODS):
                return False
        return True

    def _is_member(self, node: ast.Attribute, local: set[str]) -> bool:
        """Whether it is a function of a module that keeps nothing."""
        if not isinstance(node.value, ast.Name) or node.value.id in local:
            return False
        return node.value.id in self.modules and node.attr in _MODULES[node.value.id]

    def _is_allowed(self, node: ast.AST) -> bool:
        return isinstance(node, (*_STATEMENTS, *_EXPRESSIONS, ast.Name, ast.Attribute, ast.Call))


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """Every name that is given a meaning anywhere outside of functions' bodies, as often as it is."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
                yield from (each for inner in ast.walk(node) if isinstance(inner, ast.Global) for each in inner.names)
                continue
            case ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield (other or name).partition(".")[0]
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.Call(func=ast.Name(id="globals" | "exec" | "vars" | "locals" | "setattr")):
                yield "*"
        todo += ast.iter_child_nodes(node)


def _is_literal(node: ast.expr) -> bool:
    """Whether it is data as it stands: a list, a dict or a set, with more of them inside or not."""
    if does_something(node):
        return False
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _is_plain_annotation(node: ast.expr, bound: frozenset[str]) -> bool:
    match node:
        case ast.Name(id="int" | "str" | "float" | "bool" | "list" | "dict" | "object" as name):
            return name not in bound
        case ast.Name(id="Any") | ast.Constant(value=None):
            return True
        case ast.Subscript(value=ast.Name(id="list" | "dict"), slice=ast.Tuple(elts=parts)):
            return _is_plain_annotation(node.value, bound) and all(_is_plain_annotation(each, bound) for each in parts)
        case ast.Subscript(value=ast.Name(id="list")):
            return _is_plain_annotation(node.value, bound) and _is_plain_annotation(node.slice, bound)
        case ast.BinOp(op=ast.BitOr()):
            return _is_plain_annotation(node.left, bound) and _is_plain_annotation(node.right, bound)
    return False


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _constant(node: ast.expr) -> Value | tuple[Any, ...]:
    """A number, a text, or a tuple of such; None for all else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    parts = value if isinstance(value, tuple) else (value,)
    is_plain = all(isinstance(part, str | bytes | int | float) for part in parts)
    return value if is_plain else None


def _is_job_decorator(node: ast.expr, tree: ast.Module, bound: frozenset[str]) -> bool:
    """Whether it is mendflow's `@job`, which changes nothing of the function itself."""
    name = node.func if isinstance(node, ast.Call) else node
    if not isinstance(name, ast.Name) or name.id not in bound:
        return False
    taken = [
        each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == "mendflow" and not each.level
    ]
    return any(alias.name == "job" and (alias.asname or "job") == name.id for each in taken for alias in each.names)
