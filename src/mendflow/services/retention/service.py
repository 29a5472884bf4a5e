"""Retention: runs of prune, one at a time on one store, and the rules that are applied once an hour.

A run is a document. Its server renews it; one that nobody has renewed for a while is over, because its server is. What
it left undone the next run does."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, NoReturn

import msgspec
from msgspec.structs import replace

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound, RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.retention import (
    GRACE_MIN_MS,
    PruneRequest,
    PruneRule,
    PruneView,
    RetentionRule,
    RetentionRuleView,
)
from mendflow.core.scheduling.amounts import duration, moment, size
from mendflow.lazy import lazy_pattern
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import CASE_KIND, first_case_of
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import Notices
from mendflow.services.base.readable_documents import demand_readable, readable
from mendflow.services.base.responsibility import Responsibility
from mendflow.services.retention.case_remover import is_live
from mendflow.services.retention.pruned_cases import RUN_KIND, PrunedCases, PrunedDocument
from mendflow.services.retention.pruner import Pruner
from mendflow.stores.contract import Delete, Put, Store, WriteDone

log = logging.getLogger("mendflow.retention")

RULE_KIND: Final = "retention"
CURRENT: Final = "current"
AUTOMATIC: Final = "automatic"
BY_RULES: Final = "retention"
EVERY_MS: Final = 3_600_000
LOOK_MS: Final = 600_000
RENEW_MS: Final = 10_000
SILENT_MS: Final = 60_000

_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_-]*")
_encode = msgspec.json.Encoder().encode
_decode_run = msgspec.json.Decoder(PruneView).decode
_decode_rule = msgspec.json.Decoder(RetentionRuleView).decode


class _LastLook(msgspec.Struct):
    at: Instant = 0


_decode_look = msgspec.json.Decoder(_LastLook).decode


class Retention:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        membership: OwnMembership,
        notices: Notices,
        notes: PrunedCases,
        pruner: Pruner,
        file_store: FileStore,
        new_id: Callable[[], str],
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._membership = membership
        self._responsibility = Responsibility(membership)
        self._notices = notices
        self._notes = notes
        self._pruner = pruner
        self._file_store = file_store
        self._dropped_at: Instant = 0
        self._new_id = new_id
        self._running: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Apply the rules from now on, once an hour, on one of several servers."""
        self._looking = asyncio.create_task(self._look_again(), name="retention")

    async def stop(self) -> None:
        await cancel_tasks(self._looking, self._running)

    # Runs

    async def prune(self, request: PruneRequest, *, who: str) -> PruneView:
        """Begin a run; `run` says what has become of it. Refused while another is under way."""
        demand_conditions(request.rules)
        if not (request.rules or request.cases):
            raise InvalidRequest(SAY_WHICH)
        demand_grace(request.grace_ms)
        await self._demand_ended(request.cases)
        view, version = await self._begin(request, who)
        self._running = asyncio.create_task(self._carry_out(view, version, request), name="prune")
        return view

    async def _demand_ended(self, cases: Sequence[CaseId]) -> None:
        """Whoever names a case means it: one that cannot go is refused, and nothing goes."""
        await self._ledger.settled()
        for case in cases:
            found = await self._store.get(CASE_KIND, case)
            if found is None:
                pruned = await self.pruned(case)
                raise NotFound(pruned.sentence() if pruned is not None else f"there is no case {case!r:.100}")
            if (root := first_case_of(case)) != case:
                raise InvalidRequest(f"case {case} belongs to case {root}, and goes with that: name {root}")
            if is_live(found.body):
                raise Conflict(f"case {case} is not over; `mendflow cancel {case}` ends it")

    async def run(self, id: str) -> PruneView:
        found = await self._store.get(RUN_KIND, CURRENT)
        view = _decode_run(found.body) if found is not None else None
        if view is None or view.id != id:
            raise NotFound(f"there is no run {id:.40} of prune; only the last one is known")
        if view.state == "running" and self._is_silent(view):
            return replace(view, state="failed", problem=f"server {view.server} has ended; prune again to finish it")
        return view

    async def pruned(self, case: CaseId) -> PrunedDocument | None:
        """What is left of a case that was pruned."""
        return await self._notes.find(case)

    async def _begin(self, request: PruneRequest, who: str) -> tuple[PruneView, int]:
        await self._ledger.settled()
        now, found = self._clock.now(), await self._store.get(RUN_KIND, CURRENT)
        other = _decode_run(found.body) if found is not None else None
        if other is not None and other.state == "running" and not self._is_silent(other):
            raise Conflict(f"a prune is under way on server {other.server} since {moment(other.started_at)}")
        view = PruneView(
            id=self._new_id(),
            dry_run=request.dry_run,
            by=who,
            server=self._membership.id,
            started_at=now,
            renewed_at=now,
        )
        (made,) = await self._store.write([Put(RUN_KIND, CURRENT, _encode(view), found.version if found else 0)])
        if not isinstance(made, WriteDone):
            raise Conflict("another prune has just begun")
        return view, made.version

    def _is_silent(self, view: PruneView) -> bool:
        if view.server == self._membership.id and (self._running is None or self._running.done()):
            return True
        return self._clock.now() - view.renewed_at > SILENT_MS

    async def _carry_out(self, view: PruneView, version: int, request: PruneRequest) -> None:
        known = _RunDocument(self._store, view, version)
        try:
            end = await self._while_renewed(known, self._pruner.run(view, request, known.put))
            end = replace(end, state="done", ended_at=self._clock.now(), renewed_at=self._clock.now())
            self._tell(end)
        except Exception as error:  # whatever it is, whoever waits for the run must hear of it
            log.exception("prune failed")
            end = replace(known.view, state="failed", ended_at=self._clock.now(), problem=str(error) or repr(error))
        try:
            await known.put(end)
        except RequestError as error:
            log.warning("the end of a prune could not be noted: %s", error.message)

    async def _while_renewed(self, known: "_RunDocument", work: Coroutine[None, None, PruneView]) -> PruneView:
        """Carry this out as long as the run can be renewed: so long nobody else prunes."""
        working, renewing = asyncio.create_task(work), asyncio.create_task(self._renew(known))
        try:
            await asyncio.wait([working, renewing], return_when=asyncio.FIRST_COMPLETED)
            return await working if working.done() else await renewing
        finally:
            await cancel_tasks(working, renewing)

    async def _renew(self, known: "_RunDocument") -> NoReturn:
        while True:
            await self._clock.sleep(RENEW_MS)
            try:
                await known.renew(self._clock.now())
            except StoreUnavailable as error:
                if self._clock.now() - known.view.renewed_at > SILENT_MS - 2 * RENEW_MS:
                    raise
                log.warning("a prune could not be renewed: %s; trying again", error.message)

    def _tell(self, view: PruneView) -> None:
        if view.cases and not view.dry_run:
            by = "by the rules of retention" if view.by == BY_RULES else f"by {view.by}" if view.by else ""
            self._notices.post(f"{view.cases:,} cases were pruned {by}".rstrip() + f": {size(view.bytes)} are free")

    # Rules

    async def rules(self) -> list[RetentionRuleView]:
        found = [each async for each in self._store.scan(RULE_KIND) if each.id != AUTOMATIC]
        return readable(found, _decode_rule)

    async def put_rule(self, rule: RetentionRule, *, who: str) -> RetentionRuleView:
        demand_conditions([rule])
        if rule.name == AUTOMATIC or not _NAME.fullmatch(rule.name):
            raise InvalidRequest(
                f"a rule of retention cannot be called {rule.name!r:.100}; a name begins with a letter and has letters,"
                f" digits, - and _, and is not {AUTOMATIC!r}"
            )
        view = RetentionRuleView(rule=rule, set_at=self._clock.now(), set_by=who)
        made: object = None
        while not isinstance(made, WriteDone):
            found = await self._store.get(RULE_KIND, rule.name)
            demand_readable(found, _decode_rule)
            (made,) = await self._store.write([Put(RULE_KIND, rule.name, _encode(view), found.version if found else 0)])
        return view

    async def remove_rule(self, name: str) -> RetentionRuleView:
        found = await self._store.get(RULE_KIND, name) if name != AUTOMATIC else None
        if found is None:
            raise NotFound(f"there is no rule {name!r:.100} of retention; `mendflow prune rules` lists them")
        await self._store.write([Delete(RULE_KIND, name, found.version)])
        return _decode_rule(found.body)

    # Once an hour

    async def _look_again(self) -> None:
        while True:
            await self._clock.sleep(LOOK_MS)
            try:
                await self.look()
            except Conflict:
                continue  # a person prunes at the moment
            except StoreUnavailable as error:
                log.warning("retention could not be applied: %s; trying again", error.message)
            except Exception:  # an error in one look must not stop those that follow
                log.exception("retention could not be applied; trying again")

    async def look(self) -> None:
        """Drop what other servers have removed. Apply the rules if that is due, and if it is for this server to do;
        without rules there is only something to do if an earlier run has left something."""
        if self._clock.now() - self._dropped_at >= EVERY_MS:
            await self._file_store.drop_removed()
            self._dropped_at = self._clock.now()
        if not self._responsibility.mine("retention"):
            return
        found = await self._store.get(RULE_KIND, AUTOMATIC)
        if found is not None and self._clock.now() - _decode_look(found.body).at < EVERY_MS:
            return
        look = Put(RULE_KIND, AUTOMATIC, _encode(_LastLook(self._clock.now())), found.version if found else 0)
        (made,) = await self._store.write([look])
        rules = [view.rule for view in await self.rules()]
        if isinstance(made, WriteDone) and (rules or await self._notes.unfinished()):
            request = PruneRequest(rules=[_plain(rule) for rule in rules] or [NOTHING])
            view, version = await self._begin(request, BY_RULES)
            self._running = asyncio.create_task(self._carry_out(view, version, request), name="prune")
            await asyncio.wait([self._running])


