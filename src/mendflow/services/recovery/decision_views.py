"""Views of decisions, with the conditions that were evaluated on the way, taken from the version that decided."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from mendflow.core.expressions.conditions import KnownValues, condition_of
from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Fault
from mendflow.core.model.repair import BY_HAND, Conclusion, Decision, ExceptionType
from mendflow.core.model.repair_views import CandidateView, DecisionView, RetryState, TrailStep
from mendflow.core.model.rules import Rule
from mendflow.core.model.values import Value
from mendflow.core.recovery.error_lines import without_end
from mendflow.core.recovery.own_words import words_of_element
from mendflow.core.recovery.redaction import redact
from mendflow.core.recovery.signature import normalize_message
from mendflow.core.rules.candidates import (
    CODES,
    TELLING_PATHS,
    Candidate,
    OwnValues,
    candidates,
    distinguishes,
    leaves,
    phrases,
    quote_literal,
    root_weight,
)
from mendflow.core.rules.evaluation import context_lookup
from mendflow.services.recovery.contexts import is_accident
from mendflow.services.recovery.failures import group_id
from mendflow.services.recovery.rules.store import RuleStore

VALUES_MAX = 20
CANDIDATES_MAX = 12
SUCCEEDED_MAX = 100
SUCCEEDED_SHARE_MAX = 0.2
"""A condition that holds for more of what ended well tells nothing of failures. One that holds for a few may: a bad
host does not fail every job."""

LOG = "job.log_tail"
VALUE_CHARS_MAX = 120
EXACT = CODES | {"trigger", "file"}
"""Values that name a cause, whereas a category or a stage holds for many."""

MOSTLY = 0.5
"""A value is shown if at least this share of the samples has it."""


class RuleVersionCache:
    """The rules of the versions that decided, each version read once."""

    def __init__(self, rules: RuleStore) -> None:
        self._rules = rules
        self._known: dict[tuple[str, int, str, str], Mapping[int, Rule]] = {}

    async def of(self, conclusion: Conclusion) -> Mapping[int, Rule]:
        key = (conclusion.rules, conclusion.version, conclusion.type.value, conclusion.task)
        if key not in self._known:
            try:
                found = (
                    (await self._rules.version(conclusion.rules, conclusion.version))
                    .trees.get(conclusion.type, {})
                    .get(conclusion.task)
                )
            except NotFound:
                found = None
            self._known[key] = found.rules if found else {}
        return self._known[key]


async def view_of(decision: Decision, conditions: RuleVersionCache, *, whole: bool = False) -> DecisionView:
    conclusion = decision.conclusion
    by_hand = conclusion is not None and conclusion.rule == BY_HAND
    rules = await conditions.of(conclusion) if conclusion else {}
    decided = rules.get(conclusion.rule) if conclusion else None
    return DecisionView(
        id=decision.id,
        case=decision.case,
        flow=decision.flow,
        type=decision.type,
        at=decision.at,
        state=decision.state,
        item=decision.item,
        task=decision.task,
        job=decision.job,
        engine=decision.engine,
        fault=public_fault(decision.fault) if decision.fault is not None else None,
        group=group_id(decision.type, decision.signature),
        rules=conclusion.rules if conclusion and not by_hand else "",
        version=conclusion.version if conclusion and not by_hand else 0,
        tree=conclusion.task if conclusion else "",
        rule=conclusion.rule if conclusion and not by_hand else None,
        ordered_by=conclusion.ordered_by if conclusion else "",
        trigger=str(decision.context.get("trigger") or ""),
        condition=decided.condition if decided else "",
        reason=decided.note if decided else "",
        exlet=decision.exlet,
        exlet_case=decision.exlet_case,
        trail=_trail(conclusion, rules) if conclusion else [],
        others=conclusion.others if conclusion else 0,
        trials=decision.trials,
        errors=decision.errors,
        ended_at=decision.ended_at,
        result=decision.result,
        note=decision.note,
        tried=decision.tried,
        replaced_by=decision.replaced_by,
        undone=decision.undone,
        context=decision.context if whole else {},
        element=str(_of_job(decision, "element") or ""),
        retries=_retries(decision),
    )


def _of_job(decision: Decision, fact: str) -> Value:
    """What the context of the exception says of its job."""
    job = decision.context.get("job")
    return job.get(fact) if isinstance(job, dict) else None


def _retries(decision: Decision) -> RetryState:
    if decision.type is not ExceptionType.ABORT or decision.job is None:
        return ""
    if _of_job(decision, "final") is False:
        return "left"
    if not _of_job(decision, "retries_spent"):
        return ""
    return "spent" if _of_job(decision, "retries") else "none"


def public_fault(fault: Fault) -> Fault:
    """The fault as it is shown: its data may contain secrets."""
    return msgspec.structs.replace(fault, data=redact({"data": fault.data})["data"])


def _trail(conclusion: Conclusion, rules: Mapping[int, Rule]) -> list[TrailStep]:
    return [
        TrailStep(
            rule=tested.rule,
            held=tested.held,
            condition=rules[tested.rule].condition if tested.rule in rules else "",
            values=tested.values,
            error=tested.error,
        )
        for tested in conclusion.trail
    ]


def common_values(samples: Sequence[Decision]) -> dict[str, dict[str, int]]:
    """Values that most samples share, by path; values that explain the cause come before values that name a place.
    Empty values are left out."""
    counted: dict[str, Counter[str]] = {}
    for sample in samples:
        for path, value in leaves(sample.context).items():
            if value not in (None, "", 0, 0.0, False, [], {}):
                counted.setdefault(path, Counter())[_shown(value)] += 1
    counters = {
        path: values
        for path, values in counted.items()
        if values.most_common(1)[0][1] >= MOSTLY * len(samples)
        and path.partition(".")[0] not in ("capacity", "history")
    }
    order = sorted(counters, key=lambda path: (path.rpartition(".")[2] not in TELLING_PATHS, root_weight(path), path))
    return {path: dict(counters[path].most_common(4)) for path in order[:VALUES_MAX]}


def distinguishing_conditions(
    samples: Sequence[Decision],
    neighbour: Mapping[str, Value] | None,
    others: Sequence[Decision] = (),
    succeeded: Sequence[Mapping[str, Value]] = (),
) -> list[CandidateView]:
    """Conditions that hold for the newest sample, not for the neighbour, and for few jobs that `succeeded`: first
    those that hold for most samples, of these the ones that can be compared with what succeeded, of these the ones
    that hold for the fewest failures of other causes and the fewest jobs that succeeded, and of these the most
    specific: words of the error that a program printed say more than its exit code. What a job is, and what it printed,
    is compared with jobs of the same task: words that each run of a program prints tell nothing, however few of all
    jobs run it. None names what is one item's own where several failed. Where a
    rule takes this cause up already, its own cornerstone is no neighbour, unless what it did has failed: the two
    would differ by accidents alone."""
    newest = samples[0]
    went_wrong = newest.result == "failed" or newest.state == "rejected"
    if neighbour is not None and not went_wrong and _is_alike(newest, neighbour):
        neighbour = None
    told = _error_conditions(newest, neighbour)
    known = {each.condition for each in told}
    well = succeeded[:SUCCEEDED_MAX]
    alike = _of_tasks(well, {_task(each.context) for each in samples})
    printed = _log_conditions(newest, neighbour, alike)
    found = [*told, *printed, *candidates(newest.context, neighbour, CANDIDATES_MAX * 2)]
    own = OwnValues(newest.context)
    several = len({(each.case, each.item) for each in samples}) > 1
    found = [each for each in found if not is_accident(each.path) and not (several and own.is_named_by(each))]
    roots = {root for context in well for root in context}
    most = SUCCEEDED_SHARE_MAX * len(well)
    compared = {path for context in [*well, *_contexts(others)] for path in leaves(context)}
    found = [
        each
        for each in {each.condition: each for each in found}.values()
        if _holds_in(each.condition, well) <= most
        and _is_unusual(each, alike)
        and (not compared or _is_comparable(each.path, compared, roots))
    ]
    counted = [(each, _holds_in(each.condition, _contexts(samples))) for each in found]
    narrow = {each.condition: _holds_in(each.condition, [*_contexts(others), *well]) for each in found}
    best = sorted(
        counted,
        key=lambda pair: (
            own.is_named_by(pair[0]),
            -pair[1],
            bool(roots) and re.split(r"[.\[]", pair[0].path, maxsplit=1)[0] not in roots,
            narrow[pair[0].condition],
            pair[0].condition not in known,
            pair[0].path.rpartition(".")[2] not in EXACT,
        ),
    )[:CANDIDATES_MAX]
    return [
        CandidateView(condition=each.condition, reason=f"holds in {number} of {len(samples)}") for each, number in best
    ]


def _is_unusual(candidate: Candidate, alike: Sequence[Mapping[str, Value]]) -> bool:
    """Whether it says something that jobs of the same task that ended well do not have. Of what a program prints, none
    of them may have printed it."""
    if candidate.path == LOG:
        return not _holds_in(candidate.condition, alike)
    return not candidate.path.startswith("job.") or (
        _holds_in(candidate.condition, alike) <= SUCCEEDED_SHARE_MAX * len(alike)
    )


def _task(context: Mapping[str, Value]) -> Value:
    item = context.get("item")
    return item.get("name") if isinstance(item, dict) else None


def _of_tasks(contexts: Sequence[Mapping[str, Value]], tasks: Collection[Value]) -> list[Mapping[str, Value]]:
    return [context for context in contexts if _task(context) in tasks]


def _log(context: Mapping[str, Value]) -> str:
    job = context.get("job")
    return str(job.get("log_tail") or "") if isinstance(job, dict) else ""


def _log_conditions(
    sample: Decision, neighbour: Mapping[str, Value] | None, alike: Sequence[Mapping[str, Value]]
) -> list[Candidate]:
    """Conditions over the log of a job, with words that no job of its task that ended well has printed."""
    usual = "\n".join(_log(context) for context in alike)
    if not usual.strip():
        return []
    return _log_holds(phrases(_log(sample.context), usual, OwnValues(sample.context).words), sample, neighbour)


def _log_holds(words: Sequence[str], sample: Decision, neighbour: Mapping[str, Value] | None) -> list[Candidate]:
    made = [f"{LOG}.contains({quote_literal(each)})" for each in words]
    return [Candidate(condition=each, path=LOG) for each in made if distinguishes(each, sample.context, neighbour)]


def _is_comparable(path: str, compared: Collection[str], roots: Collection[str]) -> bool:
    """Whether the value is known of something else, so that it can be seen whether only these failures have it. What a
    failure says of itself, and what is never known of what succeeded, needs no such comparison."""
    root = re.split(r"[.\[]", path, maxsplit=1)[0]
    return path in compared or root == "fault" or root not in roots


def _is_alike(sample: Decision, context: Mapping[str, Value]) -> bool:
    """Whether this context is one of a failure of the same cause."""
    return sample.fault is not None and _cause(sample.context) == _cause(context)


def _cause(context: Mapping[str, Value]) -> list[Value]:
    fault = context.get("fault")
    known = fault if isinstance(fault, dict) else {}
    job = context.get("job")
    own = words_of_element(str(job.get("element") or "")) if isinstance(job, dict) else ()
    message = normalize_message(without_end(str(known.get("message") or "")), own)
    return [*(known.get(name) for name in ("category", "name", "exit_code", "signal")), message]


def _error_conditions(sample: Decision, neighbour: Mapping[str, Value] | None) -> list[Candidate]:
    """Conditions over the log of a job, with words of the error that it printed."""
    fault = sample.fault
    if fault is None or (error := without_end(fault.message)) == fault.message:
        return []
    return _log_holds(phrases(error, "", OwnValues(sample.context).words), sample, neighbour)


def _contexts(decisions: Sequence[Decision]) -> list[Mapping[str, Value]]:
    return [decision.context for decision in decisions]


def _holds_in(condition: str, contexts: Sequence[Mapping[str, Value]]) -> int:
    made = condition_of(condition)
    return sum(made.holds(KnownValues(context_lookup(context)))[0] for context in contexts)


def _shown(value: Value) -> str:
    return value[:VALUE_CHARS_MAX] if isinstance(value, str) else msgspec.json.encode(value).decode()[:VALUE_CHARS_MAX]
