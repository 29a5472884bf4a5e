"""The link of this server to one other domain, as the origin of work there: one exchange after another, for as long as
the domain is connected.

Each request tells everything that this server claims there, so none of them has to arrive. A request that waits at the
host for news is overtaken by a newer one as soon as there is something to say. What the host may count on is known
here by our own meter: a lease is granted from a stamp of the host on, and it cannot have made that stamp after we
heard it."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from mendflow.core.model.domains import (
    LEASE_MS_MAX,
    DomainAnswer,
    DomainRequest,
    SentWork,
    WorkClaim,
    WorkRef,
    WorkStatus,
)
from mendflow.core.model.errors import Forbidden, RequestError, StoreUnavailable, Unreachable
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import Instant
from mendflow.core.scheduling.amounts import size as size_text
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.domains.domain_lines import DomainLine
from mendflow.services.domains.request_bounds import REASON_CHARS_MAX, bounded_status
from mendflow.services.domains.work_documents import SentDocument

if TYPE_CHECKING:
    from mendflow.services.domains.sent_work import SentWorks

log = logging.getLogger("mendflow.domains")
_encode: Final = msgspec.json.Encoder().encode

GAP_MS: Final = 20
"""The least time between two requests, in which more to say comes together."""
HOLD_MS: Final = 10_000
SLOW_MS: Final = 10_000
"""How much longer than it may be held an answer may take."""
RETRY_MS: Final = 200
RETRY_MS_MAX: Final = 5_000
FLIGHTS_MAX: Final = 3
SENT_MAX: Final = 200
SENT_BYTES_MAX: Final = 4 << 20
"""So many pieces of work, and so many bytes of them, go in one request, unless a single one is larger."""
SENT_MIN: Final = 10
"""So many at least, however long the host takes over them."""
PIECE_BYTES_MAX: Final = 32 << 20
"""What is larger cannot be sent: with everything else that a request says, its host might take it no longer."""
LATENCY_MS: Final = 30_000
"""How often the latency is measured: by a request that the host answers at once."""
MARGIN_PERCENT: Final = 5
MARGIN_MS: Final = 1_000


class Silence(NamedTuple):
    since: Instant
    left_ms: int


class PeerLink:
    """`bound` is when the host's lease on what it may have of ours has ended for certain, by our own meter."""

    def __init__(self, works: "SentWorks", domain: str) -> None:
        self._works = works
        self.domain = domain
        self.lease_ms = works.lease_ms
        self.bound = 0
        self.latency_ms = 0.0
        self._measured_at: int | None = None
        self._open: dict[str, SentDocument] = {}
        self._unsent: dict[str, None] = {}  # keys that the host is not known to have
        self._sizes: dict[str, int] = {}  # of those
        self._added_at: dict[str, int] = {}  # by our meter; of those that were sent in this life
        self._offered: set[str] = set()  # keys that it may have
        self._sent_max = SENT_MAX
        self._acks: dict[str, SentDocument] = {}
        self._serial = 0
        self._heard = 0
        self._stamp, self._meter, self._stamp_heard_at = 0, "", 0
        self._silent_since: int | None = None
        self.heard_at: Instant = 0  # for people
        self._wake = asyncio.Event()
        self._flights: set[asyncio.Task[None]] = set()
        self._transfers: set[asyncio.Task[None]] = set()
        self._files: set[str] = set()  # keys whose files are on their way
        self._gap_ms = GAP_MS
        self._task: asyncio.Task[None] | None = None
        self._retry_ms = RETRY_MS

    # What is to be said

    def add(self, document: SentDocument) -> None:
        self._open[document.key] = document
        self._unsent[document.key] = None
        self._added_at[document.key] = self._works.meter()
        self.wake()

    def take_up(self, document: SentDocument) -> None:
        """After a restart, or from another server: the host may have it, and a whole lease on it."""
        self._open[document.key] = document
        self._offered.add(document.key)
        self.bound = max(self.bound, self._works.meter() + document.lease_ms)
        self.wake()

    def remove(self, document: SentDocument) -> None:
        """It is no longer claimed."""
        for known in (self._open, self._unsent, self._sizes, self._added_at):
            known.pop(document.key, None)
        self._offered.discard(document.key)
        self.wake()

    def acknowledge(self, document: SentDocument) -> None:
        self._acks[document.key] = document
        self.wake()

    def wake(self) -> None:
        self._wake.set()

    # Life

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"domain {self.domain}")

    async def stop(self) -> None:
        await cancel_tasks(self._task, *self._flights, *self._transfers)

    async def _run(self) -> None:
        while True:
            line = self._works.lines().get(self.domain)
            if line is None and not self._open:
                for document in list(self._acks.values()):  # there is nobody to be told
                    self._works.has_acknowledged(document)
                self._acks.clear()
                self._task = None
                return
            self._wake.clear()
            try:
                await self._turn(line)
            except StoreUnavailable as error:
                self._works.ledger.give_up(error.message)
                return
            except Exception:  # whatever was wrong with this turn, the leases must be renewed in the next
                log.exception("the exchange with the domain %s failed by an internal error; trying again", self.domain)
                await self._works.clock.sleep(RETRY_MS)
            self._judge_lost()

    async def _turn(self, line: DomainLine | None) -> None:
        """Send a request, and go on when its answer has come, or there is more to say."""
        clock = self._works.clock
        if line is None or len(self._flights) >= FLIGHTS_MAX:
            self._note_silence()
            await clock.sleep(self._retry_ms)
            return
        await self._works.ledger.settled()
        flight = self._begin(self._exchange(line, self._request()), self._flights)
        waking = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait({flight, waking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waking.cancel()
        await clock.sleep(self._gap_ms if self._silent_since is None else self._retry_ms)

    def _begin(self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> asyncio.Task[None]:
        def ended(task: asyncio.Task[None]) -> None:
            among.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("the exchange with the domain %s failed: %s", self.domain, error, exc_info=error)
                self._note_silence()

        task = asyncio.get_running_loop().create_task(work)
        among.add(task)
        task.add_done_callback(ended)
        return task

    def _note_silence(self) -> None:
        if self._silent_since is None:
            self._silent_since = self._works.meter()
        self._retry_ms = min(self._retry_ms * 2, RETRY_MS_MAX, max(RETRY_MS, self.lease_ms // 8))

    # Exchanges

    def _request(self) -> DomainRequest:
        self._serial += 1
        sent = self._to_send()
        if self._stamp:
            self.bound = max(self.bound, self._stamp_heard_at + self.lease_ms)
        self._offered.update(each.key for each in sent)
        return DomainRequest(
            sender=self._works.sender,
            serial=self._serial,
            heard=self._heard,
            report=self._works.reports.own_report(self.domain),
            sent=tuple(sent),
            claims=tuple(
                WorkClaim(each.key, each.fence, each.control, each.reason[:REASON_CHARS_MAX])
                for each in self._open.values()
                if each.key in self._offered
            ),
            granted_stamp=self._stamp,
            granted_meter=self._meter,
            lease_ms=self.lease_ms,
            acknowledged=tuple(WorkRef(each.key, each.fence) for each in self._acks.values()),
            hold_ms=self._hold_ms(),
        )

    def _hold_ms(self) -> int:
        """How long the host may wait for news: not if there was too much for one request, and not beyond the moment
        when something is to be sent."""
        if not self._heard:
            return 0  # the first answer, which brings the host's stamp and tells how far it is
        if self._acks:
            return 0  # only an answer tells that they have arrived
        if any(self._is_sendable(key) and key not in self._offered for key in self._unsent):
            return 0
        if self._measured_at is None or self._works.meter() - self._measured_at >= LATENCY_MS:
            return 0
        now = self._works.clock.now()
        later = [self._open[key].not_before - now for key in self._unsent if self._open[key].not_before > now]
        return min([HOLD_MS, self.lease_ms // 4, *later])

    def _is_sendable(self, key: str) -> bool:
        return key not in self._files and self._open[key].not_before <= self._works.clock.now()

    def _to_send(self) -> list[SentWork]:
        bytes_left, found = SENT_BYTES_MAX, list[SentWork]()
        for key in self._unsent:
            document = self._open[key]
            if document.work is None or not self._is_sendable(key):
                continue
            size = self._size_of(document.work)
            if size > PIECE_BYTES_MAX:
                self._works.lose(document, _too_large(self.domain, size))
                continue
            bytes_left -= size
            if len(found) >= self._sent_max or (found and bytes_left < 0):
                break
            found.append(replace(document.work, fence=document.fence))
        return found

    def _size_of(self, work: SentWork) -> int:
        """How many bytes it is in a request, whatever it consists of."""
        size = self._sizes.get(work.key)
        if size is None:
            size = self._sizes[work.key] = len(_encode(work))
        return size

    async def _exchange(self, line: DomainLine, request: DomainRequest) -> None:
        began = self._works.meter()
        try:
            async with asyncio.timeout((request.hold_ms + self._slow_ms()) / 1_000):
                answer = await line.exchange(request)
        except (TimeoutError, RequestError) as error:
            self._pace(request, self._works.meter() - began)
            failed = error if isinstance(error, RequestError) else Unreachable(f"{self.domain} does not answer")
            self._works.reports.exchange_failed(self.domain, failed)
            self._note_silence()
            return
        self._pace(request, self._works.meter() - began)
        self._hear(line, request, answer)
        if not request.hold_ms and (self._measured_at is None or not request.sent):  # taking work takes its time
            self._measured_at = self._works.meter()
            self.latency_ms = float(self._measured_at - began)
        self._works.reports.report_heard(self.domain, answer.report, self.latency_ms)

    def _pace(self, request: DomainRequest, took_ms: int) -> None:
        """Send less at a time to a host that takes long over it, so that its answers, which leases live from, come in
        time; and more again when it is quick."""
        if request.sent and took_ms - request.hold_ms > self._slow_ms() // 2:
            self._sent_max = max(SENT_MIN, min(self._sent_max, len(request.sent)) // 2)
        elif request.sent and took_ms <= self._slow_ms() // 4:
            self._sent_max = min(SENT_MAX, 2 * self._sent_max)

    def _slow_ms(self) -> int:
        return min(SLOW_MS, max(1_000, self.lease_ms // 4))

    def _hear(self, line: DomainLine, request: DomainRequest, answer: DomainAnswer) -> None:
        self._silent_since, self._retry_ms, self.heard_at = None, RETRY_MS, self._works.clock.now()
        if answer.meter != self._meter or answer.stamp > self._stamp:
            self._stamp, self._meter, self._stamp_heard_at = answer.stamp, answer.meter, self._works.meter()
        self._set_lease(max(self._works.lease_ms, min(answer.lease_min_ms, LEASE_MS_MAX)))
        self._heard = max(self._heard, answer.serial)
        for ref in request.acknowledged if answer.serial else ():
            document = self._acks.get(ref.key)
            if document is not None and document.fence == ref.fence:
                del self._acks[ref.key]
                self._works.has_acknowledged(document)
        asked = {each.key for each in request.sent} if request.granted_stamp else set()
        self._gap_ms = GAP_MS
        for status in (bounded_status(each, self.domain) for each in answer.works):
            if status.state == "unknown" and status.key in asked:
                self._gap_ms = RETRY_MS  # it cannot be taken at this moment
            document = self._open.get(status.key)
            if document is not None and self._is_current(document, status):
                self._take(document, status, line)
        if self._acks or any(map(self._is_sendable, self._unsent)):
            self.wake()

    def _set_lease(self, lease_ms: int) -> None:
        """Grant leases of this length from now on. Whoever takes the works over must know of the longest."""
        self.lease_ms = lease_ms
        for document in self._open.values():
            if document.lease_ms < lease_ms:
                document.lease_ms = lease_ms
                self._works.store(document)

    def _is_current(self, document: SentDocument, status: WorkStatus) -> bool:
        """Whether this is about what was sent last. What comes under an older fence is refused."""
        if status.fence != document.fence and status.state == "ended":
            log.warning(
                "%s reports the end of %s under fence %d, which is over (the latest is %d); it is refused",
                self.domain,
                document.key,
                status.fence,
                document.fence,
            )
        return status.fence == document.fence

    def _take(self, document: SentDocument, status: WorkStatus, line: DomainLine) -> None:
        key = document.key
        match status.state:
            case "unknown":
                self._unsent[key] = None
            case "missing-files":
                self._unsent[key] = None
                if key not in self._files:
                    self._files.add(key)
                    self._begin(self._give_files(document, status, line), self._transfers)
            case "refused":
                self._works.refused(document, status.reason)
            case "ended" if status.outcome is not None:
                self._has_it(key)
                self._works.ended_there(document, status, line)
            case _:
                self._has_it(key)
                self._works.moved(document, status)

    def _has_it(self, key: str) -> None:
        self._unsent.pop(key, None)
        self._sizes.pop(key, None)

    async def _give_files(self, document: SentDocument, status: WorkStatus, line: DomainLine) -> None:
        try:
            known = {each.sha256 for each in document.work.files} if document.work is not None else set()
            for sha256 in status.missing:
                if sha256 not in known:
                    raise Forbidden(f"the work does not refer to the file {sha256[:64]!r} that is asked for")
                await self._works.give_file(sha256, line)
        except (Unreachable, StoreUnavailable) as error:
            log.warning("the files of %s do not reach %s: %s", document.key, self.domain, error.message)
        except RequestError as error:
            message = f"a file of it cannot be given to {self.domain}: {error.message}"
            fault = Fault(name="notGiven", category=Category.DATA, message=message, stage=AttemptStage.STAGE_IN)
            self._works.lose(document, fault)
        finally:
            self._files.discard(document.key)
            self.wake()

    # Losing

    def silence(self) -> Silence | None:
        """If it does not answer: since when, and how long until what it has of ours counts as lost."""
        if self._silent_since is None:
            return None
        now, margin_ms = self._works.meter(), MARGIN_MS + self.lease_ms * MARGIN_PERCENT // 100
        silent_ms = now - self._silent_since
        left_ms = max(self.lease_ms - silent_ms, self.bound - now) + margin_ms
        return Silence(self.heard_at or self._works.clock.now() - silent_ms, max(0, left_ms))

    def _judge_lost(self) -> None:
        """Nothing was heard for so long that the host has certainly stopped whatever it had of ours. What was sent
        since has waited less long: the host may come back for it."""
        now = self._works.meter()
        if self._silent_since is None or not self._open:
            return
        margin_ms = MARGIN_MS + self.lease_ms * MARGIN_PERCENT // 100
        since_ms = now - self._silent_since
        if since_ms <= self.lease_ms + margin_ms or now <= self.bound + margin_ms:
            return
        for document in list(self._open.values()):
            added_at = self._added_at.get(document.key)
            if added_at is not None and now - added_at <= self.lease_ms + margin_ms:
                continue
            if document.key in self._offered:
                message = f"nothing was heard of {self.domain} for {since_ms // 1000} s: what it had has ended"
                self._works.lose(document, _away("lostThere", message))
            else:
                message = f"{self.domain} cannot be reached since {since_ms // 1000} s"
                self._works.lose(document, _away("domainUnreachable", message))


def _too_large(domain: str, size: int) -> Fault:
    message = (
        f"it is {size_text(size)} without its files, and no more than {size_text(PIECE_BYTES_MAX)} can be sent to"
        f" {domain}: give large values as files"
    )
    return Fault(name="tooLargeToSend", category=Category.INPUT, message=message, stage=AttemptStage.SUBMISSION)


def _away(name: str, message: str) -> Fault:
    return Fault(name=name, category=Category.SCHEDULER_DOWN, message=message, stage=AttemptStage.SUBMISSION)
