"""From counts to rules: which rule would have helped, on which condition, and how sure that is.

A suggestion is made only from what happened. The condition holds for the failures that it is for, was separated by a
tree from failures of other causes, and says where and how often its exlet may be carried out. The exlet is the one with
the best posterior: what it did for this cause counts fully, what it did for others of the same category half, and what
it changes is the prior."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from mendflow.core.learning.context_trees import Context, holds_in, separating_condition
from mendflow.core.learning.exlet_changes import ANSWERS, GUARDS, ExletChange
from mendflow.core.learning.group_statistics import GroupStatistics, estimate_retry
from mendflow.core.learning.rates import posterior_mean, rate_of, wilson_interval
from mendflow.core.learning.usage import PlaceCount
from mendflow.core.model.faults import Category
from mendflow.core.model.flow import Flow
from mendflow.core.model.learning import LearningSettings, ProposalKind, RepairRate
from mendflow.core.model.repair import Conclusion, Decision, ExceptionType
from mendflow.core.model.rules import ALL_TASKS, DEFAULT_RULES
from mendflow.core.rules.candidates import WRITTEN_BY_US, quote_literal

SCORE_MIN: Final = 0.5
CATEGORY_WEIGHT: Final = 0.5
PRIOR: Final = 0.7
PRIOR_STEP: Final = 0.05
OTHERS_MAX: Final = 300
PHRASE_CHARS_MIN: Final = 6
SHARE_OF_ONE: Final = 0.8
"""A cause belongs to a host or a source if so many of its failures were there."""

OWN_FAILURES: Final = frozenset({Category.JOB, Category.INPUT, Category.FLOW, Category.OUTPUT, Category.CLEANUP})
"""Categories where the name says little: the message must be the same, too."""


class KnownExlet(NamedTuple):
    """An exlet that a rule can conclude. `flow` must be added to the rule set with the rule."""

    name: str
    change: ExletChange
    flow: Flow


class Verdict(NamedTuple):
    """What the rules say of a failure now. `settled`: a rule holds, even if it concludes that nothing is done."""

    conclusion: Conclusion | None
    settled: bool


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that would have helped. `rule` is the one that it replaces or retires."""

    kind: ProposalKind
    group: GroupStatistics | None
    rules: str
    type: ExceptionType
    task: str
    condition: str
    exlet: str
    sentence: str
    flow: Flow | None = None
    decision: str = ""
    rule: int | None = None
    place: str = ""
    similar: tuple[RepairRate, ...] = ()
    sure: tuple[int, int] = (0, 0)
    members: frozenset[str] = frozenset()


class History(msgspec.Struct, frozen=True, kw_only=True):
    """All that suggestions are made from. `decisions` are the samples of the groups, by their ids.
    `judge` says what the rules would do now; `exlets` and `cornerstones` are those of a rule set; `conflicts` says
    whether a rule would change what a cornerstone concludes, `is_blocked` whether a proposal for a subject is on trial
    or was dismissed. Only `changed` groups are looked at."""

    groups: Sequence[GroupStatistics]
    decisions: Mapping[str, Decision]
    judge: Callable[[Decision], Verdict]
    exlets: Callable[[str], Sequence[KnownExlet]]
    cornerstones: Callable[[str], Sequence[Context]]
    conflicts: Callable[["Suggestion", Decision], bool]
    is_blocked: Callable[[ProposalKind, str, str], bool]
    changed: frozenset[str] = frozenset()
    hosts: Mapping[str, PlaceCount] = {}
    sites: Mapping[str, PlaceCount] = {}
    settings: LearningSettings = LearningSettings()

    def samples(self, group: GroupStatistics, *outcomes: str) -> list[Decision]:
        """The decisions of its samples, the newest first."""
        found = sorted((each for each in group.samples if each.outcome in outcomes), key=lambda each: -each.at)
        return [self.decisions[each.id] for each in found if each.id in self.decisions]


# Repairs that nobody makes, and those that people make by hand


