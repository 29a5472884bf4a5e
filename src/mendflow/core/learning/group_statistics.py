"""What is known of one cause of failures: how often it came, where, what was done about it, and what came of that.

Everything is a count that can be added, so several servers can count for themselves and add up. Of single failures only
the newest are kept, by the ids of their decisions: from their contexts conditions are made."""

from typing import Final, Literal

import msgspec

from mendflow.core.learning.rates import posterior_mean
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import BY_HAND, ExceptionType

SAMPLES_MAX: Final = 60
NAMES_MAX: Final = 50
REPAIRS_MAX: Final = 50
OTHERWISE_MAX: Final = 20
WAITS_MAX: Final = 32
HELPED_RESULTS: Final = frozenset({"recovered", "completed"})

FailureOutcome = Literal["unhandled", "queue", "helped", "failed", "other"]
"""unhandled: nobody took it up. queue: the meta-scheduler tried it again by itself. other: given up, removed, or
begun again, so that it says nothing of the repair."""


class LearnedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a decision that learning needs. `ended_at` is when nothing more followed from it."""

    id: str
    group: str
    type: ExceptionType
    signature: str
    category: str
    name: str
    case: str
    flow: str
    task: str
    at: Instant
    ended_at: Instant
    outcome: FailureOutcome
    exlet: str = ""
    rules: str = ""
    tree: str = ""
    rule: int = 0
    same_again: bool = False  # the exlet changes nothing but the time
    host: str = ""
    site: str = ""
    source: str = ""
    level: int = 0
    trials: tuple["TrialVerdict", ...] = ()


class TrialVerdict(msgspec.Struct, frozen=True):
    """What a rule on trial would have done about a failure."""

    rules: str
    tree: str
    rule: int
    exlet: str


class SampleFailure(msgspec.Struct, frozen=True):
    """One of the newest failures of a cause; its decision has the context."""

    id: str
    at: Instant
    outcome: FailureOutcome
    exlet: str = ""
    host: str = ""
    site: str = ""
    source: str = ""
    case: str = ""


class ExletCount(msgspec.Struct, kw_only=True):
    """What came of one exlet, by the rule that concluded it. `levels` has, by the level that a job had waited in
    before, how often it helped and how often not; `waits_ms` how long the latest took until they had helped."""

    rules: str
    tree: str
    rule: int
    exlet: str
    helped: int = 0
    failed: int = 0
    other: int = 0
    levels: dict[str, list[int]] = {}
    waits_ms: list[int] = []

    @property
    def tried(self) -> int:
        return self.helped + self.failed

    @property
    def by_hand(self) -> bool:
        return self.rule == BY_HAND

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.rules, self.tree, self.rule, self.exlet


class TrialCount(msgspec.Struct, kw_only=True):
    """What a rule on trial would have done, beside what was done."""

    rules: str
    tree: str
    rule: int
    exlet: str
    fired: int = 0
    agreed: int = 0
    otherwise: int = 0
    otherwise_ids: list[str] = []

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.rules, self.tree, self.rule, self.exlet


class GroupStatistics(msgspec.Struct, kw_only=True):
    """One cause. `again` has, by flow, how often the same again has helped, and how often not."""

    id: str
    type: ExceptionType
    signature: str
    category: str = ""
    name: str = ""
    count: int = 0
    unhandled: int = 0
    first_at: Instant = 0
    last_at: Instant = 0
    flows: dict[str, int] = {}
    tasks: dict[str, int] = {}
    hosts: dict[str, int] = {}
    sources: dict[str, int] = {}
    repairs: list[ExletCount] = []
    trials: list[TrialCount] = []
    again: dict[str, list[int]] = {}
    lost_ms: int = 0
    lost_attempts: int = 0
    samples: list[SampleFailure] = []

    @property
    def message(self) -> str:
        return self.signature.partition(": ")[2] or self.signature


def empty_group(failure: LearnedFailure) -> GroupStatistics:
    return GroupStatistics(
        id=failure.group,
        type=failure.type,
        signature=failure.signature,
        category=failure.category,
        name=failure.name,
        first_at=failure.at,
        last_at=failure.at,
    )


def count_failure(group: GroupStatistics, failure: LearnedFailure) -> None:
    """Add one failure to its cause."""
    group.count += 1
    group.unhandled += failure.outcome == "unhandled"
    group.first_at, group.last_at = min(group.first_at or failure.at, failure.at), max(group.last_at, failure.at)
    for counts, name in (
        (group.flows, failure.flow),
        (group.tasks, failure.task),
        (group.hosts, failure.host),
        (group.sources, failure.source),
    ):
        if name:
            counts[name] = counts.get(name, 0) + 1
    if failure.exlet and failure.outcome != "unhandled":
        _count_repair(group, failure)
    for trial in failure.trials:
        _count_trial(group, failure, trial)
    group.samples.append(
        SampleFailure(
            failure.id,
            failure.at,
            failure.outcome,
            failure.exlet,
            failure.host,
            failure.site,
            failure.source,
            failure.case,
        )
    )
    _bound(group)


def _count_repair(group: GroupStatistics, failure: LearnedFailure) -> None:
    key = (failure.rules, failure.tree, failure.rule, failure.exlet)
    count = next((each for each in group.repairs if each.key == key), None)
    if count is None:
        count = ExletCount(rules=key[0], tree=key[1], rule=key[2], exlet=key[3])
        group.repairs.append(count)
    helped, failed = failure.outcome == "helped", failure.outcome == "failed"
    count.helped += helped
    count.failed += failed
    count.other += not (helped or failed)
    if helped or failed:
        of_level = count.levels.setdefault(str(failure.level), [0, 0])
        of_level[0 if helped else 1] += 1
        if failure.same_again:
            count_again(group, failure.flow, helped=helped)
    if helped:
        count.waits_ms = [*count.waits_ms, max(0, failure.ended_at - failure.at)][-WAITS_MAX:]


def count_again(group: GroupStatistics, flow: str, *, helped: bool) -> None:
    """The same was tried again after such a failure."""
    group.again.setdefault(flow, [0, 0])[0 if helped else 1] += 1


def _count_trial(group: GroupStatistics, failure: LearnedFailure, trial: TrialVerdict) -> None:
    key = (trial.rules, trial.tree, trial.rule, trial.exlet)
    count = next((each for each in group.trials if each.key == key), None)
    if count is None:
        count = TrialCount(rules=key[0], tree=key[1], rule=key[2], exlet=key[3])
        group.trials.append(count)
    helped = failure.outcome == "helped"
    count.fired += 1
    count.agreed += helped and failure.exlet == trial.exlet
    if helped and failure.exlet != trial.exlet:
        count.otherwise += 1
        count.otherwise_ids = [*count.otherwise_ids, failure.id][-OTHERWISE_MAX:]


def merge_groups(into: GroupStatistics, more: GroupStatistics) -> None:
    """Add what another count has of the same cause."""
    into.count += more.count
    into.unhandled += more.unhandled
    into.category, into.name = into.category or more.category, into.name or more.name
    into.lost_ms += more.lost_ms
    into.lost_attempts += more.lost_attempts
    if more.count:
        into.first_at = min(into.first_at or more.first_at, more.first_at)
        into.last_at = max(into.last_at, more.last_at)
    for counts, others in (
        (into.flows, more.flows),
        (into.tasks, more.tasks),
        (into.hosts, more.hosts),
        (into.sources, more.sources),
    ):
        for name, number in others.items():
            counts[name] = counts.get(name, 0) + number
    for flow, (helped, failed) in more.again.items():
        known = into.again.setdefault(flow, [0, 0])
        into.again[flow] = [known[0] + helped, known[1] + failed]
    _merge_repairs(into, more)
    _merge_trials(into, more)
    into.samples += more.samples
    _bound(into)


def _merge_repairs(into: GroupStatistics, more: GroupStatistics) -> None:
    known = {each.key: each for each in into.repairs}
    for count in more.repairs:
        if (same := known.get(count.key)) is None:
            into.repairs.append(count)
            continue
        same.helped += count.helped
        same.failed += count.failed
        same.other += count.other
        same.waits_ms = [*same.waits_ms, *count.waits_ms][-WAITS_MAX:]
        for level, (helped, failed) in count.levels.items():
            before = same.levels.get(level, [0, 0])
            same.levels[level] = [before[0] + helped, before[1] + failed]


def _merge_trials(into: GroupStatistics, more: GroupStatistics) -> None:
    known = {each.key: each for each in into.trials}
    for count in more.trials:
        if (same := known.get(count.key)) is None:
            into.trials.append(count)
            continue
        same.fired += count.fired
        same.agreed += count.agreed
        same.otherwise += count.otherwise
        same.otherwise_ids = [*same.otherwise_ids, *count.otherwise_ids][-OTHERWISE_MAX:]


def _bound(group: GroupStatistics) -> None:
    """Keep the newest samples, and the most frequent names."""
    if len(group.samples) > 2 * SAMPLES_MAX:
        group.samples = sorted(group.samples, key=lambda each: each.at)[-SAMPLES_MAX:]
    for counts in (group.flows, group.tasks, group.hosts, group.sources, group.again):
        if len(counts) > 2 * NAMES_MAX:
            for name in sorted(counts, key=lambda each: _weight(counts[each]))[: len(counts) - NAMES_MAX]:
                del counts[name]
    if len(group.repairs) > 2 * REPAIRS_MAX:
        group.repairs = sorted(group.repairs, key=lambda each: -each.tried - each.other)[:REPAIRS_MAX]


def _weight(count: object) -> int:
    return sum(count) if isinstance(count, list) else count if isinstance(count, int) else 0


class RetryEstimate(msgspec.Struct, frozen=True):
    """How likely the same again succeeds, after how many tries in the flow at hand, of which so many helped."""

    success: float
    tries: int
    helped: int


def estimate_retry(group: GroupStatistics | None, flow: str) -> RetryEstimate:
    """The posterior of the flow's own tries; the prior is the rate of this cause in all flows, worth two tries."""
    if group is None:
        return RetryEstimate(0.5, 0, 0)
    helped, tried = (sum(each[0] for each in group.again.values()), sum(map(sum, group.again.values())))
    own_helped, own_failed = group.again.get(flow, (0, 0))
    prior = posterior_mean(helped, tried)
    success = posterior_mean(own_helped, own_helped + own_failed, prior=prior)
    return RetryEstimate(round(success, 4), own_helped + own_failed, own_helped)
