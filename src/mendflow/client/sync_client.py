"""The client for scripts: the methods of `Client`, each of which waits for its answer and does nothing else.

An event loop in a thread of its own does the work. A method has the parameters, the result and the docstring of the one
that it is made of, so the two clients cannot differ."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from mendflow.client.client import Client
from mendflow.core.model.alerts import Notification
from mendflow.core.model.views import ChangeEvent, ChangeKind

P = ParamSpec("P")
T = TypeVar("T")


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncClient", P], T]:
    """A method of the client, for a program that waits."""

    @functools.wraps(method)
    def wait(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(method(self._client, *args, **kwargs))

    return wait


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

    def _each(self, stream: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> list[T]:
            try:
                return [await anext(stream)]
            except StopAsyncIteration:
                return []

        while found := self._run(following()):
            yield found[0]

    def events(
        self, case: str = "", after: int = 0, *, kind: ChangeKind | Literal[""] = "", patience_s: float = 60.0
    ) -> Iterator[ChangeEvent]:
        return self._each(self._client.events(case, after, kind=kind, patience_s=patience_s))

    def follow_notifications(self, after: int) -> Iterator[Notification]:
        return self._each(self._client.follow_notifications(after))

    def endpoint(self, flow: str) -> str:
        return self._client.endpoint(flow)

    deploy = blocking(Client.deploy)
    flows = blocking(Client.flows)
    flow = blocking(Client.flow)
    start = blocking(Client.start)
    find_cases = blocking(Client.find_cases)
    count_cases = blocking(Client.count_cases)
    find_jobs = blocking(Client.find_jobs)
    count_jobs = blocking(Client.count_jobs)
    export = blocking(Client.export)
    import_archive = blocking(Client.import_archive)
    find_items = blocking(Client.find_items)
    cases = blocking(Client.cases)
    case = blocking(Client.case)
    flow_of = blocking(Client.flow_of)
    items = blocking(Client.items)
    item = blocking(Client.item)
    why = blocking(Client.why)
    suspend = blocking(Client.suspend)
    resume = blocking(Client.resume)
    cancel = blocking(Client.cancel)
    rerun = blocking(Client.rerun)
    send = blocking(Client.send)
    wait = blocking(Client.wait)
    jobs = blocking(Client.jobs)
    job = blocking(Client.job)
    requeue = blocking(Client.requeue)
    alerts = blocking(Client.alerts)
    acknowledge = blocking(Client.acknowledge)
    notifications = blocking(Client.notifications)
    webhooks = blocking(Client.webhooks)
    add_webhook = blocking(Client.add_webhook)
    remove_webhook = blocking(Client.remove_webhook)
    try_webhook = blocking(Client.try_webhook)
    log = blocking(Client.log)
    pilots = blocking(Client.pilots)
    servers = blocking(Client.servers)
    stats = blocking(Client.stats)
    worklist = blocking(Client.worklist)
    user_task = blocking(Client.user_task)
    claim = blocking(Client.claim)
    release = blocking(Client.release)
    complete = blocking(Client.complete)
    reject = blocking(Client.reject)
    upload = blocking(Client.upload)
    has = blocking(Client.has)
    download = blocking(Client.download)
    health = blocking(Client.health)
    rule_sets = blocking(Client.rule_sets)
    rule_set = blocking(Client.rule_set)
    rule_versions = blocking(Client.rule_versions)
    put_rules = blocking(Client.put_rules)
    restore_rules = blocking(Client.restore_rules)
    promote_rule = blocking(Client.promote_rule)
    retire_rule = blocking(Client.retire_rule)
    add_rule = blocking(Client.add_rule)
    try_rule = blocking(Client.try_rule)
    failures = blocking(Client.failures)
    failure = blocking(Client.failure)
    apply_rules = blocking(Client.apply_rules)
    decisions = blocking(Client.decisions)
    decision = blocking(Client.decision)
    reject_choice = blocking(Client.reject_choice)
    history = blocking(Client.history)
    xes = blocking(Client.xes)
    triggers = blocking(Client.triggers)
    raise_trigger = blocking(Client.raise_trigger)
    mend = blocking(Client.mend)
    compensations = blocking(Client.compensations)
    register_compensation = blocking(Client.register_compensation)
    levels = blocking(Client.levels)
    drain = blocking(Client.drain)
    patterns = blocking(Client.patterns)
    add_patterns = blocking(Client.add_patterns)
    engines = blocking(Client.engines)
    register_engine = blocking(Client.register_engine)
    engine_event = blocking(Client.engine_event)
    engine_orders = blocking(Client.engine_orders)
    engine_done = blocking(Client.engine_done)
    sites = blocking(Client.sites)
    site = blocking(Client.site)
    put_site = blocking(Client.put_site)
    pause_site = blocking(Client.pause_site)
    resume_site = blocking(Client.resume_site)
    remove_site = blocking(Client.remove_site)
    data = blocking(Client.data)
    datum = blocking(Client.datum)
    add_data = blocking(Client.add_data)
    remove_data = blocking(Client.remove_data)
    places = blocking(Client.places)
    add_replica = blocking(Client.add_replica)
    remove_replica = blocking(Client.remove_replica)
    elements = blocking(Client.elements)
    element = blocking(Client.element)
    put_element = blocking(Client.put_element)
    remove_element = blocking(Client.remove_element)
    data_sets = blocking(Client.data_sets)
    data_set = blocking(Client.data_set)
    put_data_set = blocking(Client.put_data_set)
    set_files = blocking(Client.set_files)
    add_to_set = blocking(Client.add_to_set)
    set_batches = blocking(Client.set_batches)
    close_set = blocking(Client.close_set)
    retry_batch = blocking(Client.retry_batch)
    watches = blocking(Client.watches)
    put_watch = blocking(Client.put_watch)
    remove_watch = blocking(Client.remove_watch)
    post = blocking(Client.post)
