"""Who is told what reading costs."""

from collections.abc import Callable
from contextvars import Context, copy_context

from mendflow.stores.contract import READING_COST

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
    """This context, for a task that outlives whoever starts it: what it reads is nobody's cost."""
    context = copy_context()
    context.run(READING_COST.set, None)
    return context
