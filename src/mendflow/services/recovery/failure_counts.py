"""Counts over past failures: of a group over time, of values in a group, elsewhere and where all went well, of what
came of exlets, and of how rules on trial agree with what was done."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import Sight
from mendflow.core.model.repair import RETRYING, Decision, ExceptionType
from mendflow.core.model.rule_views import (
    ExletResults,
    FailureCounts,
    PeriodCount,
    TrialAgreement,
    ValueCount,
)
from mendflow.core.model.rules import Rule, RuleSet
from mendflow.core.model.values import Value
from mendflow.core.rules.candidates import conditions_for, distinguishes, leaves, root_weight
from mendflow.services.recovery.failures import DecisionSummary, FoundGroup, briefs, handling_of
from mendflow.services.recovery.settled_cases import SettledCases
from mendflow.stores.contract import Store

MINUTE_MS: Final = 60_000
PERIODS_MS: Final = tuple(MINUTE_MS * minutes for minutes in (1, 10, 60, 360, 1_440, 10_080))
PERIODS_SHOWN: Final = 60
PERIODS_MAX: Final = 1_000
VALUES_SHOWN: Final = 200
VALUE_CHARS_MAX: Final = 200
OTHERWISE_SHOWN: Final = 100
HELPED: Final = frozenset({"recovered", "completed", "restarted"})
"""Results of a repair after which the case went on."""


def counts_over_time(found: FoundGroup, period_ms: int, since: Instant) -> FailureCounts:
    """The failures of a group by period; without a period, by one that gives at most sixty."""
    group, members = found.group.id, [member for member in found.members if member.at >= since]
    if not members:
        return FailureCounts(group=group, period_ms=period_ms or PERIODS_MS[0], periods=[])
    first, last = min(member.at for member in members), max(member.at for member in members)
    span = last - first
    step = period_ms or next((each for each in PERIODS_MS if span / each < PERIODS_SHOWN), PERIODS_MS[-1])
    step = max(step, span // PERIODS_MAX + 1)
    start = first - first % step
    counted: dict[int, list[DecisionSummary]] = {}
    for member in members:
        counted.setdefault((member.at - start) // step, []).append(member)
    periods = [
        _period(start + at * step, counted.get(at, []), found.settled) for at in range((last - start) // step + 1)
    ]
    return FailureCounts(group=group, period_ms=step, periods=periods)


def _period(at: Instant, members: Sequence[DecisionSummary], settled: SettledCases) -> PeriodCount:
    return PeriodCount(
        at=at,
        count=len(members),
        waiting=sum(member.state == "waiting" for member in members),
        unhandled=sum(handling_of(member, settled) == "unhandled" for member in members),
        recovered=sum(member.result in HELPED for member in members),
    )


def value_counts(
    here: Sequence[Decision],
    elsewhere: Sequence[Decision],
    path: str = "",
    succeeded: Sequence[Mapping[str, Value]] = (),
) -> list[ValueCount]:
    """How often each value occurs in these failures, in others, and in jobs that ended well; those that tell these
    failures apart best come first. `path`: only the values of this one."""
    inside, outside = _counted(_contexts(here), path), _counted(_contexts(elsewhere), path)
    well = _counted(succeeded, path)
    known, known_well = _by_path(outside), _by_path(well)
    rows = [
        ValueCount(
            path=key[0],
            value=msgspec.json.decode(key[1]),
            here=number,
            of_here=len(here),
            elsewhere=outside[key],
            of_elsewhere=len(elsewhere),
            known_elsewhere=known[key[0]],
            succeeded=well[key],
            known_succeeded=known_well[key[0]],
        )
        for key, number in inside.items()
    ]
    rows.sort(key=lambda row: (-_distinction(row), _rank(row)))
    return [msgspec.structs.replace(row, conditions=_conditions(row, here)) for row in rows[:VALUES_SHOWN]]


def _contexts(decisions: Iterable[Decision]) -> Iterable[Mapping[str, Value]]:
    return (decision.context for decision in decisions)


def _counted(contexts: Iterable[Mapping[str, Value]], path: str) -> Counter[tuple[str, bytes]]:
    counted: Counter[tuple[str, bytes]] = Counter()
    for context in contexts:
        for at, value in leaves(context).items():
            if (not path or at == path) and not (isinstance(value, str) and len(value) > VALUE_CHARS_MAX):
                counted[at, msgspec.json.encode(value)] += 1
    return counted


def _by_path(counted: Counter[tuple[str, bytes]]) -> Counter[str]:
    known = Counter[str]()
    for (path, _), number in counted.items():
        known[path] += number
    return known


def _distinction(row: ValueCount) -> float:
    """From 1, if all here have it and nothing else, down to what everything has alike. What is known of nothing else
    tells nothing, but for what a failure says of itself."""
    if not (row.known_elsewhere or row.known_succeeded or row.path.startswith("fault.")):
        return 0.0
    usual = max(_share(row.elsewhere, row.of_elsewhere), _share(row.succeeded, row.known_succeeded))
    return _share(row.here, row.of_here) - usual


def _share(number: int, of: int) -> float:
    return number / of if of else 0.0


def _rank(row: ValueCount) -> tuple[int, str]:
    return root_weight(row.path), row.path


def _conditions(row: ValueCount, here: Sequence[Decision]) -> list[str]:
    """Conditions on this value that hold for a failure that has it."""
    context = next((each.context for each in here if _has(each.context, row.path, row.value)), None)
    if context is None:
        return []
    made = [condition for _, condition in sorted(conditions_for(row.path, row.value, None))]
    return [condition for condition in made if distinguishes(condition, context, None)]


def _has(context: dict[str, Value], path: str, value: Value) -> bool:
    found = leaves(context)
    return path in found and msgspec.json.encode(found[path]) == msgspec.json.encode(value)


async def exlet_results(store: Store, *, since: Instant = 0, sight: Sight) -> list[ExletResults]:
    """What came of each exlet, over all groups; the most frequent first."""
    results: dict[str, Counter[str]] = {}
    groups: dict[str, set[tuple[ExceptionType, str]]] = {}
    async for brief in briefs(store, sight=sight):
        if not brief.exlet or brief.at < since or brief.state in ("ignored", "passive", "waiting"):
            continue
        results.setdefault(brief.exlet, Counter())[brief.result or brief.state] += 1
        groups.setdefault(brief.exlet, set()).add((brief.type, brief.signature))
    made = [_results(exlet, counted, len(groups[exlet])) for exlet, counted in results.items()]
    return sorted(made, key=lambda each: (-each.count, each.exlet))


def _results(exlet: str, counted: Counter[str], groups: int) -> ExletResults:
    open = sum(counted[word] for word in ("running", RETRYING))
    return ExletResults(
        exlet=exlet,
        count=counted.total(),
        groups=groups,
        known=counted.total() - open,
        recovered=sum(counted[word] for word in HELPED),
        results=dict(counted.most_common()),
    )


async def trial_agreement(store: Store, rules: RuleSet, sight: Sight) -> list[TrialAgreement]:
    """For each rule of the set that is on trial: how often it would have decided, and what was done instead, as far as
    that is in sight."""
    passive = {
        (type, task, rule.id): rule
        for type, trees in rules.trees.items()
        for task, tree in trees.items()
        for rule in tree.rules.values()
        if rule.passive
    }
    fired: dict[tuple[ExceptionType, str, int], list[DecisionSummary]] = {key: [] for key in passive}
    async for brief in briefs(store, selections=True, sight=sight):
        for trial in brief.trials:
            key = (brief.type, trial.task, trial.rule)
            if trial.rules == rules.name and key in passive and passive[key].exlet == trial.exlet:
                fired[key].append(brief)
    return [_agreement(type, task, passive[type, task, id], fired[type, task, id]) for type, task, id in passive]


def _agreement(type: ExceptionType, task: str, rule: Rule, fired: Sequence[DecisionSummary]) -> TrialAgreement:
    done = [brief for brief in fired if brief.exlet and brief.state not in ("ignored", "passive", "waiting")]
    agreed = [brief for brief in done if brief.exlet == rule.exlet]
    otherwise = sorted((brief for brief in done if brief.exlet != rule.exlet), key=lambda brief: -brief.at)
    return TrialAgreement(
        type=type,
        task=task,
        rule=rule.id,
        condition=rule.condition,
        exlet=rule.exlet,
        fired=len(fired),
        agreed=len(agreed),
        nothing=len(fired) - len(done),
        otherwise=[brief.id for brief in otherwise[:OTHERWISE_SHOWN]],
        helped=sum(brief.result in HELPED for brief in agreed),
    )
