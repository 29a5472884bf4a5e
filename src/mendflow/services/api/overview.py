"""Everything at a glance, for those who may see some projects.

What is in the store is counted there; of failures only those of the last day are read. What only this server has in
memory, its queue and its pilots, is told for this server alone: the answers of several servers are added
(server/fan_out.py)."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import CaseId, Instant, JobId
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
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.user_tasks import TASK_KIND
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.recovery.failure_counts import HELPED
from mendflow.services.recovery.failures import RETRIES, DecisionSummary, group_id
from mendflow.services.runtime.server import Runtime
from mendflow.stores.contract import FieldCondition, Store

HOUR_MS: Final = 3_600_000
CAUSES_SHOWN: Final = 20
RULES_SHOWN: Final = 20
REASONS_SHOWN: Final = 8
SAMPLES_TOLD: Final = 100
PAGE: Final = 5_000
DECISIONS_READ: Final = 50_000
"""How many failures of the last day are read, the newest ones."""

_decode = msgspec.json.Decoder(DecisionSummary).decode


def first_hour(now: Instant) -> Instant:
    """When the first of the hours began that are counted."""
    return now - now % HOUR_MS - (HOURS - 1) * HOUR_MS


def _hour(at: Instant, since: Instant) -> int:
    return min(max(0, (at - since) // HOUR_MS), HOURS - 1)


# What is in the store


async def count_cases_by_status(store: Store, sight: Sight) -> dict[str, int]:
    """All cases, as their list has them."""
    counted = Counter[str]()
    for kind in CASES.kinds:
        counted.update(await store.count(kind, in_sight(sight), by="status"))
    return dict(counted)


async def count_cases_per_hour(store: Store, sight: Sight, since: Instant) -> CasesPerHour:
    return CasesPerHour(
        started=await _per_hour(store, "started_at", since, in_sight(sight)),
        completed=await _per_hour(store, "ended_at", since, _ended(sight, "completed")),
        failed=await _per_hour(store, "ended_at", since, _ended(sight, "failed")),
    )


def _ended(sight: Sight, status: str) -> list[FieldCondition]:
    return [FieldCondition("status", status), *in_sight(sight)]


async def _per_hour(store: Store, field: str, since: Instant, where: list[FieldCondition]) -> list[int]:
    """Counted by the instant, so that no case has to be read."""
    hours = [0] * HOURS
    for kind in CASES.kinds:
        found = await store.count(kind, [*where, FieldCondition(field, since, "ge")], by=field)
        for at, number in found.items():
            hours[_hour(int(at), since)] += number
    return hours


class RecentFailures:
    """The failures of the last day, gathered by cause and by what mended them."""

    def __init__(self, since: Instant) -> None:
        self._since = since
        self._causes: dict[tuple[ExceptionType, str], list[DecisionSummary]] = {}
        self._mended = Counter[tuple[str, int, str]]()

    async def read(self, store: Store, sight: Sight) -> None:
        where, last = [FieldCondition("at", self._since, "ge"), *in_sight(sight)], None
        for _ in range(DECISIONS_READ // PAGE):
            page = await store.search(DECISION_KIND, where, order_by="at", descending=True, limit=PAGE, after=last)
            for found in page:
                self.take(_decode(found.body))
            if len(page) < PAGE:
                return
            last = page[-1]

    def take(self, brief: DecisionSummary) -> None:
        replaced = brief.replaced_by and brief.state != "rejected"
        if replaced or brief.type is ExceptionType.SELECTION:
            return
        self._causes.setdefault((brief.type, brief.signature), []).append(brief)
        if brief.exlet and brief.result in HELPED:
            ruled = brief.conclusion if brief.conclusion is not None and brief.conclusion.rule != BY_HAND else None
            self._mended[ruled.rules if ruled else "", ruled.rule if ruled else 0, brief.exlet] += 1

    def causes(self) -> list[FailureTrend]:
        """Those that most wait for first, then the most frequent."""
        found = [_trend(type, signature, members, self._since) for (type, signature), members in self._causes.items()]
        return sorted(found, key=lambda each: (-each.waiting, -each.count, -each.last_at))[:CAUSES_SHOWN]

    def recoveries(self) -> Recoveries:
        rows = [
            RuleRecoveries(rules=rules, rule=rule, exlet=exlet, count=count)
            for (rules, rule, exlet), count in self._mended.most_common(RULES_SHOWN)
        ]
        return Recoveries(count=self._mended.total(), by_rule=rows)


def _trend(type: ExceptionType, signature: str, members: list[DecisionSummary], since: Instant) -> FailureTrend:
    hours = [0] * HOURS
    for each in members:
        hours[_hour(each.at, since)] += 1
    return FailureTrend(
        group=group_id(type, signature),
        type=type.value,
        message=signature.partition(": ")[2] or signature,
        count=len(members),
        waiting=sum(each.state == "waiting" for each in members),
        unhandled=sum(each.state in ("ignored", "passive") and each.result != RETRIES for each in members),
        last_at=max(each.at for each in members),
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
        return (job for job in self._meta.jobs.values() if self._sight.sees(job.spec.project))

    def reasons(self) -> list[WaitingReason]:
        """Why jobs wait, those first that most jobs wait for. Jobs of like needs wait for the same."""
        groups = sorted(self._groups(), key=lambda group: -group.jobs)
        counted: dict[str, WaitingReason] = {}
        for group in groups[:REASONS_SHOWN]:
            told = self._runtime.waiting_reasons.of(group.first)
            if told is not None:
                _add(counted, "job", told.sentence, group.jobs, group.first)
        if left := sum(group.jobs for group in groups[REASONS_SHOWN:]):
            others = [group.first for group in groups[REASONS_SHOWN : REASONS_SHOWN + SAMPLES_TOLD]]
            _add(counted, "job", "other jobs, of other needs", left, *others)
        for entry in self._runtime.levels.entries():
            if self._sees_case(entry.case):
                reason = f"failed, and are tried again after a while (level {entry.level})"
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
            return [*queued, *(_Group(jobs[0].id, len(jobs)) for jobs in outside)]
        found: dict[Resources, _Group] = {}
        for job in self._seen():
            if self._state(job) == "waiting" and job.state is JobState.AVAILABLE:
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
    """The pilots that talk to this server."""
    pilots = [pilot for pilot in runtime.meta.own_pilots() if pilot.seen_at]
    slots = sum(pilot.capacity.slots for pilot in pilots)
    return PilotTotals(up=len(pilots), slots=slots, busy=slots - sum(pilot.free_slots for pilot in pilots))


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
    for pilot in runtime.meta.own_pilots():
        if pilot.seen_at:
            before = found.get(pilot.site) or SiteTotals(name=pilot.site)
            slots, free = pilot.capacity.slots, pilot.free_slots
            found[pilot.site] = msgspec.structs.replace(
                before, pilots=before.pilots + 1, slots=before.slots + slots, busy=before.busy + slots - free
            )
    return [found[name] for name in sorted(found)]
