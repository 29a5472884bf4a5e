"""Options that almost every command has: `--json`, and those that select the server.

`asks` adds them to a command whose first parameter is an `Ask`, so they are defined once. In a group, options before
the inner command's name apply to it too."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec
import typer

from mendflow.cli.connection import connect, refuse_to_change_above, run_async
from mendflow.cli.option_groups import OptionTable
from mendflow.cli.options import TARGET, Json, ServerTarget
from mendflow.client import Client

T = TypeVar("T")


class CommandContext(msgspec.Struct, frozen=True):
    """Which server to ask, how to print the answer, and whether an inner command of the same group follows. `words`
    are those after a group's name that are no command of it, where the group takes such."""

    target: ServerTarget = ServerTarget()
    json: bool = False
    inner: bool = False
    words: tuple[str, ...] = ()

    def run(self, question: Callable[[Client], Awaitable[T]], *, changes: bool = False, begin: bool = False) -> T:
        """Run a request. `changes`: it sets or removes something without naming a case, and so needs a data folder
        that is here or was named. `begin`: it may create the data folder."""
        if changes:
            refuse_to_change_above(self.target)

        async def answer() -> T:
            async with connect(self.target, begin=begin) as client:
                return await question(client)

        return run_async(answer())


_OPTIONS: Final[OptionTable] = {"json": (Json, False), **TARGET}


def with_context(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with the options that make its `Ask`."""

    @functools.wraps(command)
    def run_with_context(
        ctx: typer.Context, *, json: bool, server: str, token_file: str, data: str, **words: Any
    ) -> None:
        before = ctx.obj if isinstance(ctx.obj, CommandContext) else CommandContext()
        known = before.target
        target = ServerTarget(server or known.server, token_file or known.token_file, data or known.data)
        inner = ctx.invoked_subcommand is not None
        ctx.obj = CommandContext(target, json or before.json, inner=inner, words=() if inner else tuple(ctx.args))
        command(ctx.obj, **words)

    command_parameters = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared_parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    command_parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in command_parameters]
    parameters = [context, *command_parameters, *shared_parameters]
    run_with_context.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect looks for
    run_with_context.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run_with_context
