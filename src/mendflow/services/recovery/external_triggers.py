"""Triggers: somebody, or another engine, says that something has happened to a case or an item.

Rules list the triggers that they know. One that no rule knows suspends the case as a safeguard, and waits for a person
to make the exlet."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.repair import Decision, ExceptionEvent, ExceptionType
from mendflow.core.model.repair_views import TriggerView
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.core.model.values import Value, check_value
from mendflow.core.rules import triggers
from mendflow.services.base.notices import Notices
from mendflow.services.recovery.administration_tasks import request_for_trigger
from mendflow.services.recovery.decisions import case_name
from mendflow.services.recovery.exception_service import ExceptionService

TRIGGER_CHARS_MAX: Final = 200
REQUEST_CHARS_MAX: Final = 5_000
"""What a person may say of the scenario, and of what to do."""
TRIGGER_DATA_BYTES_MAX: Final = 65_536
NOTICES_CHECKED: Final = 200
"""How many of the latest notices are searched for one that was posted before a crash."""


class ExternalTriggers:
    def __init__(self, service: ExceptionService, notices: Notices) -> None:
        self._service = service
        self._rules = service.rules
        self._decisions = service.decisions
        self._notices = notices

    def known(self, flow: str, tasks: Iterable[str], project: str, *, of_case: bool) -> list[TriggerView]:
        """The triggers that the rules of a flow, and the default rules, know for these tasks; `of_case`: and for the
        case itself."""
        levels: list[tuple[Literal["case", "item"], str, ExceptionType]] = []
        if of_case:
            levels.append(("case", "", ExceptionType.CASE_EXTERNAL))
        levels += [("item", task, ExceptionType.ITEM_EXTERNAL) for task in tasks]
        found: dict[tuple[str, str, str], TriggerView] = {}
        for name in (flow, DEFAULT_RULES):
            rules = self._rules.newest_for(name, project)
            for level, task, type in levels:
                for each in triggers(rules, type, task):
                    view = TriggerView(trigger=each.name, level=level, task=task, rules=name)
                    found.setdefault((level, task, each.name), view)
        return list(found.values())

    async def decide(
        self, event: ExceptionEvent, *, who: str = "", scenario: str = "", suggestion: str = ""
    ) -> Decision:
        """Decide about a trigger, once. If no rule knows it, a person is asked, with these words."""
        if (before := await self._decisions.find(event.id)) is not None:
            return before
        trigger = str(event.facts.get("trigger", ""))
        project = await self._service.project_of(event)
        context = await self._service.context(event, 0, project=project)
        verdict = await self._service.judge(event, context, project=project)
        if (before := await self._decisions.find(event.id)) is not None:
            return before  # the same was said again while the rules were busy
        decision = self._service.new_decision(event, context, verdict.conclusion, project=project)
        self._service.note_verdict(decision, verdict)
        decision.note = "; ".join(each for each in (f"raised by {who}" if who else "", decision.note) if each)
        if verdict.conclusion is not None:
            return await self._service.apply_conclusion(decision, verdict.conclusion, context) or decision
        of_case = event.type is ExceptionType.CASE_EXTERNAL
        if trigger in {
            each.trigger for each in self.known(event.flow, [event.task], decision.project, of_case=of_case)
        }:
            decision.state = "passive" if verdict.trials else "ignored"
            self._service.record(decision, context)
            return decision
        decision.state, decision.safeguard = "waiting", f"waiting:{decision.id}"
        decision.request = request_for_trigger(
            decision, who=who, trigger=trigger, scenario=scenario, suggestion=suggestion
        )
        self._decisions.begin(decision)
        self._service.publish(decision, context)
        if decision.engine:
            self._service.run_in_background(self.suspend_case(decision))  # its engine may be away
        else:
            await self.suspend_case(decision)
        return decision

    async def suspend_case(self, decision: Decision, *, reissued: bool = False) -> None:
        """Suspend the case of an unexpected exception and tell the administrator, once."""
        if decision.state != "waiting":
            return
        engine, name = self._service.held.engine(decision), case_name(decision)
        about = f"{name}:{decision.item}" if decision.item else name
        data = msgspec.json.encode(decision.context.get("case", {}).get("data")).decode()[:500]
        message = (
            f"unexpected: {decision.context.get('trigger')!r:.{TRIGGER_CHARS_MAX}} was raised on {about}, and no rule"
            f" knows it. The case is suspended; `mendflow mend {name}` handles it. Its data: {data}"
        )
        told = reissued and any(message == notice.message for notice in await self._notices.latest(NOTICES_CHECKED))
        if not told and decision.engine:
            self._notices.post(message, case=name, item=decision.item)
        await engine.suspend(decision.case, None, holder=decision.safeguard, by=f"{decision.id}/guard")
        if not told and not decision.engine:
            self._notices.post(message, case=name, item=decision.item)


def demand_words(**texts: str) -> None:
    """Refuse texts that are too long to be kept with a decision."""
    for name, text in texts.items():
        if len(text) > REQUEST_CHARS_MAX:
            raise InvalidRequest(
                f"{name} has {len(text)} characters, and at most {REQUEST_CHARS_MAX} are taken; name where the rest is",
                field=name,
            )


def demand_trigger(trigger: str, data: Value) -> None:
    """Refuse a trigger without a name, and data that cannot be kept."""
    if not trigger or len(trigger) > TRIGGER_CHARS_MAX:
        raise InvalidRequest(
            f"say what happened in a few words: {len(trigger)} characters, of 1 to {TRIGGER_CHARS_MAX}",
            field="trigger",
        )
    if problem := check_value(data):
        raise InvalidRequest(f"what was said of it cannot be kept: {problem}", field="data")
    if (size := len(msgspec.json.encode(data))) > TRIGGER_DATA_BYTES_MAX:
        raise InvalidRequest(
            f"the data has {size} bytes, and at most {TRIGGER_DATA_BYTES_MAX} are taken; name where the rest is",
            field="data",
        )
