"""What a function's annotations say of its arguments, and which classes it knows by itself."""

import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from mendflow.python_values.errors import name_of
from mendflow.python_values.records import fields_of, record_kind

PLAIN: Final = (str, int, float, bool, type(None), object, Any, inspect.Parameter.empty)
"""Annotations that say nothing that the value does not say itself."""


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations by parameter, `return` among them. One that cannot be evaluated, such as that of a class that is
    imported for type checkers alone, says nothing."""
    own = inspect.unwrap(function)
    given = getattr(own, "__annotations__", None)
    if not isinstance(given, dict):
        return {}
    return {name: _evaluated(each, own) for name, each in given.items()}


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, getattr(function, "__globals__", {}))  # noqa: S307 - a text of the function's own code
    except Exception:  # noqa: BLE001 - the text of an annotation may raise anything
        return Any


def bare(annotation: Any) -> Any:
    """The annotation without what is only said about it."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif isinstance(annotation, TypeVar):
            annotation = annotation.__bound__ or Any
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation


def says_nothing(annotation: Any) -> bool:
    return any(annotation is each for each in PLAIN) or isinstance(annotation, str)


def is_union(origin: Any) -> bool:
    return origin in (Union, types.UnionType)


class KnownClasses:
    """The records and enums that a function knows: those in its annotations, in the fields of these, and in its own
    module. Data name them, and nothing else is ever looked up."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._functions = functions
        self._known: dict[str, type] | None = None

    def find(self, name: str, kind: str) -> type | None:
        """The class of this name and kind. Its module may be called otherwise here: that of a script is `__main__`."""
        if self._known is None:
            self._known = {}
            for each in self._all():
                self._known.setdefault(name_of(each), each)
                self._known.setdefault(f"*{each.__qualname__}", each)
        found = self._known.get(name) or self._known.get(f"*{_last(name)}")
        return found if found is not None and record_kind(found) == kind else None

    def _all(self) -> Iterator[type]:
        seen: set[int] = set()
        pending: list[Any] = []
        for function in self._functions:
            pending += annotations_of(function).values()
        for function in self._functions:
            own = inspect.unwrap(function)
            pending += [each for each in getattr(own, "__globals__", {}).values() if isinstance(each, type)]
        while pending:
            each = bare(pending.pop(0))
            if id(each) in seen:
                continue
            seen.add(id(each))
            pending += get_args(each)
            if record := record_kind(each):
                yield each
                pending += [inner for inner in vars(each).values() if isinstance(inner, type)]
                if record != "enum":
                    pending += [field.annotation for field in fields_of(each, record)]


def _last(name: str) -> str:
    """The name of a class inside its module; modules are written in small letters, mostly, and this is only the second
    way to find one."""
    parts = name.split(".")
    first = next((place for place, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
    return ".".join(parts[first:])
