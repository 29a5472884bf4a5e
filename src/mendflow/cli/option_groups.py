"""Options that several commands have: listed once, and given to each command as one value."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

OptionTable = Mapping[str, tuple[Any, Any]]
"""By the name of the parameter: its annotation, and what holds if it is not given."""

Command = Callable[..., None]


def options_as(parameter: str, options: OptionTable, build: Callable[..., Any]) -> Callable[[Command], Command]:
    """Let a command have these options in place of this parameter, which gets what is built of them."""

    def with_options(command: Command) -> Command:
        @functools.wraps(command)
        def run_with_options(*given: Any, **words: Any) -> None:
            built = build(**{name: words.pop(name, default) for name, (_, default) in options.items()})
            command(*given, **{parameter: built}, **words)

        parameters: list[inspect.Parameter] = []
        for each in inspect.signature(command, eval_str=True).parameters.values():
            parameters += _parameters(options) if each.name == parameter else [each]
        keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        run_with_options.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]  # what inspect reads
        run_with_options.__annotations__ = {each.name: each.annotation for each in keyword}
        return run_with_options

    return with_options


def _parameters(options: OptionTable) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
    ]
