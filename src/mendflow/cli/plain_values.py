"""Speeds up typer: text options and defaults are used as they are.

Typer converts every value with a library for data models that takes longer to load than most of our commands take to
run. A text that stays a text, and an unchanged default, need no conversion; all other values go to typer."""

from typing import Any


class PlainValue:
    """Replaces typer's converter of a parameter until there is a value to convert."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        is_plain = type(value) is self._annotation and (self._annotation is str or value == param.default)
        if is_plain and not param.multiple and param.nargs == 1:
            return value
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def take_plain_values(command: Any) -> Any:
    """Apply it to the command and those inside it. Does nothing for versions of typer that convert in another way."""
    all_params = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        """The parameters of the command, and the help option, which is created at the call."""
        params: list[Any] = all_params(ctx)
        for param in params:
            described = getattr(param, "type_descriptor", None)
            if described is not None and getattr(param, "_runtime_param", "") is None and _is_turned_by_type(param):
                param._runtime_param = PlainValue(described.annotation)
        return params

    command.get_params = get_params
    for inner in getattr(command, "commands", {}).values():
        take_plain_values(inner)
    return command


def _is_turned_by_type(param: Any) -> bool:
    given = param.type_descriptor.parameter_info
    return getattr(given, "parser", None) is None and getattr(given, "click_type", None) is None
