"""Failures grouped by their cause, over all cases.

Every decision stores the signature of its cause. To group them, each decision is read once, and only a few small fields
are decoded: contexts, which are most of a decision, are skipped. Samples of one group are then read completely."""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import Final, NamedTuple, Protocol

import msgspec

from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Category
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.principals import DEFAULT_PROJECT, Sight
from mendflow.core.model.repair import BY_HAND, RETRYING, TOLD, Decision, DecisionState, ExceptionType, Handling
from mendflow.core.model.repair_views import FailureGroup, HandlingCount
from mendflow.services.base.alerts import AlertFinding
from mendflow.services.base.cluster import first_case_of
from mendflow.services.base.readable_documents import read_or_leave_out
from mendflow.services.recovery.decisions import DECISION_KIND, case_name
from mendflow.services.recovery.exlets import exlet_depth
from mendflow.services.recovery.settled_cases import NONE_SETTLED, SettledCase, SettledCases, settled_cases
from mendflow.stores.contract import Store

DAY_MS = 86_400_000
ID_CHARS = 8
NAMES_MAX = 20
BREATH_EVERY = 2_000
"""How many decisions are read before other tasks get a turn."""


class _Fault(msgspec.Struct):
    name: str = ""
    category: str = ""
    rejected_by: str = ""


class _Request(msgspec.Struct):
    rejection: str = ""


class _Conclusion(msgspec.Struct):
    rules: str = ""
    task: str = ""
    rule: int = 0
    exlet: str = ""
    passive: bool = False


class _Key(NamedTuple):
    """Who decided about a failure, and how."""

    rules: str
    tree: str
    rule: int
    exlet: str
    passive: bool


class DecisionSummary(msgspec.Struct):
    """The fields of a decision that grouping needs."""

    id: str
    case: CaseId
    flow: str
    type: ExceptionType
    at: Instant
    state: DecisionState
    failed_at: Instant = 0
    item: ItemId | None = None
    task: str = ""
    signature: str = ""
    result: str = ""
    exlet: str = ""
    exlet_case: CaseId | None = None
    engine: str = ""
    project: str = DEFAULT_PROJECT
    job: str | None = None
    caught: bool = False
    tolerated: bool = False
    settled_at: Instant = 0
    tried_in: int = 0
    replaced_by: str = ""
    taken_up_by: str = ""
    request: _Request | None = None
    fault: _Fault | None = None
    conclusion: _Conclusion | None = None
    trials: list[_Conclusion] = []

    @property
    def occurred_at(self) -> Instant:
        """When it failed, however often and however late it was decided about."""
        return _occurred_at(self)

    @property
    def by_person(self) -> bool:
        """Whether somebody had it done: by choosing what, or by applying the rules to what waited or had failed. Who
        only answered later whether a choice was wrong has not."""
        chosen = self.conclusion is not None and self.conclusion.rule == BY_HAND
        return chosen or bool(self.taken_up_by and (self.request is None or not self.request.rejection))


class _DecidedFault(Protocol):
    @property
    def rejected_by(self) -> str: ...


class Decided(Protocol):
    """What of a decision says whether anybody has taken the failure up."""

    @property
    def state(self) -> DecisionState: ...

    @property
    def result(self) -> str: ...

    @property
    def fault(self) -> _DecidedFault | None: ...


def is_rejection(decision: Decided) -> bool:
    """Whether this is what a person has decided, who rejected a user task: nothing broke, and no rule is to be taught
    of it. What a rule took up all the same is handled by that rule."""
    by_person = decision.fault is not None and bool(decision.fault.rejected_by)
    return by_person and (decision.state == "waiting" or _is_unrepaired(decision))


def _is_unrepaired(decision: Decided) -> bool:
    """Whether no rule took it up, and nobody tries it again."""
    return decision.state in ("ignored", "passive") and decision.result != RETRIES


