"""Whether a piece of Python finds things by writing their names, so that one sees by reading it what it uses.

What reads names from data, looks at frames, at source or at texts in it, or loads objects that name their classes, may
reach anything in its file. The lists are long on purpose: whoever is on one without need has its job run once more, and
whoever is missing gives a wrong result quietly."""

import ast
import unicodedata
from typing import Final

from mendflow.lazy import lazy_pattern

ImportNode = ast.Import | ast.ImportFrom

READS_NAMES: Final = frozenset(
    {"globals", "locals", "vars", "dir", "help", "eval", "exec", "compile", "breakpoint", "__import__", "__file__"}
    | {"__loader__", "__spec__", "__builtins__", "__dict__", "__globals__", "__code__", "__doc__", "__annotations__"}
    | {"__annotate__", "__subclasses__", "__getattribute__", "__traceback__", "__package__", "__cached__", "__path__"}
    | {"f_globals", "f_locals", "f_back", "f_code", "f_lineno", "tb_frame", "tb_lineno", "gi_frame", "cr_frame"}
    | {"ag_frame", "gi_code", "cr_code", "ag_code", "co_firstlineno", "register_globals", "read_pickle", "unsafe_load"}
    | {"unsafe_load_all", "full_load", "full_load_all", "with_traceback", "print_exc", "format_exc", "findCaller"}
)
"""Whoever uses these may reach any name of the file by its text, or the file itself and its texts and lines."""

LOOKS_INTO_CODE: Final = frozenset(
    {"__main__", "_pickle", "ast", "bdb", "cloudpickle", "code", "codeop", "copyreg", "dill", "dis", "diskcache"}
    | {"docopt", "doctest", "duckdb", "executing", "faulthandler", "fire", "formulaic", "gc", "hickle", "hydra"}
    | {"icecream", "imp", "importlib", "importlib_metadata", "inspect", "joblib", "jsonpickle", "klepto"}
    | {"linecache", "marshal", "modulefinder", "numexpr", "pandasql", "patsy", "pdb", "pickle", "pickle5"}
    | {"pkg_resources", "pkgutil", "plac", "ply", "pyclbr", "pydoc", "pytest", "runpy", "shelve", "sly"}
    | {"stack_data", "statsmodels", "stevedore", "symtable", "tokenize", "trace", "traceback", "tracemalloc"}
    | {"types", "unittest", "varname", "zipimport"}
)
"""Modules that find functions and classes by their names, or look at their source, or at the names of their caller."""

_OF_SYS: Final = frozenset(
    {"modules", "_getframe", "_getframemodulename", "_current_frames", "settrace", "setprofile", "meta_path"}
    | {"path_hooks", "executable", "orig_argv", "exc_info", "last_traceback", "monitoring"}
)
_HIDDEN_IN_TEXT: Final = frozenset(each for each in READS_NAMES if each.startswith(("__", "f_", "tb_")))
"""In a text, as in `"{0.__globals__}".format(x)`."""

_NAMED_BY_TEXT: Final = frozenset({"getattr", "hasattr", "attrgetter", "methodcaller"})
_ASKS_IN_TEXT: Final = frozenset({"query", "sql", "evaluate"})
"""Of pandas, Polars, DuckDB and others: what they are given may name variables of the caller."""

_LOADS: Final = frozenset({"load", "loads", "load_all"})
_LOADS_DATA: Final = frozenset(
    {"json", "orjson", "ujson", "simplejson", "tomllib", "tomli", "toml", "msgpack", "np", "numpy"}
)
"""Modules of which `load` makes plain data, no objects of classes that the data names."""

_WORD: Final = lazy_pattern(r"\w+")
_RUNS_PYTHON: Final = lazy_pattern(r"\.py|\bpython|(?:^|\s)-m(?:\s|$)")


class CannotTell(Exception):
    """What the function uses cannot be told: its whole file counts."""


def names_in_text(text: str | bytes) -> set[str]:
    """All that may be a name in a text, in the form that Python gives to names."""
    words = text if isinstance(text, str) else text.decode("latin-1")
    return set(_WORD.findall(words if words.isascii() else f"{words} {unicodedata.normalize('NFKC', words)}"))


def demand_plain_sight(code: ast.AST) -> None:
    """Raise `CannotTell` for what may find things of the file in another way than by writing their names."""
    direct: set[int] = set()  # functions that are called with texts that stand there, and texts that are not used
    for node in ast.walk(code):
        if isinstance(node, ast.Call):
            direct |= {id(node.func)} if _is_called_openly(node) else set()
            if any(each.arg in ("allow_pickle", "register_globals") for each in node.keywords):
                raise CannotTell
        elif isinstance(node, ast.Name | ast.Attribute):
            _demand_plain_name(node, called_openly=id(node) in direct)
        elif isinstance(node, ImportNode):
            _demand_plain_import(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            direct.add(id(node.value))  # a text that is only there for readers
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in direct:
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if _RUNS_PYTHON.search(text) or names_in_text(text) & _HIDDEN_IN_TEXT:
                raise CannotTell


def _demand_plain_name(node: ast.Name | ast.Attribute, *, called_openly: bool) -> None:
    name = node.id if isinstance(node, ast.Name) else node.attr
    if name in READS_NAMES or (isinstance(node, ast.Attribute) and name in _OF_SYS):
        raise CannotTell
    of = node.value if isinstance(node, ast.Attribute) else None
    if of is not None and name in _LOADS and not (isinstance(of, ast.Name) and of.id in _LOADS_DATA):
        raise CannotTell
    asks = name in _NAMED_BY_TEXT or (of is not None and name in _ASKS_IN_TEXT)
    if asks and not called_openly:
        raise CannotTell


def _is_called_openly(call: ast.Call) -> bool:
    """Whether the names that a call looks up stand there: `getattr(x, "name")`, `df.query("x > @LIMIT")`."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name in ("getattr", "hasattr"):
        asked = call.args[1:2]
    elif name == "methodcaller" or name in _ASKS_IN_TEXT:
        asked = call.args[:1]
    else:
        asked = call.args
    texts = [each.value for each in asked if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    found = {word for text in texts for word in names_in_text(text)}
    return bool(asked) and len(texts) == len(asked) and not found & (READS_NAMES | _OF_SYS | _NAMED_BY_TEXT)


def _demand_plain_import(node: ImportNode) -> None:
    names = {alias.name for alias in node.names}
    modules = names if isinstance(node, ast.Import) or not node.module else {node.module}
    if {part for module in modules for part in module.split(".")} & LOOKS_INTO_CODE:
        raise CannotTell
    hidden = (
        READS_NAMES | _OF_SYS | _NAMED_BY_TEXT | _ASKS_IN_TEXT | (frozenset() if modules <= _LOADS_DATA else _LOADS)
    )
    if isinstance(node, ast.ImportFrom) and names & hidden:
        raise CannotTell
