"""Background tasks: work that follows from a change and is done a moment later.

None of it is stored: it follows from the state of a case, and is derived again when the cases are loaded again. So work
that failed because the store was unreachable is neither lost nor counts as a failure."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from mendflow.core.model.errors import StoreUnavailable
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.request_turns import context_without_turn

log = logging.getLogger("mendflow.runtime")


class BackgroundTasks:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many tasks are running."""
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, context=context_without_turn())
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreUnavailable):
            self._ledger.give_up(error.message)
        elif error is not None:
            log.error(
                "background task %s failed: %s", getattr(task.get_coro(), "__qualname__", "?"), error, exc_info=error
            )

    async def stop(self) -> None:
        await cancel_tasks(*self._tasks)


async def cancel_tasks(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel what runs, and wait until it has ended."""
    begun = [task for task in tasks if task is not None]
    for task in begun:
        task.cancel()
    await asyncio.gather(*begun, return_exceptions=True)


async def first_of(*things: Coroutine[Any, Any, object]) -> None:
    """Return when one of these has ended; the others are given up."""
    tasks = [asyncio.ensure_future(each) for each in things]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def sleep_unless(woken: asyncio.Event, sleep: Coroutine[Any, Any, None]) -> None:
    """Sleep until that is over or the event is set, which is clear then. A server that has nothing to do does this all
    day: the end of the sleep sets the event, so that one task is enough."""
    sleeping = asyncio.get_running_loop().create_task(sleep)
    sleeping.add_done_callback(lambda ended: None if ended.cancelled() else woken.set())
    try:
        await woken.wait()
    finally:
        if not sleeping.done():
            await cancel_tasks(sleeping)
        woken.clear()
