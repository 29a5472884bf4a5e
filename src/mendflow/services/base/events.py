"""What happens, told to whoever listens.

Each case keeps its latest changes, so that a listener who lost the line can go on from the serial it heard last. The
serials grow with the time, so they grow across restarts, and across servers too: whoever takes a case over has a clock
that is not behind the case's journal. A listener that does not keep up is let go, and comes back from where it was."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.views import Happening, HappeningKind

KEPT_PER_CASE = 2_000
SERIALS_PER_MS = 1_000
LISTENER_QUEUE_MAX = 10_000

_ENDED = ("completed", "failed", "cancelled")

_Told = tuple[int, Instant, HappeningKind, CaseId, ItemId | None, str, str]


class _Listener:
    """Hears of one kind of thing only, or of all if `kind` is empty."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.queue: asyncio.Queue[_Told | None] = asyncio.Queue(LISTENER_QUEUE_MAX + 1)

    def wants(self, told: _Told) -> bool:
        return not self.kind or told[2] == self.kind


class Happenings:
    def __init__(self, started_at: Instant) -> None:
        self._serial = started_at * SERIALS_PER_MS
        self._latest: dict[CaseId, deque[_Told]] = {}
        self._listeners: dict[str, set[_Listener]] = {}

    def tell(
        self,
        at: Instant,
        kind: HappeningKind,
        case: CaseId,
        item: ItemId | None = None,
        state: str = "",
        message: str = "",
    ) -> None:
        self._serial = max(self._serial + 1, at * SERIALS_PER_MS)
        told = (self._serial, at, kind, case, item, state, message)
        latest = self._latest.get(case)
        if latest is None:
            latest = self._latest[case] = deque(maxlen=KEPT_PER_CASE)
        latest.append(told)
        if self._listeners:
            self._pass_on(case, told)

    def _pass_on(self, case: CaseId, told: _Told) -> None:
        for name in (case, ""):
            for listener in list(self._listeners.get(name, ())):
                if not listener.wants(told):
                    continue
                if listener.queue.full():
                    listener.queue.get_nowait()
                    self._listeners[name].discard(listener)
                    listener.queue.put_nowait(None)
                else:
                    listener.queue.put_nowait(told)

    def ended(self, case: CaseId) -> None:
        """Nothing more will happen in this case."""
        for listener in self._listeners.pop(case, ()):
            listener.queue.put_nowait(None)

    def reaches_back(self, case: CaseId, serial: int) -> bool:
        """Whether all that happened in the case after this serial is kept here."""
        latest = self._latest.get(case)
        return latest is not None and latest[0][0] <= serial

    def has_ended(self, case: CaseId) -> bool:
        """Whether the end of the case is kept here."""
        latest = self._latest.get(case)
        return latest is not None and any(told[2] == "case" and told[5] in _ENDED for told in latest)

    def forget(self, case: CaseId) -> None:
        self._latest.pop(case, None)

    def stop(self) -> None:
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.queue.put_nowait(None)
        self._listeners.clear()

    async def listen(self, case: str, after: int, *, kind: str, over: bool) -> AsyncIterator[Happening]:
        """Changes of one case, or of all if `case` is empty; of every kind, or of one. `over`: only what is kept,
        because no more will come."""
        listener = _Listener(kind)
        listeners = self._listeners.setdefault(case, set())
        if not over:
            listeners.add(listener)
        try:
            for told in list(self._latest.get(CaseId(case), ())) if case else []:
                if told[0] > after and listener.wants(told):
                    yield _view(told)
            while not over:
                heard = await listener.queue.get()
                if heard is None:
                    return
                yield _view(heard)
        finally:
            listeners.discard(listener)
            if not listeners:
                self._listeners.pop(case, None)


def _view(told: _Told) -> Happening:
    serial, at, kind, case, item, state, message = told
    return Happening(
        serial=serial,
        at=at,
        kind=kind,
        case=case,
        item=item,
        state=state,
        message=message,
    )