def handling_of(decision: DecisionSummary | Decision, settled: SettledCases) -> Handling:
    """Who has taken up this failure; `settled` are those of the cases that failed by it that are. Whatever counts,
    lists or tells of failures that nobody took up asks this, with what `settled_by` has read."""
    if decision.state == "waiting":
        return "waiting"
    if decision.result == TOLD:
        return "told"
    if not _is_unrepaired(decision):
        return "handled"
    if is_rejection(decision):
        return "rejected"
    if decision.caught:
        return "settled"  # whatever becomes of its case
    return _handling_in(settled.get(started_case(decision)), _left_of(decision))


class _Left(NamedTuple):
    """Of a failure that no rule took up: what says, with what became of its case, who has taken it up."""

    failed_at: Instant
    tried_in: int
    tolerated: bool


def _left_of(decision: DecisionSummary | Decision) -> _Left:
    return _Left(_occurred_at(decision), decision.tried_in, decision.tolerated)


def _handling_in(case: SettledCase | None, left: _Left) -> Handling:
    if case is None:
        return "unhandled"
    if _is_tried_again(case, left.tried_in):
        return "handled"
    if case.run_again_at >= left.failed_at:
        return "run-again"
    return "settled" if case.has_ended or (left.tolerated and case.is_live) else "unhandled"


def _is_tried_again(case: SettledCase | None, tried_in: int) -> bool:
    """Whether the item began again with its case. A reopening that was cut short is not one."""
    return case is not None and 0 < tried_in <= case.reopened


def may_be_asked_about(decision: DecisionSummary, settled: SettledCases) -> bool:
    """Of a failure whose case has failed: whether rules can be asked about it again. Not if somebody has taken it up in
    another way, or if its item has gone on: what that failed by since is another failure."""
    handling = handling_of(decision, settled)
    if _is_tried_again(settled.get(started_case(decision)), decision.tried_in):
        return False
    if handling != "waiting" and was_run_again(decision, settled):
        return False
    if handling == "handled":
        return not decision.settled_at and decision.result not in _GONE_ON
    return handling in ("unhandled", "waiting", "told")


def was_run_again(decision: DecisionSummary, settled: SettledCases) -> bool:
    """Whether another case stands in the place of the one that failed by it, also where a rule had tried in vain."""
    case = settled.get(started_case(decision))
    return case is not None and case.run_again_at >= decision.occurred_at


_GONE_ON: Final = frozenset({RETRYING, "recovered", "restarted", "completed", "removed"})


def started_case(decision: DecisionSummary | Decision) -> CaseId:
    """The case that somebody started and that failed by it; what it called fails with it. Empty of another engine's."""
    return CaseId("") if decision.engine else first_case_of(decision.case)


def _occurred_at(decision: DecisionSummary | Decision) -> Instant:
    return decision.failed_at or decision.at


async def settled_by(store: Store, decisions: Iterable[DecisionSummary | Decision]) -> SettledCases:
    """Which of the cases are settled that failed by these, as far as nothing else was done about them."""
    unhandled = (each for each in decisions if handling_of(each, NONE_SETTLED) == "unhandled")
    return await settled_cases(store, {started_case(each) for each in unhandled} - {CaseId("")})


def is_replaced(decision: DecisionSummary | Decision) -> bool:
    """Whether another decision about the same failure counts in its place."""
    return bool(decision.replaced_by) and decision.state != "rejected"


MESSAGE_CHARS_MAX = 300
RETRIES = "retried"
THE_QUEUE = "the queue"
"""Failures that no rule matched, and that the meta-scheduler retried by itself."""

_decode = msgspec.json.Decoder(DecisionSummary).decode


def group_id(type: ExceptionType, signature: str) -> str:
    """A short name for a cause."""
    return hashlib.sha256(f"{type.value} {signature}".encode()).hexdigest()[:ID_CHARS]


def whose(decision: Decision | DecisionSummary) -> str:
    """The project of a failure, or the engine that told of it: each may have flows that are called like those of
    others."""
    return f"{decision.engine}:" if decision.engine else decision.project


