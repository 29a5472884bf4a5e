"""Who is told what reading costs."""

import asyncio
import time
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TypeVar

from mendflow.services.base.request_turns import REQUEST_TURN
from mendflow.stores.contract import READING_COST

T = TypeVar("T")
ReadingCost = Callable[[float], None] | None


def tell_cost_of_reading(tell: ReadingCost) -> ReadingCost:
    """From now on, in this task and in those that it starts, `tell` gets the seconds of processor time that the store's
    threads take for each read. Returns who got them before."""
    before = READING_COST.get()
    READING_COST.set(tell)
    return before


def who_pays() -> ReadingCost:
    """For whom this is done; the same for all requests of one principal."""
    return READING_COST.get()


def context_for_everybody() -> Context:
    """This context, for a task that outlives whoever starts it: what it reads is nobody's cost, and it has no turn of a
    request."""
    context = copy_context()
    context.run(READING_COST.set, None)
    context.run(REQUEST_TURN.set, None)
    return context


async def paid_thread(work: Callable[[], T]) -> T:
    """Do it in a thread, and tell whoever pays what processor time it took, also if nobody waits for it any more."""
    pays, loop = who_pays(), asyncio.get_running_loop()

    def do() -> T:
        begun_s = time.thread_time()
        try:
            return work()
        finally:
            if pays is not None:
                loop.call_soon_threadsafe(pays, time.thread_time() - begun_s)

    return await asyncio.to_thread(do)
