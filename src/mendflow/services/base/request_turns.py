"""The turn of a request among those of its principal, which it gives up while it waits for something to happen."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import Context, ContextVar, copy_context

REQUEST_TURN: ContextVar[AsyncExitStack | None] = ContextVar("request_turn", default=None)


@asynccontextmanager
async def hold_turn(turn: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
    """Wait for this turn, and have it until the end or until somebody calls `end_turn` within."""
    async with AsyncExitStack() as held:
        await held.enter_async_context(turn)
        before = REQUEST_TURN.set(held)
        try:
            yield
        finally:
            REQUEST_TURN.reset(before)


def context_without_turn() -> Context | None:
    """For a task that a request starts and does not wait for; None if there is no turn to be left out."""
    if REQUEST_TURN.get() is None:
        return None
    context = copy_context()
    context.run(REQUEST_TURN.set, None)
    return context


async def end_turn() -> None:
    """To be called before something is waited for that may take very long, a reply or the end of a case: those that
    wait would keep all others of their principal from being answered. Does nothing outside of a request."""
    turn = REQUEST_TURN.get()
    if turn is not None:
        await turn.aclose()
