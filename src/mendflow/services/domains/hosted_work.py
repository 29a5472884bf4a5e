"""The host's side of work that other domains send: takes each piece once, does it while it has a lease on it, and keeps
its outcome until the origin has it.

A piece of work is a case here. Its name follows from the origin, the key and the fence, so it begins once, whatever is
repeated. The document of the work is written before the case begins; whatever of both is missing after a crash is made
up for when the origin, which still claims the work, sends it again. The origin's wishes stand in the document, and the
server that the case lives on carries them out: so any server on the store can be asked."""

import asyncio
from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.domains import (
    LEASE_MS_MAX,
    DomainAnswer,
    DomainReport,
    DomainRequest,
    DomainRights,
    SentWork,
    WorkClaim,
    WorkRef,
    WorkState,
    WorkStatus,
)
from mendflow.core.model.errors import InvalidRequest, RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.case_starter import demand_key
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import CaseDocument, Confinement
from mendflow.services.domains.hosted_cases import flow_of_work
from mendflow.services.domains.hosted_register import HostedWork
from mendflow.services.domains.hosted_runs import LOOK_MS, HostedRuns
from mendflow.services.domains.waiting import first_of
from mendflow.services.domains.work_documents import DOMAIN_PORT, HostedDocument, hosted_id
from mendflow.services.domains.work_files import files_in_outcome, files_of_work

HOLD_MS_MAX: Final = 30_000
SENDER_CHARS_MAX: Final = 200
SENT_WORKS_MAX: Final = 1_000
FILES_MAX: Final = 10_000
CLAIMS_MAX: Final = 100_000
DIGESTS_MAX: Final = 200_000
"""So many files are remembered for a domain, as asked for and as delivered; then the oldest are forgotten."""


class _Seat:
    """A server of an origin: its newest request, and an event for the one whose answer is held."""

    def __init__(self) -> None:
        self.newest = -1
        self.news = asyncio.Event()


