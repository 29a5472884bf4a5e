"""The client for scripts: the methods of `Client`, as plain functions.

An event loop in a thread of its own does the work; each call here waits for its answer and does nothing else."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from mendflow.client.client import Client
from mendflow.core.model.flow import Flow
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import (
    CaseView,
    FlowView,
    Happening,
    HappeningKind,
    Health,
    ItemView,
    JobQuery,
    JobView,
    PilotView,
    TaskView,
    Why,
)

T = TypeVar("T")


class SyncClient:
    """A client of one server. Use it as a context manager, or call `close` in the end."""

    def __init__(self, url: str, token: str = "", *, user: str = "", timeout_s: float = 60.0) -> None:
        self._client = Client(url, token, user=user, timeout_s=timeout_s)
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
        self._wait(self._client.close())
        self._wait(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def deploy(self, flow: Flow) -> FlowView:
        return self._wait(self._client.deploy(flow))

    def flows(self) -> list[FlowView]:
        return self._wait(self._client.flows())

    def flow(self, name: str) -> FlowView:
        return self._wait(self._client.flow(name))

    def start(self, name: str, inputs: dict[str, Value] | None = None, *, reuse: str = "", key: str = "") -> CaseView:
        return self._wait(self._client.start(name, inputs, reuse=reuse, key=key))

    def cases(self, *, flow: str = "", status: str = "", limit: int = 100, offset: int = 0) -> list[CaseView]:
        return self._wait(self._client.cases(flow=flow, status=status, limit=limit, offset=offset))

    def case(self, case: str) -> CaseView:
        return self._wait(self._client.case(case))

    def flow_of(self, case: str) -> Flow:
        return self._wait(self._client.flow_of(case))

    def items(
        self, case: str, *, state: str = "", name: str = "", limit: int = 1000, offset: int = 0
    ) -> list[ItemView]:
        return self._wait(self._client.items(case, state=state, name=name, limit=limit, offset=offset))

    def item(self, case: str, item: str) -> ItemView:
        return self._wait(self._client.item(case, item))

    def why(self, subject: str) -> Why:
        return self._wait(self._client.why(subject))

    def suspend(self, case: str, item: str = "") -> CaseView:
        return self._wait(self._client.suspend(case, item))

    def resume(self, case: str, item: str = "") -> CaseView:
        return self._wait(self._client.resume(case, item))

    def remove(self, case: str, item: str = "", *, reason: str = "") -> CaseView:
        return self._wait(self._client.remove(case, item, reason=reason))

    def rerun(self, case: str, *, from_failed: bool = False) -> CaseView:
        return self._wait(self._client.rerun(case, from_failed=from_failed))

    def send(self, case: str, channel: str, value: Value, *, correlation: Value = None, id: str = "") -> CaseView:
        return self._wait(self._client.send(case, channel, value, correlation=correlation, id=id))

    def happenings(
        self, case: str = "", after: int = 0, *, kind: HappeningKind | Literal[""] = "", patience_s: float = 60.0
    ) -> Iterator[Happening]:
        stream = self._client.happenings(case, after, kind=kind, patience_s=patience_s)

        async def following() -> Happening | None:
            return await anext(stream, None)

        while (happening := self._wait(following())) is not None:
            yield happening

    def wait(self, case: str, *, timeout_s: float | None = None, patience_s: float = 60.0) -> CaseView:
        return self._wait(self._client.wait(case, timeout_s=timeout_s, patience_s=patience_s))

    def jobs(self, query: JobQuery | None = None) -> list[JobView]:
        return self._wait(self._client.jobs(query))

    def job(self, job: str) -> JobView:
        return self._wait(self._client.job(job))

    def log(self, job: str) -> str:
        return self._wait(self._client.log(job))

    def pilots(self) -> list[PilotView]:
        return self._wait(self._client.pilots())

    def tasks(self, *, role: str = "", state: str = "", case: str = "", limit: int = 100) -> list[TaskView]:
        return self._wait(self._client.tasks(role=role, state=state, case=case, limit=limit))

    def task(self, task: str) -> TaskView:
        return self._wait(self._client.task(task))

    def claim(self, task: str) -> TaskView:
        return self._wait(self._client.claim(task))

    def release(self, task: str) -> TaskView:
        return self._wait(self._client.release(task))

    def complete(self, task: str, outputs: Value = None, *, comment: str = "") -> TaskView:
        return self._wait(self._client.complete(task, outputs, comment=comment))

    def reject(self, task: str, *, comment: str = "") -> TaskView:
        return self._wait(self._client.reject(task, comment=comment))

    def upload(self, path: str | Path, name: str = "") -> FileRef:
        return self._wait(self._client.upload(path, name))

    def has(self, sha256: str) -> bool:
        return self._wait(self._client.has(sha256))

    def download(self, ref: FileRef | str, path: str | Path) -> Path:
        return self._wait(self._client.download(ref, path))

    def notices(self, limit: int = 100) -> list[Happening]:
        return self._wait(self._client.notices(limit))

    def health(self) -> Health:
        return self._wait(self._client.health())
