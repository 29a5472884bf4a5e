"""Commands that look into one job: what it printed, and what it left in its folder."""

import os
import shlex
import sys
from contextlib import aclosing
from typing import Annotated

import msgspec
import typer

from mendflow.cli.case_references import FORMS, job_id
from mendflow.cli.connection import connect, run_async
from mendflow.cli.log_reading import LogReading
from mendflow.cli.options import USUAL_TARGET, Json, ServerTarget, complete_from_server, with_target
from mendflow.cli.printing import json_text, say
from mendflow.core.model.errors import NotFound
from mendflow.core.model.views import LogView
from mendflow.pages.formatting import plain_text
from mendflow.pilot.slot.kept_attempts import read_kept

app = typer.Typer()

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help=f"A job or an item: {FORMS}.",
        autocompletion=complete_from_server("printing"),
    ),
]
AttemptOption = Annotated[
    int,
    typer.Option("--attempt", "-a", min=0, metavar="N", help="Which attempt; default: the last.", show_default=False),
]


@app.command("logs")
@with_target
def logs(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="JOB",
            help=f"A job or an item, {FORMS}; or a loop, or a whole case: all jobs in it.",
            autocompletion=complete_from_server("printing"),
        ),
    ] = "last",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the output until the job ends.")] = False,
    attempt: Annotated[
        int,
        typer.Option("--attempt", "-a", min=0, metavar="N", help="Which attempt; default: all.", show_default=False),
    ] = 0,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print what the job printed, with its terminal escapes and progress bars.")
    ] = False,
    json: Json = False,
    target: ServerTarget = USUAL_TARGET,
) -> None:
    """Show what a job printed."""

    reading = LogReading(target, subject, attempt, follow=follow, last_only=json)
    run_async(_print_as_json(reading) if json else _print_sections(reading, exact=raw or not sys.stdout.isatty()))


async def _print_sections(reading: LogReading, *, exact: bool) -> None:
    """Print the logs, each under a line that says whose it is if there are several. `exact`: byte by byte, as a file or
    another program wants it; on a terminal escapes are left out, and lines that were written over."""
    last, section, ends = None, None, True
    async with aclosing(reading.parts()) as parts:
        async for part in parts:
            if section is not reading.section or (last is not None and last.attempt not in (0, part.attempt)):
                head = _head(reading, is_first=section is None, attempt=part.attempt if last is not None else 0)
                section = reading.section
                if not _try_print(head if ends else f"\n{head}"):
                    return
            last = part
            if part.text:
                ends = part.text.endswith("\n")
                if not (_try_write(part.data or part.text.encode()) if exact else _try_print(plain_text(part.text))):
                    return
    if not ends and not exact:
        _try_print("\n")
    _tell_more(last)


def _head(reading: LogReading, *, is_first: bool, attempt: int) -> str:
    """The line before a log; while one job is followed, before each attempt after the first."""
    assert reading.section is not None, "a part is of a section"
    if not reading.is_of_several:
        if reading.section.made_by:
            say(reading.section.title, err=True)
        return f"\n==> attempt {attempt} <==\n" if attempt else ""
    return f"{'' if is_first else chr(10)}==> {plain_text(reading.section.title)} <==\n"


async def _print_as_json(reading: LogReading) -> None:
    """One object, or a list of them if there are several jobs, printed part by part: a log may be larger than memory.
    Nothing is printed before the log is found."""
    section, is_begun = None, False
    async with aclosing(reading.parts()) as parts:
        async for part in parts:
            if not is_begun or section is not reading.section:
                before = '"\n},\n' if is_begun else "[\n" if reading.is_of_several else ""
                section, is_begun = reading.section, True
                job = section.job if section is not None else part.job
                _try_print(f'{before}{{\n  "job": {_as_json(job)},\n  "log": "')
            if not _try_print(_as_json(part.text)[1:-1]):
                return
    _try_print('"\n}\n]\n' if reading.is_of_several else '"\n}\n')


def _as_json(text: str) -> str:
    return json_text(msgspec.json.encode(text).decode())


def _try_print(text: str) -> bool:
    return _try_write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))


def _try_write(data: bytes) -> bool:
    """Print it; False if nobody reads on, as behind `| head`. What is left to write then goes nowhere."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


@app.command("shell")
@with_target
def shell(
    subject: JobArgument,
    attempt: AttemptOption = 0,
    command: Annotated[
        str,
        typer.Option(
            "--command", "-c", metavar="COMMAND", help="Run this instead of an interactive shell.", show_default=False
        ),
    ] = "",
    target: ServerTarget = USUAL_TARGET,
) -> None:
    """Open a shell in the folder of a failed attempt, with its environment."""

    async def find() -> LogView:
        async with connect(target) as client:
            return await client.log(await job_id(client, subject), attempt=attempt)

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
        _enter(view.folder)
        os.execvpe(program, arguments, {**kept.env, **own, **_terminal()})
    if view.host in ("", os.uname().nodename) and not os.path.exists(view.folder):
        raise NotFound(f"the folder of attempt {view.attempt} of {view.job} is no longer kept at {view.folder}")
    say(f"it is on {view.host}, at {view.folder}", err=True)
    say(shlex.join(["ssh", "-t", view.host, f"cd {shlex.quote(view.folder)} && exec $SHELL"]))


def _enter(folder: str) -> None:
    """Make the kept folder the present one, and nothing that was put in its place since: a job that still runs, or one
    of another, might lead a person elsewhere."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        reason = "a link is in its place" if os.path.islink(folder) else error.strerror
        raise NotFound(f"the folder {folder} is not the one that was kept: {reason}; look at it yourself") from error
    os.fchdir(descriptor)


def _terminal() -> dict[str, str]:
    """What a shell must know of the terminal that it is in; the rest is the job's."""
    return {name: os.environ[name] for name in ("TERM", "COLORTERM", "SHELL") if name in os.environ}


def _tell_more(last: LogView | None) -> None:
    """What a person may want to know beside what was printed."""
    if last is not None and last.silent:
        say("its pilot does not answer; this is the end of the log as it told that last", err=True)
    if last is not None and last.note:
        say(last.note, err=True)
    if last is not None and last.folder:
        where = f"{last.folder} on {last.host}" if last.host else last.folder
        say(f"its folder is kept for a time: {where}; mendflow shell {last.job} opens a shell there", err=True)
