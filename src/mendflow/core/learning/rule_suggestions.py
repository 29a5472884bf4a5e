"""Suggests what to do about rules that keep failing, and about waits that are too short or too long."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.learning.context_trees import holds_in
from mendflow.core.learning.exlet_changes import GUARDS, is_same_again
from mendflow.core.learning.group_statistics import ExletCount, GroupStatistics
from mendflow.core.learning.rates import wilson_interval
from mendflow.core.learning.repair_suggestions import (
    SCORE_MIN,
    History,
    KnownExlet,
    Suggestion,
    make_suggestion,
    ranked_exlets,
    repair_rates,
    rule_set_for,
)
from mendflow.core.model.flow import Flow, Input, PrimitiveStep
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import BY_HAND, Decision, Primitive


def does_not_help(history: History, count: ExletCount) -> bool:
    return (
        count.failed >= history.settings.tries_min
        and count.helped <= count.tried / 5
        and wilson_interval(count.helped, count.tried)[1] < SCORE_MIN
    )


def suggest_stop(history: History, group: GroupStatistics) -> Suggestion | None:
    """For a rule that keeps failing against this cause: what is better, or nothing; to retire it, if that is all it
    ever did."""
    for count in group.repairs:
        if count.rule == BY_HAND or not count.rules:
            continue
        if not does_not_help(history, count):
            if (found := _better_where_possible(history, group, count)) is not None:
                return found
            continue
        failing = [each for each in history.samples(group, "failed") if _is_concluded_by(history, each, count)]
        if not failing:
            continue
        everywhere = [each for other in history.groups for each in other.repairs if each.key == count.key]
        helped, tried = sum(each.helped for each in everywhere), sum(each.tried for each in everywhere)
        found = _better(history, group, count, failing)
        if found is not None:
            return found
        if not helped and not history.is_blocked("retire", f"{count.rules}/{count.tree}/{count.rule}", ""):
            return _retirement(group, count, failing, tried)
        if helped and not history.is_blocked("stop", group.id, ""):
            nothing = KnownExlet("", "nothing", _NOTHING)
            cured = repair_rates(history, group, count.exlet)
            sentence = f"{count.exlet} helped {count.helped} of {count.tried} times; do nothing, and say so at once"
            protected = _helped_by(history, count)
            return msgspec.structs.replace(
                make_suggestion(
                    history, "stop", group, count.rules, nothing, failing, sentence, cured,
                    rule=count.rule, protected=protected, guard="true",
                ),
                task=count.tree,
                flow=None,
            )  # fmt: skip
    return None


_NOTHING: Final = Flow(name=FlowName("nothing"), exlet=True, body=PrimitiveStep(name="notify", do=Primitive.NOTIFY))


def _better(
    history: History, group: GroupStatistics, count: ExletCount, failing: Sequence[Decision]
) -> Suggestion | None:
    """Another exlet that is more likely to help than the one that fails."""
    for exlet, score in ranked_exlets(history, group, count.rules):
        fitting = [each for each in failing if holds_in(GUARDS[exlet.change], each.context)]
        blocked = exlet.name == count.exlet or history.is_blocked("stop", group.id, exlet.name)
        if score < SCORE_MIN or blocked or not fitting:
            continue
        sentence = f"{count.exlet} helped {count.helped} of {count.tried} times; {exlet.name} instead"
        cured = (*repair_rates(history, group, exlet.name), *repair_rates(history, group, count.exlet)[:1])
        protected = _helped_by(history, count)
        found = make_suggestion(
            history, "stop", group, count.rules, exlet, fitting, sentence, cured, rule=count.rule, protected=protected
        )
        return msgspec.structs.replace(found, task=count.tree)
    return None


def _better_where_possible(history: History, group: GroupStatistics, count: ExletCount) -> Suggestion | None:
    """A rule may help against a cause in general, and never where something else is possible: the same file can be had
    elsewhere, or there is another domain. Its rate is taken over those failures alone."""
    carried = [each for each in history.samples(group, "helped", "failed") if _is_from(each, count)]
    failed = sum(each.result == "failed" for each in carried)
    if failed < history.settings.tries_min:
        return None
    for exlet, score in ranked_exlets(history, group, count.rules):
        if score < SCORE_MIN or exlet.name == count.exlet or is_same_again(exlet.change):
            continue
        there = [each for each in carried if holds_in(GUARDS[exlet.change], each.context)]
        failing = [each for each in there if each.result == "failed" and _is_concluded_by(history, each, count)]
        counted = ExletCount(rules=count.rules, tree=count.tree, rule=count.rule, exlet=count.exlet)
        counted.failed = sum(each.result == "failed" for each in there)
        counted.helped = len(there) - counted.failed
        if not failing or not does_not_help(history, counted) or history.is_blocked("stop", group.id, exlet.name):
            continue
        sentence = (
            f"{count.exlet} helped {counted.helped} of {counted.tried} times where {exlet.name} is possible;"
            f" {exlet.name} there"
        )
        cured = (*repair_rates(history, group, exlet.name), *repair_rates(history, group, count.exlet)[:1])
        protected = [each for each in _helped_by(history, count) if each not in there]
        found = make_suggestion(
            history, "stop", group, count.rules, exlet, failing, sentence, cured, rule=count.rule, protected=protected
        )
        return msgspec.structs.replace(found, task=count.tree)
    return None


def _is_from(decision: Decision, count: ExletCount) -> bool:
    """Whether this rule has concluded it, at that time."""
    said = decision.conclusion
    return said is not None and (said.rules, said.task, said.rule, said.exlet) == count.key


def _is_concluded_by(history: History, decision: Decision, count: ExletCount) -> bool:
    """Whether this rule would conclude it now."""
    said = history.judge(decision).conclusion
    return said is not None and (said.rules, said.task, said.rule, said.exlet) == count.key


def _helped_by(history: History, count: ExletCount) -> list[Decision]:
    """Failures that the rule has cured, of whatever cause."""
    return [
        each
        for each in history.decisions.values()
        if each.result == "recovered"
        and (said := each.conclusion) is not None
        and (said.rules, said.task, said.rule) == (count.rules, count.tree, count.rule)
    ]


def _retirement(group: GroupStatistics, count: ExletCount, failing: Sequence[Decision], tried: int) -> Suggestion:
    return Suggestion(
        kind="retire",
        group=group,
        rules=count.rules,
        type=group.type,
        task=count.tree,
        condition="",
        exlet=count.exlet,
        sentence=f"{count.exlet} was carried out {tried} times by this rule, and never helped",
        decision=failing[0].id,
        rule=count.rule,
        place=f"{count.rules}/{count.tree}/{count.rule}",
        sure=(0, tried),
        members=frozenset(each.id for each in failing),
    )


def suggest_wait(history: History, group: GroupStatistics) -> Suggestion | None:
    """For a wait that is too short, because only later ones help; or too long, because the same at once helps."""
    exlets = {each.name: each for each in history.exlets(rule_set_for(group))}
    for count in group.repairs:
        known = exlets.get(count.exlet)
        if known is None or known.change != "wait" or count.tried < history.settings.tries_min:
            continue
        found = _too_short(history, group, count) or _too_long(history, group, count, exlets)
        if found is not None:
            return found
    return None


def is_concluded(history: History, decision: Decision, exlet: str) -> bool:
    """Whether the rules of today conclude that exlet for a failure of the past, so that it need not be proposed."""
    said = history.judge(decision).conclusion
    return said is not None and said.exlet == exlet


def _too_short(history: History, group: GroupStatistics, count: ExletCount) -> Suggestion | None:
    helped, failed = count.levels.get("0", [0, 0])
    later = sum(each[0] for level, each in count.levels.items() if level != "0")
    name = "later-2"
    if helped or failed < history.settings.tries_min or later < history.settings.failures_min:
        return None
    if history.is_blocked("wait", group.id, name):
        return None
    step = PrimitiveStep(name=name, do=Primitive.RETRY_LATER, settings={"level": 2})
    text = "Wait in the second level, then submit the job again."
    inputs = {"context": Input(type="map", required=True)}
    flow = Flow(name=FlowName(name), exlet=True, description=text, inputs=inputs, body=step)
    decisions = [
        each
        for each in history.samples(group, "failed")
        if each.exlet == count.exlet and holds_in("job.level == 0 && capacity.levels >= 2", each.context)
        if not is_concluded(history, each, name)
    ]
    if not decisions:
        return None
    sentence = f"the first wait never helped, in {failed} tries; the second did, {later} times: wait as long at once"
    guard = f"{GUARDS['wait']} && job.level == 0 && capacity.levels >= 2"
    exlet = KnownExlet(name, "wait", flow)
    cured = repair_rates(history, group, count.exlet)
    return make_suggestion(
        history, "wait", group, rule_set_for(group), exlet, decisions, sentence, cured, rule=count.rule, guard=guard
    )


def _too_long(
    history: History, group: GroupStatistics, count: ExletCount, exlets: Mapping[str, KnownExlet]
) -> Suggestion | None:
    for quick in group.repairs:
        known = exlets.get(quick.exlet)
        if known is None or known.change not in ("nothing", "files") or quick.helped < history.settings.tries_min:
            continue
        if wilson_interval(quick.helped, quick.tried)[0] < SCORE_MIN or history.is_blocked(
            "wait", group.id, known.name
        ):
            continue
        waited = [
            each
            for each in history.samples(group, "helped", "failed")
            if each.exlet == count.exlet and holds_in(GUARDS[known.change], each.context)
            if not is_concluded(history, each, known.name)
        ]
        if waited:
            sentence = f"{known.name} at once helped {quick.helped} of {quick.tried} times: there is no need to wait"
            cured = repair_rates(history, group, known.name)
            return make_suggestion(history, "wait", group, rule_set_for(group), known, waited, sentence, cured)
    return None
