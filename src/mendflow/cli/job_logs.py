"""Commands that look into one job: what it printed, and what it left in its folder."""

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import msgspec
import typer

from mendflow.cli.connection import connect, run_async
from mendflow.cli.options import Data, Json, Server, ServerTarget, TokenFile, complete_from_server
from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.model.errors import NotFound, Unreachable
from mendflow.core.model.views import LogView
from mendflow.pages.formatting import plain_text
from mendflow.pilot.slot.kept_attempts import read_kept

app = typer.Typer()

FOLLOW_EVERY_S = 0.5

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="A job CASE/NUMBER, or an item CASE:ITEM; CASE may be `last`.",
        autocompletion=complete_from_server("printing"),
    ),
]
AttemptOption = Annotated[
    int,
    typer.Option("--attempt", "-a", min=0, metavar="N", help="Which attempt; default: the last.", show_default=False),
]


@app.command("logs")
def logs(
    subject: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the output until the job ends.")] = False,
    attempt: AttemptOption = 0,
    raw: Annotated[bool, typer.Option("--raw", help="Leave terminal escapes as the job printed them.")] = False,
    json: Json = False,
    server: Server = "",
    token_file: TokenFile = "",
    data: Data = "",
) -> None:
    """Show what a job printed."""

    reading = LogReading(ServerTarget(server, token_file, data), subject, attempt, follow=follow)

    async def read() -> None:
        if json:
            await _print_as_json(reading)
            return
        last, ends = None, True
        async with aclosing(reading.parts()) as parts:
            async for part in parts:
                last = part
                if part.text:
                    ends = part.text.endswith("\n")
                    if not _try_print(part.text if raw else plain_text(part.text)):
                        return
        if not ends:
            _try_print("\n")
        _tell_more(last)

    run_async(read())


async def _print_as_json(reading: "LogReading") -> None:
    """One object, printed part by part: a log may be larger than memory. Nothing is printed before the log is found."""
    lead = ""
    async with aclosing(reading.parts()) as parts:
        async for part in parts:
            if not lead:
                lead = f'{{\n  "job": {_as_json(reading.job)},\n  "log": "'
                _try_print(lead)
            if not _try_print(_as_json(part.text)[1:-1]):
                return
    _try_print('"\n}\n')


def _as_json(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _try_print(text: str) -> bool:
    """Print it; False if nobody reads on, as behind `| head`. What is left to write then goes nowhere."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


@app.command("shell")
def shell(
    subject: JobArgument,
    attempt: AttemptOption = 0,
    command: Annotated[
        str,
        typer.Option(
            "--command", "-c", metavar="COMMAND", help="Run this instead of an interactive shell.", show_default=False
        ),
    ] = "",
    server: Server = "",
    token_file: TokenFile = "",
    data: Data = "",
) -> None:
    """Open a shell in the folder of a failed attempt, with its environment."""

    async def find() -> LogView:
        async with connect(ServerTarget(server, token_file, data)) as client:
            return await client.log(await _job_id(client, subject), attempt=attempt)

    view = run_async(find())
    if not view.folder:
        state = "it still runs" if not view.over else "only those of failed attempts are, for a time"
        raise NotFound(f"the folder of attempt {view.attempt} of {view.job} is not kept: {state}")
    kept = read_kept(view.folder)
    if kept is not None and kept.number:
        say(f"{kept.job}, attempt {kept.number}, in {view.folder}: {kept.fault}", err=True)
        own = {name: os.environ[name] for name in kept.secrets if name in os.environ}
        if missing := [name for name in kept.secrets if name not in own]:
            say(f"not set here, as what may be a secret is not written down: {', '.join(missing)}", err=True)
        program = os.environ.get("SHELL", "/bin/sh")
        arguments = [program, "-c", command] if command else [program]
        os.chdir(view.folder)
        os.execvpe(program, arguments, {**kept.env, **own, **_terminal()})
    if view.host in ("", os.uname().nodename) and not os.path.exists(view.folder):
        raise NotFound(f"the folder of attempt {view.attempt} of {view.job} is no longer kept at {view.folder}")
    say(f"it is on {view.host}, at {view.folder}", err=True)
    say(shlex.join(["ssh", "-t", view.host, f"cd {shlex.quote(view.folder)} && exec $SHELL"]))


def _terminal() -> dict[str, str]:
    """What a shell must know of the terminal that it is in; the rest is the job's."""
    return {name: os.environ[name] for name in ("TERM", "COLORTERM", "SHELL") if name in os.environ}


async def _job_id(client: Client, subject: str) -> str:
    """The job that is meant: by its own id, or by its item."""
    case, colon, item = subject.partition(":")
    if not colon:
        case, _, number = subject.rpartition("/")
        return f"{(await client.case(case)).id}/{number}" if case == "last" else subject
    view = await client.item(case, item)
    if view.job is None:
        raise NotFound(f"{subject} is a {view.kind}, which prints nothing; see mendflow why {subject}")
    return str(view.job)


class LogReading:
    """A log from its beginning, part by part; while the job is followed, from attempt to attempt up to its end. The
    server that runs a single case ends with it: the rest is then read from the folder."""

    def __init__(self, target: ServerTarget, subject: str, attempt: int, *, follow: bool) -> None:
        self._target, self._subject, self._attempt, self._follow = target, subject, attempt, follow
        self._at, self._number = 0, attempt
        self.job = ""

    async def parts(self) -> AsyncGenerator[LogView, None]:
        for last_try in (False, True):
            try:
                async with connect(self._target) as client:
                    self.job = self.job or await _job_id(client, self._subject)
                    async for part in self._read(client):
                        yield part
                return
            except Unreachable:
                if self._target.server or last_try:
                    raise

    async def _read(self, client: Client) -> AsyncGenerator[LogView, None]:
        while True:
            part = await client.log(self.job, attempt=self._number, offset=self._at)
            left_out, goes_on = part.offset - self._at, self._at < part.next < part.size
            self._at, self._number = part.next, part.attempt
            yield _with_gap(part, left_out) if left_out > 0 and not part.silent else part
            if goes_on and not part.silent:
                continue
            if not self._follow or (part.over and (self._attempt or part.job_over)):
                return
            if part.over:  # perhaps it is tried again
                newest = await client.log(self.job)
                if newest.attempt != self._number:
                    self._at, self._number = 0, newest.attempt
            await asyncio.sleep(FOLLOW_EVERY_S)


def _with_gap(part: LogView, left_out: int) -> LogView:
    line = f"\n[mendflow: {left_out} bytes were left out here]\n"
    return msgspec.structs.replace(part, text=line + part.text)


def _tell_more(last: LogView | None) -> None:
    """What a person may want to know beside what was printed."""
    if last is not None and last.silent:
        say("its pilot does not answer; this is the end of the log as it told that last", err=True)
    if last is not None and last.folder:
        where = f"{last.folder} on {last.host}" if last.host else last.folder
        say(f"its folder is kept for a time: {where}; mendflow shell {last.job} opens a shell there", err=True)
