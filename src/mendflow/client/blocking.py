"""What the client for scripts stands on: an event loop in a thread of its own that does the work.

A method has the parameters, the result and the docstring of the one that it is made of, so the two clients cannot
differ."""

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from mendflow.client.client import Client
from mendflow.core.model.alerts import Notification
from mendflow.core.model.views import ChangeEvent, ChangeKind

if TYPE_CHECKING:
    from mendflow.tls import ClientTls

P = ParamSpec("P")
T = TypeVar("T")


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["BlockingClient", P], T]:
    """A method of the client, for a program that waits."""

    @functools.wraps(method)
    def wait(self: "BlockingClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(method(self._client, *args, **kwargs))

    return wait


class BlockingClient:
    """A client of one server. Use it as a context manager, or call `close` in the end."""

    def __init__(
        self, url: str, token: str = "", *, user: str = "", timeout_s: float = 60.0, tls: "ClientTls | None" = None
    ) -> None:
        self._client = Client(url, token, user=user, timeout_s=timeout_s, tls=tls)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mendflow-client", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return self._client.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._run(self._client.close())
        self._run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _run_last(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run what tidies up, unless the client is closed. A collector of garbage may call this in the loop's own
        thread, which must not wait for itself."""
        if not self._loop.is_closed():
            done = asyncio.run_coroutine_threadsafe(work(), self._loop)
            if threading.current_thread() is not self._thread:
                done.result()

    def _each(self, stream: AsyncGenerator[T, None]) -> Iterator[T]:
        turn = asyncio.Lock()  # a step that was interrupted has ended when the stream is closed

        async def following() -> list[T]:
            async with turn:
                try:
                    return [await anext(stream)]
                except StopAsyncIteration:
                    return []

        async def close() -> None:
            async with turn:
                await stream.aclose()

        try:
            while found := self._run(following()):
                yield found[0]
        finally:  # also for who leaves the loop early
            self._run_last(close)

    def events(
        self, case: str = "", after: int = 0, *, kind: ChangeKind | Literal[""] = "", patience_s: float = 60.0
    ) -> Iterator[ChangeEvent]:
        return self._each(self._client.events(case, after, kind=kind, patience_s=patience_s))

    def follow_notifications(self, after: int) -> Iterator[Notification]:
        return self._each(self._client.follow_notifications(after))

    def endpoint(self, flow: str) -> str:
        return self._client.endpoint(flow)
