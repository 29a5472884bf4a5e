"""Suggests to keep away from hosts, sites and sources that fail more than all others."""

from collections.abc import Iterator

from mendflow.core.learning.context_trees import holds_in
from mendflow.core.learning.exlet_changes import GUARDS
from mendflow.core.learning.group_statistics import GroupStatistics
from mendflow.core.learning.rates import stands_out, wilson_interval
from mendflow.core.learning.repair_suggestions import (
    SHARE_OF_ONE,
    History,
    Suggestion,
    is_ruled,
    repair_rates,
    rule_set_for,
)
from mendflow.core.learning.usage import PlaceCount
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import ALL_TASKS, DEFAULT_RULES
from mendflow.core.rules.candidates import quote_literal


def suggest_places(history: History) -> Iterator[Suggestion]:
    """For hosts and sites that fail more than all others."""
    for path, places in (("job.host", history.hosts), ("job.site", history.sites)):
        attempts, failed = sum(each.attempts for each in places.values()), sum(each.failed for each in places.values())
        for name, place in places.items():
            others = (failed - place.failed, attempts - place.attempts)
            if place.failed < history.settings.tries_min or not stands_out(place.failed, place.attempts, *others):
                continue
            if (found := _avoidance(history, path, name, place, others)) is not None:
                yield found


def _avoidance(history: History, path: str, name: str, place: PlaceCount, others: tuple[int, int]) -> Suggestion | None:
    word = path.partition(".")[2]
    exlet = next((each for each in history.exlets(DEFAULT_RULES) if each.change == "host"), None)
    if exlet is None or history.is_blocked("avoid", f"{word} {name}", exlet.name):
        return None
    test = f"{path} == {quote_literal(name)}"
    condition = f'{test} && fault.category != "cancelled" && {GUARDS["host"]}'
    there = [each for each in history.decisions.values() if holds_in(condition, each.context)]
    unmet = [each for each in there if not is_ruled(history.judge(each))]
    if not unmet:
        return None
    low, high = wilson_interval(place.failed, place.attempts)
    sentence = (
        f"{word} {name} failed {place.failed} of {place.attempts} attempts ({low:.0%} to {high:.0%}), all others"
        f" {others[0]} of {others[1]}: submit what fails there to another host"
    )
    newest = max(unmet, key=lambda each: each.at)
    return Suggestion(
        kind="avoid",
        group=None,
        rules=DEFAULT_RULES,
        type=ExceptionType.ABORT,
        task=ALL_TASKS,
        condition=condition,
        exlet=exlet.name,
        flow=exlet.flow,
        sentence=sentence,
        decision=newest.id,
        place=f"{word} {name}",
        sure=(place.failed, place.attempts),
        members=frozenset(each.id for each in unmet),
    )


def suggest_source(history: History, group: GroupStatistics) -> Suggestion | None:
    """For a source of files that fails more than others, if there are others."""
    source, failures = max(group.sources.items(), key=lambda each: each[1], default=("", 0))
    if failures < history.settings.tries_min or failures < SHARE_OF_ONE * sum(group.sources.values()):
        return None
    exlet = next((each for each in history.exlets(rule_set_for(group)) if each.change == "replica"), None)
    if exlet is None or history.is_blocked("avoid", f"source {source}", exlet.name):
        return None
    test = f"has(fault.data.source) && fault.data.source.startsWith({quote_literal(source)})"
    condition = f"{test} && {GUARDS['replica']}"
    outcomes = ("unhandled", "queue", "failed")
    there = [each for each in history.samples(group, *outcomes) if holds_in(condition, each.context)]
    unmet = [each for each in there if (said := history.judge(each).conclusion) is None or said.exlet != exlet.name]
    if not unmet:
        return None
    return Suggestion(
        kind="avoid",
        group=group,
        rules=rule_set_for(group),
        type=group.type,
        task=ALL_TASKS,
        condition=condition,
        exlet=exlet.name,
        flow=exlet.flow,
        sentence=f"{failures} files from {source} did not arrive: take them from elsewhere",
        decision=unmet[0].id,
        place=f"source {source}",
        sure=(failures, sum(group.sources.values())),
        similar=repair_rates(history, group, exlet.name),
        members=frozenset(each.id for each in unmet),
    )
