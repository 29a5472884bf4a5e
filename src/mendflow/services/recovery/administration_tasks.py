"""Administration tasks: what a person is asked to handle because no rule did, or because a rule was wrong.

The record is a part of the decision that it is about: who asks, in which scenario, and what is suggested. What came of
it is the rest of that decision, so that the two cannot contradict each other, and both survive a crash together."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.repair import BY_HAND, AdministrationRequest, Decision, ExceptionType
from mendflow.core.model.repair_views import (
    AdministrationOutcome,
    AdministrationQuery,
    AdministrationTaskKind,
    AdministrationTaskState,
    AdministrationTaskView,
)
from mendflow.core.model.values import Value
from mendflow.services.base.visibility import in_sight
from mendflow.services.recovery.decisions import DecisionStore, EngineCaseId, case_name
from mendflow.services.recovery.failures import group_id
from mendflow.stores.contract import FieldCondition

BY_RULES: Final = "mendflow"
"""Who asks where no person does: the service, because a rule is missing."""
_REJECTED: Final = FieldCondition("request.rejection", "open")
_ENDED: Final[list[Value]] = ["done", "failed", "passive", "ignored", "rejected"]
_EXTERNAL: Final = frozenset({ExceptionType.CASE_EXTERNAL, ExceptionType.ITEM_EXTERNAL})


def request_for_failure(decision: Decision) -> AdministrationRequest:
    """A failure that nobody took up is held."""
    name, group = case_name(decision), group_id(decision.type, decision.signature)
    what = decision.fault.message if decision.fault is not None else "it failed"
    return AdministrationRequest(
        asked_by=BY_RULES,
        asked_at=decision.at,
        scenario=f"{decision.item or name} failed, and {decision.tried or 'no rule took it up'}: {what}",
        suggestion=f"a rule: mendflow failures show {group}; or another try: mendflow resume {name}; or a repair:"
        f" mendflow mend {name} --exlet EXLET",
    )


def request_for_worklet(decision: Decision, reason: str, now: Instant) -> AdministrationRequest:
    """No worklet was chosen for an item."""
    name = case_name(decision)
    return AdministrationRequest(
        asked_by=BY_RULES,
        asked_at=now,
        scenario=f"{decision.item} waits for a worklet: {reason}",
        suggestion=f"mendflow mend {name} --exlet FLOW chooses one; mendflow rules add makes a rule for the next ones",
    )


def request_for_trigger(
    decision: Decision, *, who: str, trigger: str, scenario: str, suggestion: str
) -> AdministrationRequest:
    """Somebody, or another engine, has raised what no rule knows."""
    name = case_name(decision)
    return AdministrationRequest(
        asked_by=who or (f"engine {decision.engine}" if decision.engine else BY_RULES),
        asked_at=decision.at,
        scenario=scenario or f"{trigger!r} was raised on {decision.item or name}, and no rule knows it",
        suggestion=suggestion or f"mendflow mend {name} --exlet EXLET",
    )


def request_to_replace(exlet: str, *, who: str, note: str, now: Instant) -> AdministrationRequest:
    """A person has rejected a choice, and said what is right instead."""
    return AdministrationRequest(
        asked_by=who, asked_at=now, scenario=note or "the choice was wrong", suggestion=f"{exlet} in its place"
    )


def request_to_judge(decision: Decision, *, who: str, note: str, now: Instant) -> AdministrationRequest:
    """A person says that a choice was wrong, and does not know the right one. If somebody was asked about the decision
    before, both stand in the record."""
    before = decision.request
    return AdministrationRequest(
        asked_by=who,
        asked_at=now,
        scenario=f"{before.scenario}; then {decision.exlet} was wrong: {note}" if before is not None else note,
        suggestion=f"another exlet: mendflow rules reject {decision.id} --exlet EXLET; or, if its case is over, a rule:"
        f" mendflow rules add --from {decision.id}; if the choice was right:"
        f" mendflow rules reject {decision.id} --withdraw --note WHY",
        rejection="open",
    )


def answer_rejection(decision: Decision, *, who: str, now: Instant, note: str = "") -> None:
    """An author has taken it up."""
    decision.taken_up_at, decision.taken_up_by = now, who
    if note:
        decision.note = f"{decision.note}; {note}" if decision.note else note
    if decision.request is not None and decision.request.rejection:
        decision.request = replace(decision.request, rejection="answered")


async def administration_tasks(
    decisions: DecisionStore, query: AdministrationQuery, case: EngineCaseId | None, sight: Sight = EVERYTHING
) -> Sequence[Decision]:
    """The decisions that a person was asked about, the newest first; of one case, or of all."""
    where = [FieldCondition("request.asked_at", 0, "gt"), *in_sight(sight)]
    if case is not None:
        where += [FieldCondition("case", case.case), FieldCondition("engine", case.engine)]
    if query.state == "open":
        return await _open_tasks(decisions, where, query)
    if query.state:
        states: list[Value] = ["running"] if query.state == "running" else _ENDED
        where += [FieldCondition("state", states, "in"), FieldCondition("request.rejection", "open", "ne")]
    return await decisions.search(where, limit=query.limit, offset=query.offset)


async def _open_tasks(
    decisions: DecisionStore, where: Sequence[FieldCondition], query: AdministrationQuery
) -> Sequence[Decision]:
    """Decisions that wait for a person, and those that somebody says were wrong, whatever has become of them."""
    conditions, last = (FieldCondition("state", "waiting"), _REJECTED), query.offset + query.limit
    found = [each for one in conditions for each in await decisions.search([*where, one], limit=last)]
    newest = sorted({each.id: each for each in found}.values(), key=lambda each: (each.at, each.id), reverse=True)
    return newest[query.offset : last]


async def administration_task(decisions: DecisionStore, id: str) -> Decision:
    found = await decisions.find(id) or await decisions.find(f"{id}/")  # HTTP takes the slash off the end of a path
    if found is None or found.request is None:
        raise NotFound(f"there is no administration task {id!r}; `mendflow worklist administration --all` lists them")
    return found


def administration_view(decision: Decision) -> AdministrationTaskView:
    assert decision.request is not None, "a decision that nobody was asked about is no administration task"
    asked = decision.request
    return AdministrationTaskView(
        id=decision.id,
        kind=_kind(decision),
        state=_state(decision),
        asked_by=asked.asked_by,
        asked_at=asked.asked_at,
        scenario=asked.scenario,
        suggestion=asked.suggestion,
        case=decision.case,
        flow=decision.flow,
        item=decision.item,
        engine=decision.engine,
        group=group_id(decision.type, decision.signature),
        outcome=_outcome(decision),
    )


def _kind(decision: Decision) -> AdministrationTaskKind:
    asked = decision.request
    if (asked is not None and asked.rejection) or (decision.replaced_by and decision.state == "rejected"):
        return "rejected-choice"
    if decision.type is ExceptionType.SELECTION:
        return "no-worklet"
    return "unexpected-event" if decision.type in _EXTERNAL else "failure"


def is_open_rejection(decision: Decision) -> bool:
    return decision.request is not None and decision.request.rejection == "open"


def _state(decision: Decision) -> AdministrationTaskState:
    if decision.state == "waiting" or is_open_rejection(decision):
        return "open"
    return "running" if decision.state == "running" or decision.correction is not None else "closed"


def _outcome(decision: Decision) -> AdministrationOutcome | None:
    """Who handled it and how; as far as it goes, while the repair runs."""
    if decision.state == "waiting" or is_open_rejection(decision):
        return None
    conclusion = decision.conclusion
    by_hand = conclusion is not None and conclusion.rule == BY_HAND
    return AdministrationOutcome(
        by=decision.taken_up_by or (conclusion.ordered_by if conclusion is not None else ""),
        at=decision.taken_up_at or decision.ended_at,
        exlet=decision.exlet,
        rules=conclusion.rules if conclusion is not None and not by_hand else "",
        rule=conclusion.rule if conclusion is not None and not by_hand else None,
        result=decision.result or ("nothing was done" if decision.state == "ignored" else ""),
        ended_at=decision.ended_at,
        replaced_by=decision.replaced_by,
        note=decision.note,
    )
