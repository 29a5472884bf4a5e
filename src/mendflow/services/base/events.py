"""Publishes changes of cases to listeners.

Each case keeps its latest changes, so that a listener whose connection was lost can continue after the last serial that
it has read. Serials grow with time, so they grow across restarts, and across servers too: a server that takes a case
over has a clock that is not behind the case's journal. A listener that is too slow is disconnected, and continues from
where it was."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.views import ChangeEvent, ChangeKind

EVENTS_PER_CASE_MAX = 2_000
SERIALS_PER_MS = 1_000
SUBSCRIBER_QUEUE_MAX = 10_000

_END_STATES = ("completed", "failed", "cancelled")

_Event = tuple[int, Instant, ChangeKind, CaseId, ItemId | None, str, str]


class _Subscriber:
    """Listens to one kind of change only, or to all if `kind` is empty."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.queue: asyncio.Queue[_Event | None] = asyncio.Queue(SUBSCRIBER_QUEUE_MAX + 1)

    def wants(self, event: _Event) -> bool:
        return not self.kind or event[2] == self.kind


class EventStream:
    def __init__(self, started_at: Instant) -> None:
        self._serial = started_at * SERIALS_PER_MS
        self._latest: dict[CaseId, deque[_Event]] = {}
        self._subscribers: dict[str, set[_Subscriber]] = {}

    def tell(
        self,
        at: Instant,
        kind: ChangeKind,
        case: CaseId,
        item: ItemId | None = None,
        state: str = "",
        message: str = "",
    ) -> None:
        self._serial = max(self._serial + 1, at * SERIALS_PER_MS)
        event = (self._serial, at, kind, case, item, state, message)
        latest = self._latest.get(case)
        if latest is None:
            latest = self._latest[case] = deque(maxlen=EVENTS_PER_CASE_MAX)
        latest.append(event)
        if self._subscribers:
            self._deliver(case, event)

    def _deliver(self, case: CaseId, event: _Event) -> None:
        for name in (case, ""):
            for listener in list(self._subscribers.get(name, ())):
                if not listener.wants(event):
                    continue
                if listener.queue.full():
                    listener.queue.get_nowait()
                    self._subscribers[name].discard(listener)
                    listener.queue.put_nowait(None)
                else:
                    listener.queue.put_nowait(event)

    def ended(self, case: CaseId) -> None:
        """Nothing more will happen in this case."""
        for listener in self._subscribers.pop(case, ()):
            listener.queue.put_nowait(None)

    def covers_since(self, case: CaseId, serial: int) -> bool:
        """Whether all changes of the case after this serial are still in memory."""
        latest = self._latest.get(case)
        return latest is not None and latest[0][0] <= serial

    def has_ended(self, case: CaseId) -> bool:
        """Whether the end of the case is still in memory."""
        latest = self._latest.get(case)
        return latest is not None and any(event[2] == "case" and event[5] in _END_STATES for event in latest)

    def forget(self, case: CaseId) -> None:
        self._latest.pop(case, None)

    def stop(self) -> None:
        for listeners in self._subscribers.values():
            for listener in listeners:
                listener.queue.put_nowait(None)
        self._subscribers.clear()

    async def listen(self, case: str, after: int, *, kind: str, over: bool) -> AsyncIterator[ChangeEvent]:
        """Changes of one case, or of all if `case` is empty; of every kind, or of one. `over`: only the changes that
        are kept, because no more will come."""
        listener = _Subscriber(kind)
        listeners = self._subscribers.setdefault(case, set())
        if not over:
            listeners.add(listener)
        try:
            for event in list(self._latest.get(CaseId(case), ())) if case else []:
                if event[0] > after and listener.wants(event):
                    yield _view(event)
            while not over:
                heard = await listener.queue.get()
                if heard is None:
                    return
                yield _view(heard)
        finally:
            listeners.discard(listener)
            if not listeners:
                self._subscribers.pop(case, None)


def _view(event: _Event) -> ChangeEvent:
    serial, at, kind, case, item, state, message = event
    return ChangeEvent(
        serial=serial,
        at=at,
        kind=kind,
        case=case,
        item=item,
        state=state,
        message=message,
    )