def unhandled_finding(decision: Decision) -> AlertFinding | None:
    """A failure that no rule took up, as an alert: one a day for a task of a flow that fails of one cause. Projects,
    and engines, may have flows of the same name, and each its own alert. None for what somebody wanted, who cancelled
    or rejected it, for what its flow goes on after, and for what happens in an exlet, whose own decision tells of
    it."""
    fault = decision.fault
    if decision.type is not ExceptionType.ABORT or fault is None or fault.category is Category.CANCELLED:
        return None
    if is_rejection(decision) or decision.caught or (not decision.engine and exlet_depth(decision.case)):
        return None
    name = case_name(decision)
    at = f"{name}:{decision.item}" if decision.item is not None else name
    who = f"{name}: {decision.item!r}" if decision.item is not None else name
    group, taken = group_id(decision.type, decision.signature), decision.tried or "no rule took it up"
    return AlertFinding(
        kind="failure",
        subject=f"{decision.flow}/{decision.task}" if decision.task else decision.flow,
        episode=f"{group}-{whose(decision)}-{decision.at // DAY_MS}",
        sentence=f"{who} failed, and {taken}: {_ended(fault.message)} See `mendflow why {at}`; when the"
        " reason is put right, run the case again; `mendflow rules add` makes a rule for the next time",
        case=name,
        item=decision.item,
        group=group,
        since=decision.at,
    )


def _ended(message: str) -> str:
    """The message as a sentence. A long one ends at a word, and shows that there is more: a command that was cut
    elsewhere would look whole, and be another."""
    if len(message) <= MESSAGE_CHARS_MAX:
        return f"{message}."
    begun = message[: MESSAGE_CHARS_MAX + 1]
    whole = begun.rsplit(maxsplit=1)[0] if len(begun.split()) > 1 else begun[:MESSAGE_CHARS_MAX]
    return f"{whole} ..."


async def briefs(store: Store, *, sight: Sight, selections: bool = False) -> AsyncIterator[DecisionSummary]:
    """Every failure that was decided about, once: where a decision took the place of another after the case was
    reopened, the later one counts. Selections are not failures."""
    read = 0
    async for found in store.scan(DECISION_KIND):
        brief = read_or_leave_out(found, _decode)
        if (
            brief is not None
            and not is_replaced(brief)
            and sight.sees(brief.project)
            and (selections or brief.type is not ExceptionType.SELECTION)
        ):
            yield brief
        read += 1
        if read % BREATH_EVERY == 0:
            await asyncio.sleep(0)


class _GroupBuilder:
    """One cause, as far as it has been read."""

    def __init__(self, first: DecisionSummary) -> None:
        self.type = first.type
        self.signature = first.signature
        self.category = first.fault.category if first.fault else ""
        self.count = 0
        self.by_handling = Counter[Handling]()
        self.failed: dict[CaseId, list[_Left]] = {}  # what no rule took up, by cases that may be settled
        self.first_at = self.last_at = first.occurred_at
        self.cases: set[CaseId] = set()
        self.flows: Counter[str] = Counter()
        self.tasks: Counter[str] = Counter()
        self.handled: dict[_Key, Counter[str]] = {}

    def take(self, brief: DecisionSummary) -> None:
        self.count += 1
        self.cases.add(brief.case)
        self.flows[brief.flow] += 1
        self.tasks[brief.task] += 1
        self.first_at = min(self.first_at, brief.occurred_at)
        self.last_at = max(self.last_at, brief.occurred_at)
        handling = handling_of(brief, NONE_SETTLED)
        self.by_handling[handling] += 1
        if handling == "unhandled" and (case := started_case(brief)):
            self.failed.setdefault(case, []).append(_left_of(brief))
        for trial in brief.trials:
            key = _Key(trial.rules, trial.task, trial.rule, trial.exlet, True)
            self.handled.setdefault(key, Counter())["on trial"] += 1
        conclusion = brief.conclusion
        if brief.state in ("ignored", "passive") and brief.result == RETRIES:
            self.handled.setdefault(_Key("", "", 0, THE_QUEUE, False), Counter())["tried again"] += 1
        elif conclusion is not None or brief.exlet:
            ruled = conclusion is not None and conclusion.rule != BY_HAND
            key = (
                _Key(conclusion.rules, conclusion.task, conclusion.rule, brief.exlet, conclusion.passive)
                if conclusion and ruled
                else _Key("", "", 0, brief.exlet, False)
            )
            self.handled.setdefault(key, Counter())[brief.result or brief.state] += 1

    def group(self, settled: SettledCases) -> FailureGroup:
        by_case = Counter[Handling]()
        for case, failed in self.failed.items():
            by_case.update(_handling_in(settled.get(case), each) for each in failed)
        taken_up = by_case.total() - by_case["unhandled"]
        return FailureGroup(
            id=group_id(self.type, self.signature),
            type=self.type,
            category=self.category,
            message=self.signature.partition(": ")[2] or self.signature,
            count=self.count,
            cases=len(self.cases),
            first_at=self.first_at,
            last_at=self.last_at,
            flows=_names(self.flows),
            tasks=_names(self.tasks),
            waiting=self.by_handling["waiting"],
            unhandled=self.by_handling["unhandled"] - taken_up,
            run_again=by_case["run-again"],
            settled=self.by_handling["settled"] + by_case["settled"],
            rejected=self.by_handling["rejected"],
            told=self.by_handling["told"],
            handled=sorted(map(_handling, self.handled.items()), key=lambda handling: -handling.count),
        )


