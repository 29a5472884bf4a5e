"""An event loop in a thread of its own. Whoever calls may have a loop already, as a notebook does."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mendflow-runner", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Let the loop do this, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.call(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def at_exit(function: Callable[[], None]) -> None:
    """Call the function before the interpreter ends the threads that it needs: `atexit` would be too late for that, as
    nothing can be given to a pool of threads any more."""
    threading._register_atexit(function)  # type: ignore[attr-defined]  # concurrent.futures ends its pools by it
