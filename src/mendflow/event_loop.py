"""The event loop of servers and pilots: the fastest that is installed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

try:
    import uvloop

    _new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
except ImportError:  # pragma: no cover - where uvloop has no build, asyncio's own loop does the same, slower
    _new_loop = asyncio.new_event_loop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """asyncio.run, on that loop."""
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(main)
