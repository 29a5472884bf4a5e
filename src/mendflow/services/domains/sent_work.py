"""The origin's side of work that is done in other domains: what was sent where, under which fence, and what came of it.

Everything that must not be lost is a document, written before it is told to anybody. A piece of work ends once: with
the outcome that its host keeps for us, after the files of it are here; or as lost there, when the last lease that was
granted has certainly ended. Whoever sent it is told then, and told again if it asks again after a crash."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from mendflow.core.model.domains import DomainReport, DomainRights, WorkStatus
from mendflow.core.model.errors import RequestError, StoreUnavailable, Unreachable
from mendflow.core.model.faults import CANCELLED_WORDS, AttemptStage, Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.clock import Meter
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import read_or_leave_out
from mendflow.services.cases.staging import Resolve
from mendflow.services.domains.domain_lines import DomainLine
from mendflow.services.domains.file_transfers import give_file
from mendflow.services.domains.hosted_cases import STOPPED_THERE
from mendflow.services.domains.outcome_files import ForeignName, OutcomeFiles, demand_known_names
from mendflow.services.domains.peer_link import RETRY_MS, RETRY_MS_MAX, PeerLink, Silence
from mendflow.services.domains.work_documents import SENT_KIND, SenderKind, SentDocument
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.domains")

LOSSES_MAX: Final = 20
REFUSED_THERE: Final = "refusedThere"

_decode = msgspec.json.Decoder(SentDocument).decode


class WorkOwner(Protocol):
    """Who has sent a piece of work. Both are called in the order of what happened, `ended` once in a process."""

    def work_moved(self, document: SentDocument, status: WorkStatus) -> None: ...
    async def work_ended(self, document: SentDocument) -> None: ...
    async def may_ask(self, document: SentDocument) -> bool:
        """Whether its outcome may still be asked for, after a crash."""
        ...


class DomainReports(Protocol):
    """What this domain says of itself, and what others say of themselves."""

    def own_report(self, domain: str) -> DomainReport | None:
        """What the other domain is told now; None if there is nothing new."""
        ...

    def report_heard(self, domain: str, report: DomainReport | None, latency_ms: float) -> None: ...
    def exchange_failed(self, domain: str, error: RequestError) -> None: ...


class NoReports:
    def own_report(self, domain: str) -> DomainReport | None:
        return None

    def report_heard(self, domain: str, report: DomainReport | None, latency_ms: float) -> None: ...
    def exchange_failed(self, domain: str, error: RequestError) -> None: ...


NO_REPORTS: Final = NoReports()
Lines = Callable[[], Mapping[str, DomainLine]]


class SentWorks:
    """`lines` are the lines to the domains that are connected now; `sender` is this server, in this life. Leases of
    `lease_ms` are granted, by `meter`. `rights_of` says what a domain may do here: how much it may bring, too.
    `resolve` gives the files of our catalogue."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        meter: Meter,
        files: FileStore,
        resolve: Resolve,
        lines: Lines,
        sender: str,
        lease_ms: int,
        rights_of: Callable[[str], DomainRights],
        reports: DomainReports = NO_REPORTS,
    ) -> None:
        self._rights_of = rights_of
        self._store = store
        self.ledger = ledger
        self.clock = clock
        self.meter = meter
        self._files = files
        self._resolve = resolve
        self.lines = lines
        self.sender = sender
        self.lease_ms = lease_ms
        self.reports = reports
        self._owners: dict[SenderKind, WorkOwner] = {}
        self._works: dict[str, SentDocument] = {}
        self._links: dict[str, PeerLink] = {}
        self._ended_before: list[SentDocument] = []  # by what was loaded
        self._fetching: set[tuple[str, int]] = set()  # keys and fences of outcomes that are being taken
        self._background = BackgroundTasks(ledger)
        self._started = False

    def own(self, kind: SenderKind, owner: WorkOwner) -> None:
        """This service sends work of this kind."""
        self._owners[kind] = owner

    # Life

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees are loaded: what they have sent, and the outcomes that were not acknowledged
        yet, of whatever case."""
        async for found in self._store.scan(SENT_KIND):
            document = read_or_leave_out(found, _decode)
            if document is None or document.key in self._works:
                continue
            if document.acknowledged:
                if root_of(document.key) in roots:
                    self.ledger.known(SENT_KIND, document.key, found.version)
                    self._background.start(self.forget(document))
                continue
            if root_of(document.key) not in roots and document.outcome is None:
                continue  # another server's
            if document.outcome is None:
                self._take_up(document, found.version)
            else:
                self.ledger.known(SENT_KIND, document.key, found.version)
                self._link(document.domain).acknowledge(document)
                if root_of(document.key) in roots:
                    self._ended_before.append(document)

    async def resume(self) -> None:
        """When the cases are loaded: tell the owners of what had ended. They may have had no time to write that down,
        and a case that has it from elsewhere does not ask again."""
        ended, self._ended_before = self._ended_before, []
        for document in ended:
            if document.kind == "job":
                await self._owners["job"].work_ended(document)

    def start(self) -> None:
        self._started = True
        self.lines_changed()

    def lines_changed(self) -> None:
        """A domain was connected or disconnected."""
        for domain in sorted({*self.lines(), *self._links}):
            link = self._link(domain)
            if self._started:
                link.start()
                link.wake()

    async def stop(self) -> None:
        await asyncio.gather(*(link.stop() for link in self._links.values()))
        await self._background.stop()

    def _link(self, domain: str) -> PeerLink:
        link = self._links.get(domain)
        if link is None:
            link = self._links[domain] = PeerLink(self, domain)
            if self._started:
                link.start()
        return link

    # What its owners do

    async def find(self, key: str) -> SentDocument | None:
        """A piece of work, also one whose outcome is known and was not acknowledged yet."""
        known = self._works.get(key)
        if known is None:
            await self.ledger.settled()
            found = await self._store.get(SENT_KIND, key)
            known = _decode(found.body) if found is not None else None
        return known

    async def take_up(self, key: str) -> SentDocument | None:
        """A piece of work that was sent before, by whichever server: if its outcome is not known, it is ours now."""
        if key in self._works:
            return self._works[key]
        await self.ledger.settled()
        found = await self._store.get(SENT_KIND, key)
        if found is None or key in self._works:
            return self._works.get(key)
        document = _decode(found.body)
        if document.outcome is None:
            self._take_up(document, found.version)
        elif document.acknowledged:
            self.ledger.known(SENT_KIND, key, found.version)
        return document

    def _take_up(self, document: SentDocument, version: int) -> None:
        self.ledger.known(SENT_KIND, document.key, version)
        self._works[document.key] = document
        link = self._link(document.domain)
        link.take_up(document)
        if self._started:
            link.start()

    def open_work(self, key: str) -> SentDocument | None:
        """A piece of work whose outcome is not known."""
        return self._works.get(key)

    def works_at(self, domain: str) -> int:
        return sum(each.domain == domain for each in self._works.values())

    def silence(self, domain: str) -> Silence | None:
        """If the domain does not answer: since when, and how long until what it has counts as lost."""
        link = self._links.get(domain)
        return link.silence() if link is not None else None

    def is_reachable(self, domain: str) -> bool:
        return domain in self.lines()

    def send(self, document: SentDocument) -> None:
        """Send a piece of work. It is on disk before it leaves."""
        document.sent_at, document.lease_ms = self.clock.now(), self._link(document.domain).lease_ms
        self._works[document.key] = document
        self.ledger.touch(SENT_KIND, document.key, document)
        link = self._link(document.domain)
        link.add(document)
        if self._started:
            link.start()

    def store(self, document: SentDocument) -> None:
        """Write what has changed in a piece of work."""
        self.ledger.touch(SENT_KIND, document.key, document)

    def control(self, key: str, control: str, reason: str = "") -> None:
        document = self._works.get(key)
        if document is None or document.control in (control, "cancel"):
            return
        document.control, document.reason = control, reason  # type: ignore[assignment]  # a WorkControl
        self.ledger.touch(SENT_KIND, key, document)
        self._link(document.domain).wake()

    def withdraw(self, key: str, reason: str) -> None:
        """Nobody waits for it any more: its host is told to stop it, and what comes of it is nobody's concern."""
        document = self._works.pop(key, None)
        if document is None:
            return
        fault = Fault(name="cancelled", category=Category.CANCELLED, message=reason or CANCELLED_WORDS)
        self._finish(document, Outcome(fault=fault))
        self._drop(document)

    def _drop(self, document: SentDocument) -> None:
        """Claim it no longer, and tell the host until it knows."""
        link = self._link(document.domain)
        link.remove(document)
        link.acknowledge(document)

    # What links tell

    def moved(self, document: SentDocument, status: WorkStatus) -> None:
        if status.case and document.there != status.case:
            document.there = status.case
        self._owners[document.kind].work_moved(document, status)

    def ended_there(self, document: SentDocument, status: WorkStatus, line: DomainLine) -> None:
        """Its host keeps an outcome for us."""
        fault = status.outcome.fault if status.outcome is not None else None
        if fault is not None and fault.name == STOPPED_THERE and document.control != "cancel":
            self._send_anew(document, fault)
        elif (document.key, document.fence) not in self._fetching:
            self._fetching.add((document.key, document.fence))
            self._owners[document.kind].work_moved(document, status)
            self._background.start(self._take_outcome(document, document.fence, status, line))

    def _send_anew(self, document: SentDocument, fault: Fault) -> None:
        """The host has stopped it, of itself: no fault of the work."""
        if document.losses >= LOSSES_MAX:
            self.lose(document, replace(fault, name="lostThere"))
            return
        document.losses += 1
        document.fence += 1
        self.ledger.touch(SENT_KIND, document.key, document)
        self._link(document.domain).add(document)

    def refused(self, document: SentDocument, reason: str) -> None:
        message = f"{document.domain} refused it: {reason or 'it gave no reason'}"
        fault = Fault(name=REFUSED_THERE, category=Category.REFUSED, message=message, stage=AttemptStage.SUBMISSION)
        self.lose(document, fault)

    def lose(self, document: SentDocument, fault: Fault) -> None:
        """It did not come to an end there that we could know of."""
        if self._works.pop(document.key, None) is None:
            return
        self._finish(document, Outcome(fault=fault))
        self._background.start(self._told(document))

    async def _told(self, document: SentDocument) -> None:
        """Tell its owner, then claim it no longer. An owner that fails over it must not keep the host from being told:
        what it needs is stored, and it is told again when its case is loaded again."""
        try:
            await self._owners[document.kind].work_ended(document)
        except StoreUnavailable:
            raise
        except Exception:  # whatever is wrong with its owner, the host must learn that it is over
            log.exception(
                "%s has ended in %s; telling of it failed by an internal error", document.key, document.domain
            )
        self._drop(document)

    def _finish(self, document: SentDocument, outcome: Outcome) -> None:
        document.outcome, document.ended_at, document.work = outcome, self.clock.now(), None
        self.ledger.touch(SENT_KIND, document.key, document)

    async def _take_outcome(self, document: SentDocument, fence: int, status: WorkStatus, line: DomainLine) -> None:
        """Fetch the files of an outcome, then accept it. What fails on the way is tried again for as long as the host
        holds a lease on the work."""
        outcome = status.outcome
        assert outcome is not None
        try:
            outcome = await self._with_files(document, fence, outcome, line)
        finally:
            self._fetching.discard((document.key, fence))
        if self._is_open(document, fence):
            del self._works[document.key]
            document.tries = status.tries
            self._finish(document, outcome)
            await self._told(document)

    def _is_open(self, document: SentDocument, fence: int) -> bool:
        return self._works.get(document.key) is document and document.fence == fence

    async def _with_files(self, document: SentDocument, fence: int, outcome: Outcome, line: DomainLine) -> Outcome:
        """The outcome, when its files are here; or the fault that they are not given."""
        pause_ms = RETRY_MS
        sent = {each.sha256 for each in document.work.files} if document.work is not None else set[str]()
        bytes_max = self._rights_of(document.domain).bytes_max
        files = OutcomeFiles(
            outcome, sent, bytes_max, files=self._files, clock=self.clock, source=f"outcomes of {document.domain}"
        )
        while self._is_open(document, fence):
            try:
                await demand_known_names(outcome, document.work, self._resolve)
                await files.fetch(line)
                return files.without_foreign(outcome)
            except (StoreUnavailable, Unreachable) as error:
                log.warning("the files of %s cannot be fetched now: %s; trying again", document.key, error.message)
            except ForeignName as error:
                return _refused_outcome("foreignName", f"{document.domain} has done it, and {error.message}")
            except RequestError as error:
                message = f"{document.domain} has done it, and does not give its files: {error.message}"
                return _refused_outcome("notFetched", message)
            await self.clock.sleep(pause_ms)
            pause_ms = min(2 * pause_ms, RETRY_MS_MAX)
            line = self.lines().get(document.domain, line)
        return outcome

    async def give_file(self, sha256: str, line: DomainLine) -> None:
        """Give the host a file that it lacks."""
        await give_file(line, sha256, files=self._files, clock=self.clock)

    def has_acknowledged(self, document: SentDocument) -> None:
        """The host knows that we have the outcome."""
        document.acknowledged = True
        if document.kind == "job":
            self.ledger.drop(SENT_KIND, document.key)  # the job's own document has it
        else:
            self.ledger.touch(SENT_KIND, document.key, document)
            self._background.start(self.forget(document))

    async def forget(self, document: SentDocument) -> None:
        """Drop the document of a piece of work that is acknowledged, unless somebody may still ask for it."""
        if document.acknowledged and not await self._owners[document.kind].may_ask(document):
            self.ledger.drop(SENT_KIND, document.key)


def _refused_outcome(name: str, message: str) -> Outcome:
    return Outcome(fault=Fault(name=name, category=Category.DATA, message=message, stage=AttemptStage.STAGE_OUT))