def suggest_repair(history: History, group: GroupStatistics) -> Suggestion | None:
    """For failures that nobody took up, and those that the queue tries again in vain."""
    if history.is_blocked("repair", group.id, "*"):
        return None
    outcomes = ["unhandled"]
    retry = estimate_retry(group, "")
    if retry.success < SCORE_MIN and sum(map(sum, group.again.values())) >= history.settings.tries_min:
        outcomes.append("queue")
    unmet = [each for each in history.samples(group, *outcomes) if not history.judge(each).settled]
    name = rule_set_for(group)
    for exlet, score in ranked_exlets(history, group, name):
        if score < SCORE_MIN or history.is_blocked("repair", group.id, exlet.name):
            continue
        fitting = [each for each in unmet if holds_in(GUARDS[exlet.change], each.context)]
        if len(fitting) >= history.settings.failures_min:
            cured = repair_rates(history, group, exlet.name)
            rate = cured[0].rate
            came_of = f"helped {rate.helped} of {rate.tried} times" if rate.tried else "was not tried for it yet"
            sentence = f"nobody took up {len(fitting)} failures of this cause; {exlet.name} {came_of}"
            return make_suggestion(history, "repair", group, name, exlet, fitting, sentence, cured)
    return None


def suggest_by_hand(history: History, group: GroupStatistics) -> Suggestion | None:
    """For a repair that people made by hand, and that helped."""
    for count in sorted(group.repairs, key=lambda each: -each.helped):
        if not count.by_hand or count.helped < history.settings.by_hand_min or count.helped < 2 * count.failed:
            continue
        if history.is_blocked("by-hand", group.id, count.exlet) or history.is_blocked("repair", group.id, "*"):
            continue
        name = rule_set_for(group)
        exlet = next((each for each in history.exlets(name) if each.name == count.exlet), None)
        guard = GUARDS.get(exlet.change, "true") if exlet is not None else ""
        mended = [
            each
            for each in history.samples(group, "helped")
            if each.exlet == count.exlet and exlet is not None and holds_in(guard, each.context)
            if not is_ruled(history.judge(each))
        ]
        if exlet is not None and mended:
            sentence = f"people did {count.exlet} by hand {count.tried} times, and it helped {count.helped} times"
            cured = repair_rates(history, group, exlet.name)
            return make_suggestion(history, "by-hand", group, name, exlet, mended, sentence, cured)
    return None


def is_ruled(verdict: Verdict) -> bool:
    return verdict.conclusion is not None


def make_suggestion(
    history: History,
    kind: ProposalKind,
    group: GroupStatistics,
    name: str,
    exlet: KnownExlet,
    decisions: Sequence[Decision],
    sentence: str,
    cured: tuple[RepairRate, ...],
    *,
    rule: int | None = None,
    protected: Sequence[Decision] = (),
    guard: str | None = None,
) -> Suggestion:
    contexts = [each.context for each in decisions]
    others = [*(each.context for each in protected), *other_contexts(history, group, name)]
    base = base_condition(group, contexts)
    condition = separating_condition(base, contexts, others)
    guard = GUARDS.get(exlet.change, "true") if guard is None else guard
    tried = cured[0].rate if cured else None
    found = Suggestion(
        kind=kind,
        group=group,
        rules=name,
        type=group.type,
        task=ALL_TASKS,
        condition=condition if guard == "true" else f"{condition} && {guard}",
        exlet=exlet.name,
        flow=exlet.flow,
        sentence=sentence,
        decision=decisions[0].id,
        rule=rule,
        similar=cured,
        sure=(tried.helped, tried.tried) if tried is not None else (0, 0),
        members=frozenset(each.id for each in decisions),
    )
    if not history.conflicts(found, decisions[0]):
        return found
    condition = separating_condition(base, contexts, [*history.cornerstones(name), *others])
    return msgspec.structs.replace(found, condition=condition if guard == "true" else f"{condition} && {guard}")


def other_contexts(history: History, group: GroupStatistics, rules: str) -> Sequence[Context]:
    """Failures of other causes, which the rule is not for. The rules of a flow are asked about nothing else, and are
    for those who see its project: only what has failed there may show in them."""
    projects = {each.project for each in history.decisions.values() if each.flow == rules}
    found = [
        each.context
        for each in history.decisions.values()
        if each.type is group.type and not _is_of(each, group) and (rules == DEFAULT_RULES or each.project in projects)
    ]
    return found[:OTHERS_MAX]


def _is_of(decision: Decision, group: GroupStatistics) -> bool:
    return decision.type is group.type and decision.signature == group.signature


def rule_set_for(group: GroupStatistics) -> str:
    """The rules of the flow, if the cause is known from one flow alone; else the default rules."""
    return next(iter(group.flows)) if len(group.flows) == 1 else DEFAULT_RULES


