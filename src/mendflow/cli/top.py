"""The live view of all servers on a store, through one of them.

Rates and latencies cover about the last minute. If the server does not answer, the view says so and retries: whoever
watches an outage wants to see its end."""

import asyncio
import os
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import connect, run_async
from mendflow.cli.interrupt import interrupts
from mendflow.cli.printing import console, print_json
from mendflow.cli.top_totals import cluster_totals
from mendflow.cli.top_view import frame
from mendflow.client import Client
from mendflow.core.model.errors import RequestError, StoreUnavailable, Unreachable
from mendflow.core.model.stats import StatsView

app = typer.Typer()

WINDOW_S = 60.0
FIRST_LOOK_S = 1.0
"""A single frame needs two samples this far apart to show rates."""

QUIT = (b"q", b"Q", b"\x03", b"\x04")
KEYS_MAX = 64
Looks = deque[tuple[float, list[StatsView]]]


@app.command("top")
@with_context
def top(
    context: CommandContext,
    once: Annotated[bool, typer.Option("--once", help="Print once and end.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", min=0.2, max=3600, metavar="SECONDS", help="How often to look for changes.")
    ] = 2.0,
    running: Annotated[
        int, typer.Option("--running", min=0, max=1000, metavar="N", help="Also list this many running jobs.")
    ] = 10,
) -> None:
    """Show all servers live: queue, running jobs, rates, latencies, repairs and alerts."""
    if context.json:
        print_json(context.run(lambda client: client.stats(running=running)))
    elif once or not (sys.stdout.isatty() and sys.stdin.isatty()):
        console().print(context.run(lambda client: _single(client, running)))
    else:
        run_async(_live(context, interval, running))


async def _single(client: Client, running: int) -> RenderableType:
    before = await client.stats()
    await asyncio.sleep(FIRST_LOOK_S)
    now = await client.stats(running=running)
    return frame(now, cluster_totals(now, before), running=running)


async def _live(context: CommandContext, interval: float, running: int) -> None:
    made = console()
    async with connect(context.target) as client:
        looks: Looks = deque()
        with interrupts() as caught, _keys(caught.event), Live(console=made, screen=True, auto_refresh=False) as live:
            while not caught.event.is_set():
                live.update(await _look(client, looks, running, made.height), refresh=True)
                try:
                    await asyncio.wait_for(caught.event.wait(), interval)
                except TimeoutError:
                    pass


async def _look(client: Client, looks: Looks, running: int, height: int) -> RenderableType:
    """The next frame; without an answer the last one, with the error."""
    trouble = ""
    try:
        now, at = await client.stats(running=min(running, max(0, height - 20))), time.monotonic()
        while looks and at - looks[0][0] > WINDOW_S:
            looks.popleft()
        looks.append((at, now))
    except (Unreachable, StoreUnavailable) as error:
        trouble = error.message
    except RequestError as error:
        if not looks:
            raise
        trouble = error.message
    if not looks:
        return Text(trouble, style="red")
    newest, oldest = looks[-1][1], looks[0][1] if len(looks) > 1 else ()
    return frame(newest, cluster_totals(newest, oldest), running=running, trouble=trouble)


@contextmanager
def _keys(quit: asyncio.Event) -> Iterator[None]:
    """Set the event when q is pressed. Reads single keys without echo."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def read() -> None:
        typed = os.read(descriptor, KEYS_MAX)
        if not typed or typed[:1] in QUIT:
            quit.set()

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
