"""What almost every command has: `--json`, and the options that say whom to ask.

A command that takes an `Ask` as its first parameter is given them by `asks`, so that they are written once. In a group,
what is said before the inner command's name holds for it too."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import typer

from mendflow.cli.link import connected, waited
from mendflow.cli.options import Data, Json, Server, Target, TokenFile
from mendflow.client import Client

T = TypeVar("T")


class Ask(msgspec.Struct, frozen=True):
    """Whom to ask, how to tell the answer, and whether this is for a command after it in the same group."""

    target: Target = Target()
    json: bool = False
    inner: bool = False

    def of(self, question: Callable[[Client], Awaitable[T]], *, begin: bool = False) -> T:
        """The answer to a question. `begin`: it is one that may be the first that a data folder is asked."""

        async def answer() -> T:
            async with connected(self.target, begin=begin) as client:
                return await question(client)

        return waited(answer())


_OPTIONS: dict[str, tuple[Any, Any]] = {
    "json": (Json, False),
    "server": (Server, ""),
    "token_file": (TokenFile, ""),
    "data": (Data, ""),
}


def asks(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with the options that make its `Ask`."""

    @functools.wraps(command)
    def asked(ctx: typer.Context, *, json: bool, server: str, token_file: str, data: str, **words: Any) -> None:
        before = ctx.obj if isinstance(ctx.obj, Ask) else Ask()
        known = before.target
        target = Target(server or known.server, token_file or known.token_file, data or known.data)
        ctx.obj = Ask(target, json or before.json, inner=ctx.invoked_subcommand is not None)
        command(ctx.obj, **words)

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    given = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    parameters = [context, *own, *given]
    asked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect looks for
    asked.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return asked