SAY_WHICH: Final = (
    "say which cases go: by age (--older-than 30d), number (--keep 100), size (--max-bytes 50GB), state"
    " (--state failed), flow (--flow NAME) or name (mendflow prune CASE)"
)
NOTHING: Final = PruneRule(older_than_ms=2**53)
"""A rule that lets no case go."""


def _plain(rule: RetentionRule) -> PruneRule:
    return PruneRule(**{name: getattr(rule, name) for name in PruneRule.__struct_fields__})


def demand_conditions(rules: list[PruneRule] | list[RetentionRule]) -> None:
    """A rule that gives nothing would let every case go: whoever means that says so by an age of one millisecond."""
    for rule in rules:
        bounds = (rule.keep, rule.max_bytes)
        if not (rule.flow or rule.states or rule.older_than_ms or any(each is not None for each in bounds)):
            raise InvalidRequest(SAY_WHICH)


def demand_grace(grace_ms: int) -> None:
    """With less, a file could go that somebody has asked for just now: such uses are noted only now and then."""
    if grace_ms < GRACE_MIN_MS:
        raise InvalidRequest(
            f"a grace of {duration(grace_ms)} is too short: the use of a file is noted every few minutes, so one that"
            f" is in use could go; give at least {duration(GRACE_MIN_MS)} (--grace 5min)",
            field="grace_ms",
        )


class _RunDocument:
    """The document of a run, which only its own server changes."""

    def __init__(self, store: Store, view: PruneView, version: int) -> None:
        self._store = store
        self.view = view
        self._version = version
        self._changing = asyncio.Lock()

    async def put(self, view: PruneView) -> None:
        async with self._changing:
            await self._put(view)

    async def renew(self, now: Instant) -> None:
        async with self._changing:
            await self._put(replace(self.view, renewed_at=now))

    async def _put(self, view: PruneView) -> None:
        while True:
            (made,) = await self._store.write([Put(RUN_KIND, CURRENT, _encode(view), self._version)])
            if isinstance(made, WriteDone):
                self.view, self._version = view, made.version
                return
            found = await self._store.get(RUN_KIND, CURRENT)
            if found is None or _decode_run(found.body).id != view.id:
                raise Conflict("another server has begun to prune, because this one was silent for long")
            self._version = found.version  # an earlier write had succeeded, though its answer was lost
