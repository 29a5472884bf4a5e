"""Everything at a glance, for those who may see some projects.

What is in the store is counted there; of failures only those of the last day are read. What only this server has in
memory, its queue and its pilots, is told for this server alone: the answers of several servers are added
(server/fan_out.py)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId
from mendflow.core.model.jobs import Job, JobState, Resources
from mendflow.core.model.overview import (
    HOURS,
    CasesPerHour,
    FailureTrend,
    PilotTotals,
    Recoveries,
    RuleRecoveries,
    SiteTotals,
    WaitingKind,
    WaitingReason,
)
from mendflow.core.model.principals import Sight
from mendflow.core.model.repair import BY_HAND, ExceptionType
from mendflow.core.query.search_fields import CASES
from mendflow.core.scheduling.jobs import effective_needs
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.readable_documents import read_or_leave_out
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.user_tasks import TASK_KIND
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.recovery.failure_counts import HELPED
from mendflow.services.recovery.failures import DecisionSummary, group_id, handling_of, is_replaced, settled_by
from mendflow.services.recovery.settled_cases import NONE_SETTLED, SettledCases
from mendflow.services.runtime.server import Runtime
from mendflow.services.scheduling.pilot_records import PilotRecord
from mendflow.stores.contract import FieldCondition, Store

HOUR_MS: Final = 3_600_000
CAUSES_SHOWN: Final = 20
RULES_SHOWN: Final = 20
REASONS_SHOWN: Final = 8
AHEAD: Final = "state == 'available' && pilot != null"
DELAYED: Final = "state == 'available' && !suspended && not_before > ago('0s')"
SUSPENDED: Final = "state == 'available' && suspended"
"""Conditions that find jobs which wait for something else than a pilot."""
SAMPLES_TOLD: Final = 100
PAGE: Final = 5_000
DECISIONS_READ: Final = 50_000
"""How many failures of the last day are read, the newest ones."""


class _CaseStatus(msgspec.Struct):
    status: str = "running"


_decode = msgspec.json.Decoder(DecisionSummary).decode
MendedBy = tuple[str, str, str, int, str]
"""The rules, the type and the task of the tree, the rule, and its exlet."""

_decode_status = msgspec.json.Decoder(_CaseStatus).decode


def first_hour(now: Instant) -> Instant:
    """When the first of the hours began that are counted."""
    return now - now % HOUR_MS - (HOURS - 1) * HOUR_MS


def _hour(at: Instant, since: Instant) -> int:
    return min(max(0, (at - since) // HOUR_MS), HOURS - 1)


# What is in the store


STARTED: Final = (FieldCondition("void", None), FieldCondition("parent", None), FieldCondition("mends", None))
"""Cases that somebody started, which no other case called, and which mend none."""


async def count_cases_by_status(store: Store, sight: Sight) -> tuple[dict[str, int], dict[str, int]]:
    """Those that somebody started, and the others."""
    every, started = Counter[str](), Counter[str]()
    for kind in CASES.kinds:
        every.update(await store.count(kind, [STARTED[0], *in_sight(sight)], by="status"))
        started.update(await store.count(kind, [*STARTED, *in_sight(sight)], by="status"))
    return dict(started), dict(every - started)


async def count_cases_per_hour(store: Store, sight: Sight, since: Instant) -> CasesPerHour:
    return CasesPerHour(
        started=await _per_hour(store, "started_at", since, [*STARTED, *in_sight(sight)]),
        completed=await _per_hour(store, "ended_at", since, _ended(sight, "completed")),
        failed=await _per_hour(store, "ended_at", since, _ended(sight, "failed")),
    )


def _ended(sight: Sight, status: str) -> list[FieldCondition]:
    return [FieldCondition("status", status), *STARTED, *in_sight(sight)]


async def _per_hour(store: Store, field: str, since: Instant, where: list[FieldCondition]) -> list[int]:
    """Counted by the instant, so that no case has to be read."""
    hours = [0] * HOURS
    for kind in CASES.kinds:
        found = await store.count(kind, [*where, FieldCondition(field, since, "ge")], by=field)
        for at, number in found.items():
            hours[_hour(int(at), since)] += number
    return hours


class RecentFailures:
    """The failures of the last day, gathered by cause and by what mended them. Mended is what went on: a job that was
    tried again and completed, and an item that was begun again, or let go on, and is over without another failure."""

    def __init__(self, since: Instant, manager: FlowManager) -> None:
        self._since = since
        self._manager = manager
        self._failed_later = set[tuple[str, CaseId, ItemId | None]]()  # read so far, and the newest are read first
        self._unsure: list[DecisionSummary] = []  # whether their items have gone on
        self._causes: dict[tuple[ExceptionType, str], list[DecisionSummary]] = {}
        self._settled: SettledCases = NONE_SETTLED
        self._mended = Counter[MendedBy]()
        self._mended_by_hand = Counter[MendedBy]()

    async def read(self, store: Store, sight: Sight) -> None:
        where, last = [FieldCondition("at", self._since, "ge"), *in_sight(sight)], None
        for _ in range(DECISIONS_READ // PAGE):
            page = await store.search(DECISION_KIND, where, order_by="at", descending=True, limit=PAGE, after=last)
            for found in page:
                if (brief := read_or_leave_out(found, _decode)) is not None:
                    self.take(brief)
            if len(page) < PAGE:
                break
            last = page[-1]
        await self._settle(store)
        self._settled = await settled_by(store, (each for members in self._causes.values() for each in members))

    async def _settle(self, store: Store) -> None:
        """Count those whose items went on. Of a case that another server runs that is known when the case is over."""
        statuses: dict[CaseId, str] = {}
        cases = sorted({brief.case for brief in self._unsure if not brief.engine})
        for at in range(0, len(cases), PAGE):
            for found in await store.get_many(CASE_KIND, cases[at : at + PAGE]):
                statuses[CaseId(found.id)] = _decode_status(found.body).status
        for brief in self._unsure:
            if brief.engine or self._went_on(brief, statuses.get(brief.case, "")):
                self._count(brief)

    def _went_on(self, brief: DecisionSummary, status: str) -> bool:
        live = self._manager.live.get(brief.case)
        if live is None:
            return status in ("completed", "failed")
        return brief.item is None or brief.item not in live.case.index.items

    def take(self, brief: DecisionSummary) -> None:
        if is_replaced(brief) or brief.type is ExceptionType.SELECTION:
            return
        if brief.occurred_at >= self._since:
            self._causes.setdefault((brief.type, brief.signature), []).append(brief)
        about = (brief.engine, brief.case, brief.item)
        if brief.exlet and brief.result == "recovered":
            self._count(brief)
        elif brief.exlet and brief.result in HELPED and about not in self._failed_later:
            self._unsure.append(brief)
        if brief.type is ExceptionType.ABORT:
            self._failed_later.add(about)

    def _count(self, brief: DecisionSummary) -> None:
        ruled = brief.conclusion if brief.conclusion is not None and brief.conclusion.rule != BY_HAND else None
        counted = self._mended_by_hand if brief.by_person or ruled is None else self._mended
        tree = (brief.type.value, ruled.task) if ruled else ("", "")
        counted[ruled.rules if ruled else "", *tree, ruled.rule if ruled else 0, brief.exlet] += 1

    def causes(self) -> list[FailureTrend]:
        """Those that most wait for first, then the most frequent."""
        found = [
            _trend(type, signature, members, self._since, self._settled)
            for (type, signature), members in self._causes.items()
        ]
        return sorted(found, key=lambda each: (-each.waiting, -each.count, -each.last_at))[:CAUSES_SHOWN]

    def recoveries(self) -> Recoveries:
        by_rule, by_hand = _rows(self._mended), _rows(self._mended_by_hand)
        return Recoveries(
            count=sum(row.count for row in by_rule),
            by_rule=by_rule[:RULES_SHOWN],
            count_by_hand=sum(row.count for row in by_hand),
            by_hand=by_hand[:RULES_SHOWN],
        )


def _rows(mended: Counter[MendedBy]) -> list[RuleRecoveries]:
    return [
        RuleRecoveries(rules=rules, type=type, tree=tree, rule=rule, exlet=exlet, count=count)
        for (rules, type, tree, rule, exlet), count in mended.most_common()
    ]


def _trend(
    type: ExceptionType,
    signature: str,
    members: list[DecisionSummary],
    since: Instant,
    settled: SettledCases,
) -> FailureTrend:
    hours, kinds = [0] * HOURS, Counter(handling_of(each, settled) for each in members)
    for each in members:
        hours[_hour(each.occurred_at, since)] += 1
    return FailureTrend(
        group=group_id(type, signature),
        type=type.value,
        message=signature.partition(": ")[2] or signature,
        count=len(members),
        waiting=kinds["waiting"],
        unhandled=kinds["unhandled"],
        run_again=kinds["run-again"],
        settled=kinds["settled"],
        rejected=kinds["rejected"],
        told=kinds["told"],
        last_at=max(each.occurred_at for each in members),
        per_hour=hours,
    )


async def waiting_for_people(store: Store, sight: Sight) -> list[WaitingReason]:
    """User tasks that are offered or claimed, and failures that no rule took up."""
    found = list[WaitingReason]()
    for kind, state, reason, what in _FOR_PEOPLE:
        where = [FieldCondition("state", state), *in_sight(sight)]
        number = (await store.count(kind, where)).get("", 0)
        if number:
            first = await store.search(kind, where, limit=1)
            sample = first[0].id if first else ""
            found.append(WaitingReason(kind=what, reason=reason, jobs=number, sample=sample))
    return found


_FOR_PEOPLE: Final[tuple[tuple[str, str, str, WaitingKind], ...]] = (
    (TASK_KIND, "offered", "user tasks that nobody has claimed", "user-task"),
    (TASK_KIND, "claimed", "user tasks that somebody has claimed", "user-task"),
    (DECISION_KIND, "waiting", "failures that no rule takes up, and that wait for a person", "person"),
)


# What this server has in memory


class _Group(NamedTuple):
    first: JobId
    jobs: int


class QueueOverview:
    """The jobs of this server that have not ended."""

    def __init__(self, runtime: Runtime, sight: Sight, now: Instant) -> None:
        self._runtime = runtime
        self._meta = runtime.meta
        self._sight = sight
        self._now = now

    def counts(self) -> dict[str, int]:
        """By state, in the words of items; `delayed` wait for a time."""
        meta = self._meta
        if self._sight.projects is not None:
            return dict(Counter(self._state(job) for job in self._seen()))
        running, later = meta.jobs_running(), sum(meta.queue.depths_later().values())
        waiting = meta.jobs_waiting() - later
        for jobs in self._runtime.projects.jobs_outside().values():
            delayed = sum(job.available_at > self._now for job in jobs)
            later, waiting = later + delayed, waiting + len(jobs) - delayed
        waiting += len(self._held_back())
        found = {"running": running, "waiting": waiting, "delayed": later}
        found["suspended"] = max(0, len(meta.jobs) - running - waiting - later)
        return {state: number for state, number in found.items() if number}

    def _state(self, job: Job) -> str:
        if job.state is JobState.RUNNING:
            return "running" if self._meta.runs(job) else "waiting"
        if job.suspended:
            return "suspended"
        return "delayed" if job.available_at > self._now else "waiting"

    def _seen(self) -> Iterable[Job]:
        return (job for job in self._meta.jobs.values() if self._sees(job))

    def _sees(self, job: Job) -> bool:
        return self._sight.sees(job.spec.project)

    def reasons(self) -> list[WaitingReason]:
        """Why jobs wait, those first that most jobs wait for. Jobs of like needs wait for the same."""
        groups = sorted(self._groups(), key=lambda group: -group.jobs)
        counted: dict[str, WaitingReason] = {}
        for group in groups[:REASONS_SHOWN]:
            told = self._runtime.waiting_reasons.of(group.first, is_of_many=True)
            if told is not None:
                _add(counted, "job", told.sentence, group.jobs, group.first)
        if left := sum(group.jobs for group in groups[REASONS_SHOWN:]):
            others = [group.first for group in groups[REASONS_SHOWN : REASONS_SHOWN + SAMPLES_TOLD]]
            _add(counted, "job", "other jobs, of other needs", left, *others)
        found = list(counted.values())
        for number, reason, where in self._apart():
            found += [WaitingReason(kind="job", reason=reason, jobs=number, where=where)] if number else []
        return [*found, *self._retries()]

    def _apart(self) -> Iterator[tuple[int, str, str]]:
        """Those that wait for something else than a pilot, and how a search finds them."""
        states = self.counts()
        stopped = self._held_back()
        yield self._ahead(), "a pilot has fetched it ahead, and begins it when a slot is free", AHEAD
        yield states.get("delayed", 0), "it waits for its time, after an attempt that failed", DELAYED
        yield states.get("suspended", 0), "it is suspended, until somebody resumes it", SUSPENDED
        ids = ", ".join(f"'{job.id}'" for job in stopped[:SAMPLES_TOLD])
        yield len(stopped), "it waits until somebody resumes its case", f"id in [{ids}]"

    def _held_back(self) -> list[Job]:
        known = self._meta.jobs
        return [job for job in self._meta.held_back.values() if known.get(job.id) is job and self._sees(job)]

    def _ahead(self) -> int:
        if self._sight.projects is None:
            return sum(not held.runs for pilot in self._meta.pilots.values() for held in pilot.held.values())
        return sum(job.state is JobState.RUNNING and not self._meta.runs(job) for job in self._seen())

    def _retries(self) -> list[WaitingReason]:
        counted: dict[str, WaitingReason] = {}
        for entry in self._runtime.levels.entries():
            if self._sees_case(entry.case):
                reason = f"it failed, and is tried again after a while (level {entry.level})"
                _add(counted, "retry", reason, 1, entry.job)
        return list(counted.values())

    def _sees_case(self, case: CaseId) -> bool:
        if self._sight.projects is None:
            return True
        live = self._runtime.manager.live.get(case)
        return live is not None and self._sight.sees(live.document.project)

    def _groups(self) -> list[_Group]:
        if self._sight.projects is None:
            queued = [_Group(each.first, each.jobs) for each in self._meta.waiting()]
            outside = self._runtime.projects.jobs_outside().values()
            due = [[job for job in jobs if job.available_at <= self._now] for jobs in outside]
            return [*queued, *(_Group(jobs[0].id, len(jobs)) for jobs in due if jobs)]
        found: dict[Resources, _Group] = {}
        apart = {job.id for job in self._held_back()}
        for job in self._seen():
            if self._state(job) == "waiting" and job.state is JobState.AVAILABLE and job.id not in apart:
                needs = effective_needs(job)
                before = found.get(needs)
                found[needs] = _Group(before.first if before else job.id, before.jobs + 1 if before else 1)
        return list(found.values())


def _add(counted: dict[str, WaitingReason], kind: WaitingKind, reason: str, jobs: int, *samples: JobId) -> None:
    known = counted.get(reason)
    if known is None:
        counted[reason] = WaitingReason(kind=kind, reason=reason, jobs=jobs, sample=samples[0], samples=list(samples))
    else:
        counted[reason] = msgspec.structs.replace(
            known, jobs=known.jobs + jobs, samples=[*known.samples, *samples][:SAMPLES_TOLD]
        )


def pilot_totals(runtime: Runtime) -> PilotTotals:
    """The pilots that talk to this server, and the slots of all in which its jobs run: the sums over all servers are
    those of all pilots."""
    pilots = [pilot for pilot in runtime.meta.own_pilots() if pilot.seen_at]
    busy = sum(_busy(pilot) for pilot in runtime.meta.pilots.values() if pilot.seen_at)
    return PilotTotals(up=len(pilots), slots=sum(pilot.capacity.slots for pilot in pilots), busy=busy)


def _busy(pilot: PilotRecord) -> int:
    return pilot.capacity.slots - pilot.slots_open()


async def site_totals(runtime: Runtime) -> list[SiteTotals]:
    """The sites that are known, with the pilots there that talk to this server."""
    found = {
        each.site.name: SiteTotals(
            name=each.site.name,
            state=each.state,
            note=each.trouble or (each.paused.why if each.paused is not None else ""),
        )
        for each in await runtime.sites.all()
    }
    for pilot in runtime.meta.pilots.values():
        if pilot.seen_at:
            before, own = found.get(pilot.site) or SiteTotals(name=pilot.site), not pilot.front
            found[pilot.site] = msgspec.structs.replace(
                before,
                pilots=before.pilots + own,
                slots=before.slots + (pilot.capacity.slots if own else 0),
                busy=before.busy + _busy(pilot),
            )
    return [found[name] for name in sorted(found)]
