"""Ctrl-C while a case runs: ask what to do, and never lose the case.

The signal only sets an event; the code that started the server and the pilots asks the question, and stops them in
order. A second Ctrl-C means stop. SIGTERM, and Ctrl-C without a terminal, stop at once."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from mendflow.cli.printing import say

QUESTION = "Interrupted. [s]top and resume later, [d]etach and continue in the background, or [g]o on here? "


class InterruptChoice(Enum):
    STOP = "s"
    DETACH = "d"
    CONTINUE = "g"


class Interrupts:
    """`event` is set by each signal; the reader clears it."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.must_stop = False

    def _on_signal(self, number: int) -> None:
        self.must_stop = self.must_stop or number == signal.SIGTERM
        self.event.set()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Turn signals into an event while the block runs."""
    loop, caught = asyncio.get_running_loop(), Interrupts()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, caught._on_signal, number)
    try:
        yield caught
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def ask_choice(caught: Interrupts) -> InterruptChoice:
    """Ask the person at the terminal."""
    caught.event.clear()
    if caught.must_stop or not sys.stdin.isatty() or not sys.stderr.isatty():
        return InterruptChoice.STOP
    while True:
        say(QUESTION, err=True)
        line = await read_line(caught)
        if line is None:
            return InterruptChoice.STOP
        for wish in InterruptChoice:
            if line.strip().lower().startswith(wish.value):
                return wish


async def read_line(caught: Interrupts) -> str | None:
    """A line from the terminal; None at its end, or on another Ctrl-C."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not typed.done():
            typed.set_result(sys.stdin.readline())

    again = asyncio.ensure_future(caught.event.wait())
    both: set[asyncio.Future[Any]] = {typed, again}
    loop.add_reader(sys.stdin.fileno(), read)
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(sys.stdin.fileno())
        again.cancel()
    return (typed.result() or None) if typed.done() else None
