"""Publishes changes of cases to listeners.

Each case keeps its latest changes, so that a listener whose connection was lost can continue after the last serial that
it has read. Serials grow with time, so they grow across restarts, and across servers too: a server that takes a case
over has a clock that is not behind the case's journal. A listener that is too slow is disconnected, and continues from
where it was.

The latest changes of all cases are kept together as well. Whoever follows them has no queue of its own, only a place
among them: so any number can follow, and one that stays away for too long finds that its place is gone."""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator

from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.views import CASE_END_STATES, ChangeEvent, ChangeKind

EVENTS_PER_CASE_MAX = 2_000
ENDED_CASES_MAX = 1_000
"""Of so many cases that have ended the changes stay in memory; who listens to an older one gets its present state."""
SERIALS_PER_MS = 1_000
SUBSCRIBER_QUEUE_MAX = 10_000
RECENT_MAX = 20_000
"""So many changes of all cases are kept for those who follow all."""

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
        self._not_live: dict[CaseId, None] = {}  # those of `_latest` that have ended, the oldest end first
        self._subscribers: dict[str, set[_Subscriber]] = {}
        self._recent: list[_Event] = []  # a ring: the change of place `n` is at `n % RECENT_MAX`
        self.dropped = self._serial  # changes up to this serial are not kept any more, or were before this stream
        self._news = asyncio.Event()
        self._awaited = False
        self.told = 0  # how many changes there were: the place of the next one
        self.is_stopped = False

    def tell(
        self,
        at: Instant,
        kind: ChangeKind,
        case: CaseId,
        item: ItemId | None = None,
        state: str = "",
        message: str = "",
    ) -> None:
        serial, earliest = self._serial + 1, at * SERIALS_PER_MS
        self._serial = serial = serial if serial > earliest else earliest
        event = (serial, at, kind, case, item, state, message)
        if kind == "case" and state not in CASE_END_STATES:
            self.begun(case)
        elif case not in self._latest:
            self._keep_for_a_time(case)
        self._latest[case].append(event)
        self._remember(event)
        if self._subscribers:
            self._deliver(case, event)

    def _remember(self, event: _Event) -> None:
        at = self.told % RECENT_MAX
        if at == len(self._recent):
            self._recent.append(event)
        else:
            self.dropped, self._recent[at] = self._recent[at][0], event
        self.told += 1
        if self._awaited:
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news, self._awaited = asyncio.Event(), False

    def _deliver(self, case: CaseId, event: _Event) -> None:
        for name in (case, ""):
            listeners = self._subscribers.get(name)
            for listener in list(listeners) if listeners else ():
                if listener.kind and listener.kind != event[2]:
                    continue
                if listener.queue.full():
                    listener.queue.get_nowait()
                    self._subscribers[name].discard(listener)
                    listener.queue.put_nowait(None)
                else:
                    listener.queue.put_nowait(event)

    def begun(self, case: CaseId) -> None:
        """The case is live: its changes are kept until it has ended."""
        self._not_live.pop(case, None)
        self._open(case)

    def ended(self, case: CaseId) -> None:
        """Nothing more will happen in this case."""
        for listener in self._subscribers.pop(case, ()):
            listener.queue.put_nowait(None)
        self._keep_for_a_time(case)

    def _keep_for_a_time(self, case: CaseId) -> None:
        """Until enough others have ended."""
        self._open(case)
        self._not_live.pop(case, None)
        self._not_live[case] = None
        if len(self._not_live) > ENDED_CASES_MAX:
            oldest = next(iter(self._not_live))
            del self._not_live[oldest], self._latest[oldest]

    def _open(self, case: CaseId) -> None:
        if case not in self._latest:
            self._latest[case] = deque(maxlen=EVENTS_PER_CASE_MAX)

    def covers_since(self, case: CaseId, serial: int) -> bool:
        """Whether all changes of the case after this serial are still in memory."""
        latest = self._latest.get(case)
        return latest is not None and len(latest) > 0 and latest[0][0] <= serial

    def has_ended(self, case: CaseId) -> bool:
        """Whether the end of the case is still in memory."""
        latest = self._latest.get(case)
        return latest is not None and any(event[2] == "case" and event[5] in CASE_END_STATES for event in latest)

    # All cases

    @property
    def serial(self) -> int:
        """The serial of the newest change."""
        return self._serial

    def place_after(self, serial: int) -> int | None:
        """The place of the first change after this serial; None if not all of them are kept any more."""
        if serial < self.dropped:
            return None
        kept = range(self.told - len(self._recent), self.told)
        return kept.start + bisect_right(kept, serial, key=self._serial_at)

    def _serial_at(self, place: int) -> int:
        return self._recent[place % RECENT_MAX][0]

    def recent(self, place: int, most: int) -> list[ChangeEvent] | None:
        """The changes from a place on; None if they are not kept any more."""
        if place < self.told - len(self._recent):
            return None
        return [_view(self._recent[each % RECENT_MAX]) for each in range(place, min(self.told, place + most))]

    async def wait_beyond(self, place: int) -> None:
        """Until there is a change at this place, or nothing more comes."""
        while place >= self.told and not self.is_stopped:
            self._awaited = True
            await self._news.wait()

    def stop(self) -> None:
        self.is_stopped = True
        self._wake()
        for listeners in self._subscribers.values():
            for listener in listeners:
                listener.queue.put_nowait(None)
        self._subscribers.clear()

    async def listen(self, case: str, after: int, *, kind: str, over: bool) -> AsyncGenerator[ChangeEvent, None]:
        """Changes of one case, or of all if `case` is empty; of every kind, or of one. `over`: only the changes that
        are kept, because no more will come."""
        listener = _Subscriber(kind)
        listeners: set[_Subscriber] = set() if over else self._subscribers.setdefault(case, set())
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
            if not listeners and self._subscribers.get(case) is listeners:  # not a set of later listeners
                del self._subscribers[case]


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