class HostedWorks:
    """`shared`: other servers are on the store: a case may live on one of them."""

    def __init__(
        self, *, ledger: Ledger, clock: Clock, flows: Flows, files: FileStore, runs: HostedRuns, shared: bool
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._flows = flows
        self._files = files
        self._runs = runs
        self._register = runs.register
        self.leases = runs.leases
        self._shared = shared
        self._seats: dict[tuple[str, str], _Seat] = {}
        # by origin: digests of files that we have asked it for, and of those that it has delivered to this server
        self._missing: dict[str, dict[str, None]] = {}
        self._delivered: dict[str, dict[str, None]] = {}
        self._stopping = False
        runs.listen(self._news)

    def stop(self) -> None:
        """Answer what is held."""
        self._stopping = True
        for seat in self._seats.values():
            seat.news.set()

    def _news(self, sender: tuple[str, str]) -> None:
        if (seat := self._seats.get(sender)) is not None:
            seat.news.set()

    # The exchange

    async def exchange(
        self, origin: str, rights: DomainRights, request: DomainRequest, report: DomainReport | None = None
    ) -> DomainAnswer:
        """Answer a server of another domain: at once if there is news for it, else when there is."""
        _demand_bounded(request)
        seat = self._seats.setdefault((origin, request.sender), _Seat())
        if request.serial <= seat.newest:
            return self._answer(())  # a newer request, which said more, came first
        seat.newest = request.serial
        seat.news.set()
        seat.news = asyncio.Event()
        until = self.leases.end_of(request.granted_stamp, request.granted_meter, request.lease_ms)
        if request.claims or request.sent:
            await self.leases.extend(origin, request.sender, until, min(request.lease_ms, LEASE_MS_MAX))
            self._runs.note_due()
        named: list[WorkRef | SentWork | WorkClaim] = [*request.acknowledged, *request.sent, *request.claims]
        known = await self._register.read(list(dict.fromkeys(hosted_id(origin, each.key) for each in named)))
        for work in known.values():
            await self._runs.find_case(work)
        for ref in request.acknowledged:
            await self._acknowledge(known.get(hosted_id(origin, ref.key)), ref.fence)
        said = await self._take_all(origin, rights, request, known, covered=self.leases.covers(until))
        claimed = await self._hear_claims(origin, request, said, known)
        await self._drop_unclaimed(origin, request)
        await self._ledger.settled()
        works = await self._hold(request, seat, claimed, said)
        serial = request.serial if seat.newest == request.serial else 0
        return replace(self._answer(works), serial=serial, report=report)

    def _answer(self, works: Collection[WorkStatus]) -> DomainAnswer:
        return DomainAnswer(
            stamp=self.leases.now(),
            meter=self.leases.meter,
            lease_min_ms=3 * self.leases.guard_ms,
            works=tuple(works),
        )

    async def _hold(
        self, request: DomainRequest, seat: _Seat, claimed: Collection[HostedWork], said: dict[str, WorkStatus]
    ) -> list[WorkStatus]:
        """The statuses that are new to the origin; wait until there are some, unless it wants an answer at once."""
        until = self._clock.now() + min(request.hold_ms, HOLD_MS_MAX)
        while True:
            if self._shared:
                for work in claimed:
                    await self._runs.refresh(work)
            told = [work for work in claimed if not 0 < work.told <= request.heard and self._runs.may_tell(work)]
            left_ms = until - self._clock.now()
            if told or said or left_ms <= 0 or seat.newest != request.serial or self._stopping:
                break
            quiet = [work.quiet_at - self.leases.now() for work in claimed if not self._runs.may_tell(work)]
            look_ms = min([left_ms, *(max(1, ms) for ms in quiet), *([LOOK_MS] if self._shared else [])])
            await first_of(seat.news.wait(), self._clock.sleep(look_ms))
            seat.news.clear()
        if seat.newest != request.serial:
            return list(said.values())  # a newer answer says the rest, or has said less: nothing counts as told
        for work in told:
            work.told = work.told or request.serial
        return [*said.values(), *(work.status for work in told)]

    # Taking

    async def _take_all(
        self,
        origin: str,
        rights: DomainRights,
        request: DomainRequest,
        known: dict[str, HostedWork],
        *,
        covered: bool,
    ) -> dict[str, WorkStatus]:
        """Take what was sent; returns what there is to say of works that were not taken."""
        taking = []
        for each in request.sent:
            before = known.get(hosted_id(origin, each.key))
            taking.append(self._take(origin, rights, request, each, before, covered))
        said = await asyncio.gather(*taking)
        return {status.key: status for status in said if status is not None}

    async def _take(
        self,
        origin: str,
        rights: DomainRights,
        request: DomainRequest,
        work: SentWork,
        known: HostedWork | None,
        covered: bool,
    ) -> WorkStatus | None:
        """Take a piece of work that was sent, unless it was taken before; what there is to say, if it was not taken."""
        id = hosted_id(origin, work.key)
        if id in self._register.taking:
            return _status(work, "unknown", "it is being taken at this moment")
        if known is not None and (known.document.fence > work.fence or known.document.over):
            return _stale(work, known)
        if known is not None and known.document.fence == work.fence and known.case:
            return None
        if not covered:
            return _status(work, "unknown", "there is no lease on it yet")
        self._register.taking.add(id)
        try:
            if known is not None and known.document.fence == work.fence:
                return await self._begin(rights, work, known)
            if known is not None and not await self._runs.is_over(known):
                return _status(work, "unknown", "the one that was sent before is being stopped")
            return await self._take_new(origin, rights, request, work, known)
        except StoreUnavailable:
            raise
        except RequestError as error:
            return _status(work, "refused", error.message)
        finally:
            self._register.taking.discard(id)

    async def _take_new(
        self, origin: str, rights: DomainRights, request: DomainRequest, work: SentWork, before: HostedWork | None
    ) -> WorkStatus | None:
        flow = flow_of_work(work, rights, self._flows)
        if self._register.count(origin) >= rights.work_max:
            return _status(
                work, "refused", f"your domain has {rights.work_max} pieces of work here, and may have no more"
            )
        files = files_of_work(work, flow)
        if len(files) > FILES_MAX:
            return _status(work, "refused", f"it has {len(files)} files, and no more than {FILES_MAX} are taken")
        size = sum(max(0, each.bytes) for each in files)
        if size and size + self._register.bytes_of(origin) > rights.bytes_max:
            reason = (
                f"with its files your domain would have more than the {rights.bytes_max} bytes here that it may have"
            )
            return _status(work, "refused", reason)
        missing = [each.sha256 for each in files if not await self._has_of(origin, each.sha256)]
        if missing:
            _remember(self._missing.setdefault(origin, {}), missing)
            return replace(_status(work, "missing-files"), missing=tuple(missing))
        document = HostedDocument(
            origin=origin,
            key=work.key,
            fence=work.fence,
            flow=flow.name,
            single=work.job is not None,
            bytes=size,
            sender=request.sender,
            serial=request.serial,
            taken_at=self._clock.now(),
        )
        known = await self._register.add(document, before.version if before is not None else 0)
        if known is None:
            return _status(work, "unknown", "another server takes it at this moment")
        return await self._begin(rights, work, known)

    async def _begin(self, rights: DomainRights, work: SentWork, known: HostedWork) -> WorkStatus | None:
        document = known.document
        try:
            flow = await self._flows.sealed(flow_of_work(work, rights, self._flows))
            wanted = CaseDocument(
                id=CaseId(""),
                flow=flow.name,
                digest=self._flows.digest(flow),
                inputs=await self._flows.sealed_inputs(work.inputs),
                owner=f"{document.origin}/{work.owner}",
                key=document.case_key,
                port=DOMAIN_PORT,
                cache="none",
                confined=Confinement(sites=rights.sites, flows=rights.flows),
            )
            begun = await self._runs.starter.begin(wanted, flow)
        except StoreUnavailable:
            raise
        except RequestError as error:
            await self._register.change(known, over=True)
            return _status(work, "refused", error.message)
        self._runs.attach(known, begun)
        return None

    # Claims

    async def _hear_claims(
        self, origin: str, request: DomainRequest, said: dict[str, WorkStatus], known: dict[str, HostedWork]
    ) -> list[HostedWork]:
        """Note what the origin wants of each piece of work; returns those that are there."""
        found = []
        for claim in request.claims:
            if claim.key in said:
                continue
            id = hosted_id(origin, claim.key)
            work = self._register.works.get(id) or known.get(id)
            if work is None or work.document.fence < claim.fence or not (work.case or work.document.over):
                said[claim.key] = WorkStatus(key=claim.key, fence=claim.fence, state="unknown")
            elif work.document.fence > claim.fence or work.document.over:
                said[claim.key] = _stale(claim, work)
            else:
                await self._hear_claim(work, claim, request)
                found.append(work)
        return found

    async def _hear_claim(self, work: HostedWork, claim: WorkClaim, request: DomainRequest) -> None:
        document, sender = work.document, (work.document.origin, request.sender)
        if work.sender != sender and self.leases.until(*sender) > self.leases.until(*work.sender):
            await self._register.change(work, sender=request.sender, serial=request.serial)
            work.told = 0
            self._runs.note_due()
        if document.control not in (claim.control, "cancel"):
            await self._register.change(work, control=claim.control, reason=claim.reason)
            await self._runs.carry_out(work)

    async def _drop_unclaimed(self, origin: str, request: DomainRequest) -> None:
        """What this server of the origin claimed before, and claims no longer, is stopped and forgotten."""
        claimed = {claim.key for claim in request.claims} | {work.key for work in request.sent}
        for work in self._register.claimed_by((origin, request.sender)):
            if work.document.key not in claimed and request.serial > work.document.serial:
                await self._runs.give_up(work, f"{origin} no longer wants it")

    async def _acknowledge(self, work: HostedWork | None, fence: int) -> None:
        """The origin has the outcome, or does without one."""
        if work is None or work.document.fence > fence or work.document.over:
            return
        await self._runs.give_up(work, f"{work.document.origin} no longer wants it")

    async def disconnect(self, origin: str) -> None:
        """The domain is no longer connected: its work is stopped, and its outcomes are dropped."""
        await self.leases.forget(origin)
        self._missing.pop(origin, None)
        self._delivered.pop(origin, None)
        for work in await self._register.read_all():
            if work.document.origin == origin:
                await self._runs.find_case(work)
                await self._runs.give_up(work, f"{origin} is no longer connected")

    def held(self, origin: str) -> int:
        """How many pieces of work of a domain are here."""
        return self._register.count(origin)

    def wants_file(self, origin: str, sha256: str) -> bool:
        """Whether a domain was asked for this file."""
        return sha256 in self._missing.get(origin, ())

    def file_delivered(self, origin: str, sha256: str) -> None:
        """A domain has sent this file, whole: work of it may refer to it."""
        self._missing.get(origin, {}).pop(sha256, None)
        _remember(self._delivered.setdefault(origin, {}), [sha256])

    async def _has_of(self, origin: str, sha256: str) -> bool:
        """Whether a file is here that this domain has shown to have. One that others have brought is not there for it:
        whoever knows no more than a digest must not get what it is of."""
        own = sha256 in self._delivered.get(origin, ()) or self.may_read(origin, sha256)
        return own and await self._files.size(sha256) is not None

    def may_read(self, origin: str, sha256: str) -> bool:
        """Whether a file belongs to an outcome that is kept for this domain."""
        return any(
            sha256 in {each.sha256 for each in files_in_outcome(work.status.outcome)}
            for work in self._register.works.values()
            if work.document.origin == origin and work.status.outcome is not None
        )


def _remember(known: dict[str, None], digests: Collection[str]) -> None:
    for sha256 in digests:
        known.pop(sha256, None)
        known[sha256] = None
    while len(known) > DIGESTS_MAX:
        del known[next(iter(known))]


def _demand_bounded(request: DomainRequest) -> None:
    """Refuse a request that no server of ours would send."""
    if not 0 < len(request.sender) <= SENDER_CHARS_MAX or not request.sender.isprintable():
        raise InvalidRequest(f"sender: a server is named in one line of at most {SENDER_CHARS_MAX} characters")
    if len(request.sent) > SENT_WORKS_MAX:
        raise InvalidRequest(
            f"sent: {len(request.sent)} pieces of work are too many for one request; send at most {SENT_WORKS_MAX}"
        )
    for name, refs in (("claims", request.claims), ("acknowledged", request.acknowledged)):
        if len(refs) > CLAIMS_MAX:
            raise InvalidRequest(f"{name}: a request names at most {CLAIMS_MAX} pieces of work, and this {len(refs)}")
    for each in (*request.sent, *request.claims, *request.acknowledged):
        demand_key(each.key, "key")


def _status(work: SentWork, state: WorkState, reason: str = "") -> WorkStatus:
    return WorkStatus(key=work.key, fence=work.fence, state=state, reason=reason)


def _stale(asked: SentWork | WorkClaim, known: HostedWork) -> WorkStatus:
    over = "its outcome was acknowledged, or it was given up" if known.document.over else "it was sent anew since"
    reason = f"{over}, under fence {known.document.fence}"
    return WorkStatus(key=asked.key, fence=asked.fence, state="refused", reason=reason)
