"""Options that almost every command has: `--json`, and those that select the server.

They are defined once: `with_context` adds them to a command, and passes what they say as the command's first parameter,
a `CommandContext`. In a group such as `mendflow flows`, options before the name of the inner command apply to it, too:
`mendflow flows --json list` is `mendflow flows list --json`."""

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
    """Which server to ask, and how to print the answer. `inner`: the command is a group, and an inner command of it
    runs after it. `words`: what stands behind a group's name in place of an inner command, where a group takes that, as
    the cases of `mendflow prune CASE`."""

    target: ServerTarget = ServerTarget()
    json: bool = False
    inner: bool = False
    words: tuple[str, ...] = ()

    def run(self, question: Callable[[Client], Awaitable[T]], *, changes: bool = False, begin: bool = False) -> T:
        """Connect, call `question` with the client, and return its answer. `changes`: it sets or removes something
        without naming a case, so it is refused where the data folder was only found above this one, and nobody has
        named it. `begin`: where there is no data folder yet, one is made."""
        if changes:
            refuse_to_change_above(self.target)

        async def answer() -> T:
            async with connect(self.target, begin=begin) as client:
                return await question(client)

        return run_async(answer())


_OPTIONS: Final[OptionTable] = {"json": (Json, False), **TARGET}


def with_context(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer is to see it: with its own parameters and the shared options, and without the
    `CommandContext`, which is made of these options when it is called."""

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
