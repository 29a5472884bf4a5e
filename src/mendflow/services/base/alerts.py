"""Alerts: documents that only one server can create, so that several servers that see the same problem raise it once.

The id of an alert says what it is about and which episode of it. The server that creates the document has raised the
alert; the others find it there and do nothing. It is closed by compare-and-set when the problem is over. Clients are
notified after the document is written: if the server that raised it dies in between, the first server that sees this
notifies them."""

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from mendflow.core.model.alerts import AlertKind, AlertView
from mendflow.core.model.errors import NotFound, StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.services.base.contracts import Clock, UnhandledFailure
from mendflow.services.base.hub import Hub
from mendflow.services.base.readable_documents import readable, readable_in
from mendflow.stores.contract import Delete, FieldCondition, Put, Store, StoredDocument, WriteDone

log = logging.getLogger("mendflow.alerts")

ALERT_KIND: Final = "alert"
CLOSED_BY_ACKNOWLEDGEMENT: Final = frozenset({"pilot-gone", "server-gone", "not-delivered", "failure", "rule-errs"})
"""Kinds that may last for ever: they are closed when somebody has acknowledged them."""
CRITICAL: Final = frozenset({"server-gone", "orphan", "site-away", "disk-full"})
"""Kinds where work is stopped, or lost, until somebody does something about it."""
RAISED_ANEW: Final = frozenset({"no-pilot", "limit-unset"})
"""Kinds whose episode is named after who waits, and may begin again: a pilot that could take the job comes, and leaves
without it. Nobody who has acknowledged it the first time knows that."""
RAISED_UNLESS_SEEN: Final = frozenset({"failure", "case-held"})
"""Kinds whose episode is the same when it is found again: failures of one cause on a day, and what is held since the
same instant, after the server that had told of it has ended. Whoever has acknowledged it is not told again."""
OF_PROJECTS: Final = frozenset({"failure", "not-started", "rule-errs"})
"""Kinds that are of a project also where they are about no case: of rules, or of a schedule."""
LOG_LEVELS: Final = {"failure": logging.INFO}
"""How loud an alert is in the server's own log: of a failed job whoever runs the case hears anyway."""


