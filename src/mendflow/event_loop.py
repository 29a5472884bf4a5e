"""The event loop of servers and pilots: the fastest that is installed."""

import asyncio
import importlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """asyncio.run, on that loop."""
    with asyncio.Runner(loop_factory=_new_loop()) as runner:
        return runner.run(main)


def _new_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """Loaded when a loop is to run: a command that opens a folder has a loop already."""
    try:
        made: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:  # pragma: no cover - where uvloop has no build, asyncio's own loop does the same, slower
        return asyncio.new_event_loop
    return made
