"""Parameters of commands without typer's coercion, where a value has the right type already.

Typer coerces every value by a library for data models, which takes longer to load than most of our commands take to
run. A text for a parameter of type str, and a default that was not changed, need no coercion; every other value is
coerced by typer."""

from collections.abc import Callable
from typing import Any


def skip_needless_coercion(command: Any) -> Any:
    """The command, and those inside it, with parameters that coerce only what needs it."""
    all_params = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        """Those of the command and the help option, which is made when the command is called."""
        params: list[Any] = all_params(ctx)
        for param in params:
            if "process_value" not in vars(param) and (annotation := _annotation(param)) is not None:
                param.process_value = _process_value(param, annotation, param.process_value)
        return params

    command.get_params = get_params
    for inner in getattr(command, "commands", {}).values():
        skip_needless_coercion(inner)
    return command


def _process_value(param: Any, annotation: Any, coerce: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def process_value(ctx: Any, value: Any) -> Any:
        takes_many = param.multiple or param.nargs != 1
        if value is None and not param.required:
            value = () if param.multiple or param.nargs == -1 else None
        elif takes_many or type(value) is not annotation or not (annotation is str or value == param.default):
            return coerce(ctx, value)
        return value if param.callback is None else param.callback(ctx, param, value)

    return process_value


def _annotation(param: Any) -> Any:
    """The type that typer would coerce to; None if the parameter has a parser of its own, or if typer does not say.
    Then its values are left to typer, and tests/cli/test_coercion.py fails."""
    described = getattr(param, "type_descriptor", None)
    if described is None:
        return None
    info = described.parameter_info
    has_parser = getattr(info, "parser", None) is not None or getattr(info, "click_type", None) is not None
    return None if has_parser else described.annotation