class AlertDocument(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: AlertKind
    subject: str
    sentence: str
    raised_at: Instant
    raised_by: str
    case: CaseId = CaseId("")
    item: ItemId | None = None
    group: str = ""
    is_notified: bool = False
    open: bool = True
    closed_at: Instant = 0
    acknowledged_at: Instant = 0
    acknowledged_by: str = ""
    may_reopen: bool = False  # over because of cases that are under way: if these are cancelled, it is raised again

    @property
    def finding(self) -> "AlertFinding":
        fields = {name: getattr(self, name) for name in ("kind", "subject", "sentence", "case", "item", "group")}
        return AlertFinding(**fields, episode=self.id.rpartition("/")[2])

    @property
    def is_of_some_project(self) -> bool:
        """Whether it is of a project, though it is about no case; else it is about the installation."""
        return not self.case and self.kind in OF_PROJECTS

    def view(self) -> AlertView:
        fields = {
            name: getattr(self, name) for name in AlertView.__struct_fields__ if name not in ("severity", "given")
        }
        return AlertView(**fields, severity="critical" if self.kind in CRITICAL else "warning")


class AlertFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that a monitor has found. `episode` tells this occurrence from others, the same on every server.
    `group` is the cause of a failure, and `since` the time of what the alert is about, if it has one of its own."""

    kind: AlertKind
    subject: str
    episode: str
    sentence: str
    case: CaseId = CaseId("")
    item: ItemId | None = None
    group: str = ""
    since: Instant = 0

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.subject}/{self.episode}"


class OpenFailure(NamedTuple):
    """A failure that nobody has taken up, as an alert; or None. `may_reopen`: there may be one again, because somebody
    runs a case again, and may cancel that."""

    finding: AlertFinding | None
    may_reopen: bool = False


class UnhandledFailures(Protocol):
    def held_failures(self) -> list[UnhandledFailure]: ...

    async def open_failures(self, alerts: Sequence[AlertDocument]) -> dict[str, OpenFailure]:
        """Of each alert, by its id, which failure of those that it is about nobody has taken up, its own first; the
        alert itself where that cannot be seen; none if each was tried again, its case completed after all or was run
        again, or somebody has cancelled it."""
        ...


class StoredAlert(msgspec.Struct, frozen=True):
    alert: AlertDocument
    version: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AlertDocument).decode


class ProblemFound(NamedTuple):
    """A service has found what somebody should know, without being asked: it is to become an alert."""

    finding: AlertFinding


class AlertRaised(NamedTuple):
    """Clients are to be notified of an alert; when that is certain, `AlertStore.mark_notified` is to be called."""

    alert: AlertDocument


class AlertChanged(NamedTuple):
    """An alert is over, or somebody has acknowledged it: whoever shows it is to read it again."""

    alert: AlertDocument


class AlertStore:
    def __init__(self, store: Store, clock: Clock, server: Callable[[], str], *, kept_ms: int, hub: Hub) -> None:
        self._store = store
        self._clock = clock
        self._server = server
        self._kept_ms = kept_ms
        self.open: dict[str, StoredAlert] = {}
        self._seen: set[str] = set()  # open or over: clients were notified of these episodes
        self._over: dict[str, StoredAlert] = {}  # and may come back: they are raised again if they are found again
        self._unwritten: dict[str, AlertDocument] = {}  # the store did not take them, and they last
        self._hub = hub

    def forget_unwritten(self) -> None:
        """Alerts that the store did not take are raised again by whoever finds that they last."""
        self._unwritten.clear()

    async def read(self) -> None:
        """Read what other servers have raised, closed and acknowledged; delete what has been over for long."""
        now, found = self._clock.now(), await readable_in(self._store.scan(ALERT_KIND), _decode)
        known = {each.id: StoredAlert(alert, each.version) for each, alert in found}
        self._over = {id: each for id, each in known.items() if _may_come_back(each.alert)}
        self._seen = set(known) - set(self._over)
        self.open = {id: each for id, each in known.items() if each.alert.open}
        old = [each for each in known.values() if not each.alert.open and each.alert.closed_at < now - self._kept_ms]
        if old:
            await self._store.write([Delete(ALERT_KIND, each.alert.id, each.version) for each in old])

    def is_known(self, finding: AlertFinding) -> bool:
        """Whether it was raised already, as far as this server knows."""
        return finding.id in self._seen

    async def raise_(self, finding: AlertFinding) -> bool:
        """Raise the alert; whether this server was the first to do so."""
        if finding.id in self._seen:
            return False
        self._seen.add(finding.id)
        alert = AlertDocument(
            id=finding.id,
            kind=finding.kind,
            subject=finding.subject,
            sentence=finding.sentence,
            case=finding.case,
            item=finding.item,
            group=finding.group,
            raised_at=self._clock.now(),
            raised_by=self._server(),
        )
        try:
            is_first = await self._put_first(alert)
        except StoreUnavailable:
            self._seen.discard(alert.id)
            self._unwritten[alert.id] = alert
            raise
        self._unwritten.pop(alert.id, None)
        if not is_first:
            return False
        log.log(LOG_LEVELS.get(alert.kind, logging.WARNING), "%s: %s", alert.kind, alert.sentence)
        self._hub.publish(AlertRaised(alert))
        return True

    def over_since(self, at: Instant | None) -> list[StoredAlert]:
        """Failures that may come back: that were over then or later, or are over because of cases that are under
        way."""
        failures = (each for each in self._over.values() if each.alert.kind == "failure")
        return [each for each in failures if each.alert.may_reopen or (at is not None and each.alert.closed_at >= at)]

    async def close(self, known: StoredAlert, *, may_reopen: bool = False) -> None:
        now = self._clock.now()
        closed = msgspec.structs.replace(known.alert, open=False, closed_at=now, may_reopen=may_reopen)
        if await self._put(closed, known.version):
            self._hub.publish(AlertChanged(closed))

    async def keep_closed(self, known: StoredAlert) -> None:
        """What it was over by is done: it does not come back by itself."""
        await self._put(msgspec.structs.replace(known.alert, may_reopen=False), known.version)

    async def retarget(self, known: StoredAlert, finding: AlertFinding) -> None:
        """What it told of first is over, and it lasts for another, with the time of that."""
        fields = {name: getattr(finding, name) for name in ("sentence", "case", "item")}
        changed = msgspec.structs.replace(known.alert, **fields, raised_at=finding.since or known.alert.raised_at)
        if await self._put(changed, known.version):
            self._hub.publish(AlertChanged(changed))

    async def mark_notified(self, id: str) -> None:
        """Clients will be notified of this alert, whatever happens to this server."""
        while (known := await self._find(id)) is not None and not known.alert.is_notified:
            await self._put(msgspec.structs.replace(known.alert, is_notified=True), known.version)

    async def tell_for_ended(self, ended: Callable[[AlertDocument], bool]) -> None:
        """Notify clients of alerts whose servers ended before they could; one server does so for each alert."""
        for known in [each for each in self.open.values() if not each.alert.is_notified and ended(each.alert)]:
            mine = msgspec.structs.replace(known.alert, raised_by=self._server())
            if await self._put(mine, known.version):
                self._hub.publish(AlertRaised(mine))

    async def acknowledge(self, id: str, *, who: str) -> AlertView:
        """Somebody has seen it. An alert that would stay open for ever is closed by that."""
        while True:
            known = await self._find(id)
            if known is None:
                raise NotFound(f"there is no alert {id!r}; `mendflow alerts` lists them")
            if known.alert.acknowledged_at:
                return known.alert.view()
            now = self._clock.now()
            seen = msgspec.structs.replace(known.alert, acknowledged_at=now, acknowledged_by=who)
            if seen.open and seen.kind in CLOSED_BY_ACKNOWLEDGEMENT:
                seen = msgspec.structs.replace(seen, open=False, closed_at=now)
            if await self._put(seen, known.version):
                self._hub.publish(AlertChanged(seen))
                return seen.view()

    async def list(self, *, every: bool, limit: int, critical: bool = False) -> list[AlertView]:
        """The newest first; those that are over only on request; all, or only those that are critical."""
        where = [] if every else [FieldCondition("open", True)]
        where += [FieldCondition("kind", [*sorted(CRITICAL)], "in")] if critical else []
        found = await self._store.search(ALERT_KIND, where, order_by="raised_at", descending=True, limit=limit)
        unwritten = [each for each in self._unwritten.values() if not critical or each.kind in CRITICAL]
        alerts = {each.id: each for each in [*reversed(unwritten), *readable(found, _decode)]}
        return [each.view() for each in alerts.values()][:limit]

    async def _find(self, id: str) -> StoredAlert | None:
        found: StoredDocument | None = await self._store.get(ALERT_KIND, id)
        return StoredAlert(_decode(found.body), found.version) if found is not None else None

    async def _put_first(self, alert: AlertDocument) -> bool:
        """Write it, also in place of an episode that is over: another server has closed it, or this one before it was
        started, and it has not been read since."""
        earlier = self._over.pop(alert.id, None)
        if await self._put(alert, earlier.version if earlier is not None else 0):
            return True
        found = await self._find(alert.id)
        return found is not None and _may_come_back(found.alert) and await self._put(alert, found.version)

    async def _put(self, alert: AlertDocument, version: int) -> bool:
        """Write the alert; false if another server was faster. Its state is then read again at the next look."""
        [result] = await self._store.write([Put(ALERT_KIND, alert.id, _encode(alert), version)])
        if isinstance(result, WriteDone) and alert.open:
            self.open[alert.id] = StoredAlert(alert, result.version)
        else:
            self.open.pop(alert.id, None)
        if isinstance(result, WriteDone) and _may_come_back(alert):
            self._seen.discard(alert.id)
            self._over[alert.id] = StoredAlert(alert, result.version)
        return isinstance(result, WriteDone)


def _may_come_back(alert: AlertDocument) -> bool:
    """Whether the same episode is raised again if it is found again."""
    if alert.open:
        return False
    return alert.kind in RAISED_ANEW or (alert.kind in RAISED_UNLESS_SEEN and not alert.acknowledged_at)