def base_condition(group: GroupStatistics, contexts: Sequence[Context]) -> str:
    """What all failures of the cause have in common, and what makes them this cause."""
    tests = [f"fault.category == {quote_literal(group.category)}", f"fault.name == {quote_literal(group.name)}"]
    if group.category in OWN_FAILURES:
        codes = {_fault(each).get("exit_code") for each in contexts}
        if len(codes) == 1 and isinstance(code := codes.pop(), int):
            tests.append(f"fault.exit_code == {code}")
        if phrase := common_phrase(group.message, [str(_fault(each).get("message", "")) for each in contexts]):
            tests.append(f"fault.message.contains({quote_literal(phrase)})")
    return " && ".join(tests)


def _fault(context: Context) -> Mapping[str, object]:
    fault = context.get("fault")
    return fault if isinstance(fault, dict) else {}


def common_phrase(message: str, texts: Sequence[str]) -> str:
    """The longest part of a group's message, between what varies, that every text has. How the job ended is added to
    the message of a group, and is no part of it; what mendflow writes in the message itself counts only where nothing
    else is said."""
    for end in (" [exit code ", " [signal "):
        message = message.rpartition(end)[0] or message
    said = message
    for ours in WRITTEN_BY_US:
        said = said.replace(ours, "<>")
    for part in (*_parts_between(said), *_parts_between(message)):
        short = part[:120]
        if len(short) >= PHRASE_CHARS_MIN and all(short in text for text in texts):
            return short
    return ""


def _parts_between(message: str) -> list[str]:
    """What stands between the marks of a message, the longest first."""
    parts = [each.rpartition(">")[2].strip(" :;,.[]()") for each in message.split("<")]
    return sorted(parts, key=len, reverse=True)


# Which exlet


def ranked_exlets(history: History, group: GroupStatistics, name: str) -> list[tuple[KnownExlet, float]]:
    """Exlets that may answer this cause, each with how likely it helps, the best first."""
    answers = ANSWERS.get(Category(group.category), ()) if group.category else ()
    found = []
    for exlet in history.exlets(name):
        if exlet.change == "host" and group.category in OWN_FAILURES and not is_of_one_host(history, group):
            continue
        if exlet.change in answers:
            prior = PRIOR - PRIOR_STEP * answers.index(exlet.change)
        elif exlet.change in ("nothing", "wait") and has_helped(history, group):
            prior = SCORE_MIN
        else:
            continue
        found.append((exlet, score_of(history, group, exlet.name, prior)))
    return sorted(found, key=lambda each: -each[1])


def has_helped(history: History, group: GroupStatistics) -> bool:
    """Whether the same again has helped against this cause, often enough to be more than luck."""
    helped, tried = sum(each[0] for each in group.again.values()), sum(map(sum, group.again.values()))
    return helped >= history.settings.by_hand_min and wilson_interval(helped, tried)[0] > 1 / 3


def score_of(history: History, group: GroupStatistics, exlet: str, prior: float) -> float:
    helped, tried = count_tries([group], exlet)
    others = [each for each in history.groups if each.category == group.category and each is not group]
    more_helped, more_tried = count_tries(others, exlet)
    return posterior_mean(
        helped + CATEGORY_WEIGHT * more_helped, tried + CATEGORY_WEIGHT * more_tried, prior=prior, weight=2.0
    )


def count_tries(groups: Sequence[GroupStatistics], exlet: str) -> tuple[int, int]:
    counts = [count for group in groups for count in group.repairs if count.exlet == exlet]
    return sum(count.helped for count in counts), sum(count.tried for count in counts)


def repair_rates(history: History, group: GroupStatistics, exlet: str) -> tuple[RepairRate, ...]:
    """What came of this exlet, for this cause and for all others of its category."""
    others = [each for each in history.groups if each.category == group.category and each is not group]
    return (
        RepairRate(exlet=exlet, among="this cause", rate=rate_of(*count_tries([group], exlet))),
        RepairRate(
            exlet=exlet, among=f"other causes of category {group.category}", rate=rate_of(*count_tries(others, exlet))
        ),
    )


def is_of_one_host(history: History, group: GroupStatistics) -> bool:
    """Whether the cause comes from one host: even the lowest likely share of its failures there is more than the share
    of all attempts that this host has run."""
    host, failures = max(group.hosts.items(), key=lambda each: each[1], default=("", 0))
    total, attempts = sum(group.hosts.values()), sum(place.attempts for place in history.hosts.values())
    if failures < history.settings.tries_min or host not in history.hosts:
        return False
    return wilson_interval(failures, total)[0] > history.hosts[host].attempts / max(1, attempts)
