"""The event loop of servers and pilots, the fastest that is installed, and how their interpreter is set."""

import asyncio
import gc
import importlib
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

SWITCH_S: Final = 0.0005
"""So long a thread waits for the interpreter at most while the loop is busy. The store's threads have little to do with
it, several times for each commit and each read; with Python's 5 ms, waiting was most of what either took."""

GC_YOUNG_MAX: Final = 50_000


def run(main: Coroutine[Any, Any, T]) -> T:
    """asyncio.run, on that loop."""
    sys.setswitchinterval(SWITCH_S)
    with asyncio.Runner(loop_factory=_new_loop()) as runner:
        return runner.run(main)


def relax_garbage_collection() -> None:
    """A server holds a great many small objects that live long, and makes hardly any cycles: searching all of them for
    cycles, as often as Python does by default, would cost more than the work itself."""
    gc.freeze()
    gc.set_threshold(GC_YOUNG_MAX, 20, 100)


def _new_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """Loaded when a loop is to run: a command that opens a folder has a loop already."""
    try:
        made: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:  # pragma: no cover - where uvloop has no build, asyncio's own loop does the same, slower
        return asyncio.new_event_loop
    return made
