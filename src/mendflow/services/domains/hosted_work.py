"""The host's side of work that other domains send: takes each piece once, does it while it has a lease on it, and keeps
its outcome until the origin has it.

A piece of work is a case here. Its name follows from the origin, the key and the fence, so it begins once, whatever is
repeated. The document of the work is written before the case begins; whatever of both is missing after a crash is made
up for when the origin, which still claims the work, sends it again. The origin's wishes stand in the document, and the
server that the case lives on carries them out: so any server on the store can be asked."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
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
from mendflow.core.model.errors import RequestError, StoreUnavailable, TemporarilyUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.services.base.background_tasks import first_of
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import CaseDocument, Confinement
from mendflow.services.domains.hosted_cases import flow_of_work
from mendflow.services.domains.hosted_register import HostedWork
from mendflow.services.domains.hosted_room import HostedRoom
from mendflow.services.domains.hosted_runs import LOOK_MS, NO_LONGER_CONNECTED, NO_LONGER_WANTED, HostedRuns
from mendflow.services.domains.request_bounds import FILES_MAX, demand_bounded, demand_plain
from mendflow.services.domains.work_documents import DOMAIN_PORT, HostedDocument, hosted_id
from mendflow.services.domains.work_files import files_in_outcome, files_of_work, logical_files_in_flow

HOLD_MS_MAX: Final = 30_000
SEATS_MAX: Final = 256
"""How many servers of one origin are known at a time."""


class _Seat:
    """A server of an origin: its newest request, and an event for the one whose answer is held."""

    def __init__(self) -> None:
        self.held = 0  # how many requests are being answered
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
        self._room = HostedRoom(runs.register, files, clock)
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
        demand_bounded(request)
        seat = await self._seat(origin, request.sender)
        if request.serial <= seat.newest:
            return self._answer(())  # a newer request, which said more, came first
        seat.held += 1
        try:
            return await self._hear(origin, rights, request, report, seat)
        finally:
            seat.held -= 1

    async def _seat(self, origin: str, sender: str) -> _Seat:
        """The seat of a server of an origin. Each that was started anew takes another, so those that were empty for
        longest are given up, with the leases that no work hangs on."""
        of = (origin, sender)
        seat = self._seats[of] = self._seats.pop(of) if of in self._seats else _Seat()
        others = [each for each in self._seats if each[0] == origin and each != of]
        idle = [each for each in others if not self._seats[each].held and not self._register.claimed_by(each)]
        surplus = len(others) + 1 - SEATS_MAX
        if surplus > len(idle):
            del self._seats[of]
            raise TemporarilyUnavailable(f"{SEATS_MAX} servers of your domain are heard at a time; ask again later")
        for each in idle[: max(0, surplus)]:
            del self._seats[each]
            await self.leases.drop(*each)
        return seat

    async def _hear(
        self, origin: str, rights: DomainRights, request: DomainRequest, report: DomainReport | None, seat: _Seat
    ) -> DomainAnswer:
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
        await self._hear_acknowledged(origin, request, known)
        said = await self._take_all(origin, rights, request, known, covered=self.leases.covers(until))
        claimed = await self._hear_claims(origin, request, said, known)
        await self._drop_unclaimed(origin, request)
        await self._room.tidy(origin, request.sender, {hosted_id(origin, each.key) for each in named})
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
        await self._runs.explain(claimed)
        self._runs.add_log_tails(claimed)
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
        """Take what was sent; returns what there is to say of works that were not taken. What other servers have taken
        counts too."""
        if self._shared and request.sent:
            await self._register.read_all_anew()
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
                if known.document.sender != request.sender:  # whose lease holds, unlike that of an earlier life
                    await self._change_sender([known], request)
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
        demand_plain(work)
        await self._runs.files.demand_logical(logical_files_in_flow(work.inputs), self._project(work))
        flow = await flow_of_work(work, rights, self._flows)
        files = files_of_work(work, flow)
        if len(files) > FILES_MAX:
            return _status(work, "refused", f"it has {len(files)} files, and no more than {FILES_MAX} are taken")
        id, sizes, missing = hosted_id(origin, work.key), dict[str, int](), list[str]()
        for each in files:
            stored = await self._size_of(origin, each.sha256)
            sizes[each.sha256] = stored if stored is not None else max(0, each.bytes)
            if stored is None:
                missing.append(each.sha256)
        before_document = before.document if before is not None else None
        self._room.reserve(origin, id, rights, sizes)
        try:
            if missing:
                self._room.ask(origin, request.sender, id, sizes)
                return replace(_status(work, "missing-files"), missing=tuple(missing))
            known = await self._add(origin, request, work, flow.name, sizes, before)
        finally:
            self._room.release(origin, id)
        if known is None:
            return _status(work, "unknown", "another server takes it at this moment")
        if self._shared and await self._is_too_much(origin, rights):
            await self._register.undo_add(known, before_document)
            return _status(work, "unknown", "other servers take work of your domain at this moment")
        self._room.settle_files(origin, sizes)
        return await self._begin(rights, work, known)

    async def _is_too_much(self, origin: str, rights: DomainRights) -> bool:
        """Whether other servers have taken so much meanwhile that there is no room any more."""
        await self._register.read_all_anew()
        return self._room.is_exceeded(origin, rights)

    async def _add(
        self,
        origin: str,
        request: DomainRequest,
        work: SentWork,
        flow: str,
        sizes: Mapping[str, int],
        before: HostedWork | None,
    ) -> HostedWork | None:
        document = HostedDocument(
            origin=origin,
            key=work.key,
            fence=work.fence,
            flow=flow,
            single=work.job is not None,
            by_name=work.job is None and not bytes(work.flow),
            bytes=sum(sizes.values()),
            files=tuple(sizes),
            sender=request.sender,
            serial=request.serial,
            taken_at=self._clock.now(),
        )
        return await self._register.add(document, before.version if before is not None else 0)

    async def _begin(self, rights: DomainRights, work: SentWork, known: HostedWork) -> WorkStatus | None:
        document = known.document
        try:
            flow = await self._flows.sealed(await flow_of_work(work, rights, self._flows))
            wanted = CaseDocument(
                id=CaseId(""),
                flow=flow.name,
                digest=self._flows.digest(flow),
                inputs=await self._flows.sealed_inputs(work.inputs),
                owner=f"{document.origin}/{work.owner}",
                project=self._project(work),
                key=document.case_key,
                port=DOMAIN_PORT,
                cache="none",
                way=work.way,
                confined=Confinement(sites=rights.sites, flows=rights.flows),
            )
            begun = await self._runs.starter.begin(wanted, flow)
        except StoreUnavailable:
            raise
        except RequestError as error:
            await self._register.change(known, over=True, over_at=self._clock.now())
            return _status(work, "refused", error.message)
        self._runs.attach(known, begun)
        return None

    def _project(self, work: SentWork) -> str:
        """A flow of this domain that was asked for by its name keeps its project."""
        by_name = work.job is None and not bytes(work.flow)
        return (self._flows.project_of(work.name) if by_name else None) or DEFAULT_PROJECT

    # Claims

    async def _hear_claims(
        self, origin: str, request: DomainRequest, said: dict[str, WorkStatus], known: dict[str, HostedWork]
    ) -> list[HostedWork]:
        """Note what the origin wants of each piece of work; returns those that are there."""
        found, newly = list[tuple[HostedWork, WorkClaim]](), list[HostedWork]()
        sender = (origin, request.sender)
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
                found.append((work, claim))
                if work.sender != sender and self.leases.until(*sender) > self.leases.until(*work.sender):
                    newly.append(work)
        await self._change_sender(newly, request)
        for work, claim in found:
            if work.document.control not in (claim.control, "cancel"):
                await self._register.change(work, control=claim.control, reason=claim.reason)
                await self._runs.carry_out(work)
        return [work for work, _ in found]

    async def _change_sender(self, works: Sequence[HostedWork], request: DomainRequest) -> None:
        """Another server of the origin claims these, or the same one in a new life."""
        if not works:
            return
        change = {"sender": request.sender, "serial": request.serial}
        await self._register.change_all([(work, change) for work in works])
        for work in works:
            work.told = 0
        self._runs.note_due()

    async def _drop_unclaimed(self, origin: str, request: DomainRequest) -> None:
        """What this server of the origin claimed before, and claims no longer, is stopped and forgotten."""
        claimed = {claim.key for claim in request.claims} | {work.key for work in request.sent}
        unclaimed = [
            work
            for work in self._register.claimed_by((origin, request.sender))
            if work.document.key not in claimed and request.serial > work.document.serial
        ]
        await self._runs.give_up(unclaimed, NO_LONGER_WANTED)

    async def _hear_acknowledged(self, origin: str, request: DomainRequest, known: dict[str, HostedWork]) -> None:
        """The origin has these outcomes, or does without them."""
        works = [(known.get(hosted_id(origin, ref.key)), ref.fence) for ref in request.acknowledged]
        over = [work for work, fence in works if work and work.document.fence <= fence and not work.document.over]
        await self._runs.give_up(over, NO_LONGER_WANTED)

    async def disconnect(self, origin: str) -> None:
        """The domain is no longer connected: its work is stopped, and its outcomes are dropped."""
        await self.leases.forget(origin)
        self._room.forget(origin)
        works = [work for work in await self._register.read_all() if work.document.origin == origin]
        for work in works:
            await self._runs.find_case(work)
        await self._runs.give_up(works, NO_LONGER_CONNECTED)

    def held(self, origin: str) -> int:
        """How many pieces of work of a domain are here."""
        return self._register.count(origin)

    def wants_file(self, origin: str, sha256: str) -> bool:
        """Whether a domain was asked for this file."""
        return self._room.file_bytes_max(origin, sha256) is not None

    def file_bytes_max(self, origin: str, sha256: str) -> int:
        """How large a file may be that a domain was asked for."""
        return self._room.file_bytes_max(origin, sha256) or 0

    def file_delivered(self, origin: str, sha256: str) -> None:
        """A domain has sent this file, whole: work of it may refer to it."""
        self._room.deliver(origin, sha256)

    async def _size_of(self, origin: str, sha256: str) -> int | None:
        """The size of a file that is here, and that this domain has shown to have: by work of it that is here, or since
        this server began. One that others have brought is not there for it: whoever knows no more than a digest must
        not get what it is of."""
        return await self._files.size(sha256) if self.has_shown(origin, sha256) else None

    def has_shown(self, origin: str, sha256: str) -> bool:
        """Whether a domain has shown that it has this file: it has brought it, or it is of an outcome for it."""
        return (
            self._room.is_delivered(origin, sha256)
            or self._register.came_with(origin, sha256)
            or self.may_read(origin, sha256)
        )

    def may_read(self, origin: str, sha256: str) -> bool:
        """Whether a file belongs to an outcome that is kept for this domain."""
        return any(
            sha256 in {each.sha256 for each in files_in_outcome(work.status.outcome)}
            for work in self._register.works.values()
            if work.document.origin == origin and work.status.outcome is not None
        )


def _status(work: SentWork, state: WorkState, reason: str = "") -> WorkStatus:
    return WorkStatus(key=work.key, fence=work.fence, state=state, reason=reason)


def _stale(asked: SentWork | WorkClaim, known: HostedWork) -> WorkStatus:
    over = "its outcome was acknowledged, or it was given up" if known.document.over else "it was sent anew since"
    reason = f"{over}, under fence {known.document.fence}"
    return WorkStatus(key=asked.key, fence=asked.fence, state="refused", reason=reason)