def _names(counted: Counter[str]) -> list[str]:
    return [name for name, _ in counted.most_common(NAMES_MAX) if name]


def _handling(found: tuple[_Key, Counter[str]]) -> HandlingCount:
    key, results = found
    return HandlingCount(
        rules=key.rules,
        tree=key.tree,
        rule=key.rule,
        exlet=key.exlet,
        count=results.total(),
        results=dict(results.most_common()),
        passive=key.passive,
    )


async def group_failures(
    store: Store, *, since: Instant = 0, flow: str = "", limit: int = 100, sight: Sight
) -> list[FailureGroup]:
    """The most frequent causes first."""
    gathered: dict[tuple[ExceptionType, str], _GroupBuilder] = {}
    async for brief in briefs(store, sight=sight):
        if brief.occurred_at >= since and (not flow or brief.flow == flow):
            cause = gathered.get((brief.type, brief.signature))
            if cause is None:
                cause = gathered[brief.type, brief.signature] = _GroupBuilder(brief)
            cause.take(brief)
    found = sorted(gathered.values(), key=lambda cause: (-cause.count, -cause.last_at))
    settled = await settled_cases(store, {case for cause in found[:limit] for case in cause.failed})
    return [cause.group(settled) for cause in found[:limit]]


class FoundGroup(NamedTuple):
    """A cause, its failures, and those of the cases that failed by it that are settled."""

    group: FailureGroup
    members: list[DecisionSummary]
    settled: SettledCases


async def find_group(store: Store, name: str, sight: Sight) -> FoundGroup:
    """The group whose id begins with this text, and its failures, the newest first; those of jobs before those of
    calls, which fail by what they called."""
    ids: dict[tuple[ExceptionType, str], str] = {}
    groups: dict[str, list[DecisionSummary]] = defaultdict(list)
    async for brief in briefs(store, sight=sight):
        id = ids.get((brief.type, brief.signature))
        if id is None:
            id = ids[brief.type, brief.signature] = group_id(brief.type, brief.signature)
        if name and id.startswith(name):
            groups[id].append(brief)
    if not groups:
        raise NotFound(f"there is no group {name!r} of failures; `mendflow failures` lists them", group=name)
    if len(groups) > 1:
        raise NotFound(f"several groups begin with {name!r}: {', '.join(sorted(groups))}; give more", group=name)
    [members] = groups.values()
    cause = _GroupBuilder(members[0])
    for member in members:
        cause.take(member)
    settled = await settled_cases(store, cause.failed)
    return FoundGroup(cause.group(settled), sorted(members, key=lambda member: (not member.job, -member.at)), settled)
