"""Modules whose text shows that they only define: nothing in them can change the data that stand in them before a
function is called.

They consist of imports of Python's own modules and of mendflow, of functions without decorators other than mendflow's,
of assignments in which nothing is called, and of what is done only when the file is run as a program."""

import ast
import sys
from itertools import chain
from typing import Final

_OWN_PACKAGE: Final = "mendflow"
_AS_PROGRAM: Final = "__name__ == '__main__'"


def only_defines(tree: ast.Module) -> bool:
    own = {
        alias.asname or alias.name
        for each in tree.body
        if isinstance(each, ast.ImportFrom) and each.module == _OWN_PACKAGE and not each.level
        for alias in each.names
    }
    others = {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return all(_is_definition(each, own - others) for each in tree.body)


def does_something(node: ast.AST) -> bool:
    """Whether more may happen there than that a value is made: something is called, or a name gets another meaning."""
    return any(isinstance(each, ast.Call | ast.Await | ast.NamedExpr) for each in ast.walk(node))


def arguments_of(given: ast.arguments) -> list[ast.arg]:
    others = [each for each in (given.vararg, given.kwarg) if each is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *others]


def _is_definition(statement: ast.stmt, decorators: set[str]) -> bool:
    match statement:
        case ast.Import(names=names):
            return all(_is_known(alias.name) for alias in names)
        case ast.ImportFrom(module=str(module), level=0):
            return _is_known(module)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return _is_plain_function(statement, decorators)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name not in decorators and not does_something(value)
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name not in decorators and not does_something(statement)
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return True
        case ast.If(test=test, orelse=[]):
            return ast.unparse(test) == _AS_PROGRAM
    return False


def _is_known(module: str) -> bool:
    """Whether it is a module that does not reach for what imports it."""
    first = module.partition(".")[0]
    return first == _OWN_PACKAGE or first in sys.stdlib_module_names


def _is_plain_function(function: ast.FunctionDef | ast.AsyncFunctionDef, decorators: set[str]) -> bool:
    said: list[ast.AST] = [function.args, *filter(None, [function.returns])]
    for decorator in function.decorator_list:
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        if not isinstance(name, ast.Name) or name.id not in decorators:
            return False
        if isinstance(decorator, ast.Call):
            said += chain(decorator.args, decorator.keywords)
    return not any(map(does_something, said))
