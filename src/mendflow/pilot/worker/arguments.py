"""The arguments of a call as its function wants them: values of Python for what stands for them in plain data."""

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_origin

from mendflow.core.model.values import Value
from mendflow.python_values.annotations import KnownClasses, annotations_of, bare, says_nothing
from mendflow.python_values.contents import ContentReader
from mendflow.python_values.decoding import PythonDecoder
from mendflow.python_values.errors import BadPythonValue
from mendflow.python_values.tags import has_tags


class BadArgument(Exception):
    """An argument cannot be what the function wants."""


def python_arguments(
    function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value], reader: ContentReader, name: str
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as values of Python. `name` is what the function is called. Raises `BadArgument`."""
    annotations = annotations_of(function)
    if all(is_plain(each) for key, each in annotations.items() if key != "return") and not has_tags([args, kwargs]):
        return args, kwargs
    decoder = PythonDecoder(reader, KnownClasses(function))
    parameters = _parameters(function)
    positions = [
        each for each in parameters.values() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    rest = next((each for each in parameters.values() if each.kind is each.VAR_POSITIONAL), None)
    others = next((each for each in parameters.values() if each.kind is each.VAR_KEYWORD), None)

    def read(value: Value, parameter: inspect.Parameter | None, what: str) -> Any:
        annotation = annotations.get(parameter.name, Any) if parameter is not None else Any
        try:
            return decoder.decode(value, annotation)
        except BadPythonValue as error:
            raise BadArgument(f"the argument {what} of {name} cannot be given: {error}") from None

    named = [positions[place] if place < len(positions) else rest for place in range(len(args))]
    return (
        [
            read(value, parameter, f"`{parameter.name}`" if parameter is not None else str(place))
            for place, (value, parameter) in enumerate(zip(args, named, strict=True), 1)
        ],
        {key: read(value, parameters.get(key, others), f"`{key}`") for key, value in kwargs.items()},
    )


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(inspect.unwrap(function)).parameters)
    except (ValueError, TypeError):
        return {}  # some of Python's own do not say it


def is_plain(annotation: Any) -> bool:
    """Whether plain data are already what the annotation asks for."""
    wanted = bare(annotation)
    if says_nothing(wanted) or wanted is list or wanted is dict:
        return True
    origin, parts = get_origin(wanted), get_args(wanted)
    return (origin is list and is_plain(parts[0])) or (origin is dict and parts[0] is str and is_plain(parts[1]))
