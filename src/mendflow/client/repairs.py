"""The part of the client that is about repairs: rules, failures, decisions, histories, levels, foreign engines."""

import uuid
from urllib.parse import quote

import msgspec

from mendflow.client.transport import STREAM_READ_S, Transport
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.repair_views import (
    ApplyResult,
    CompensationView,
    DecisionQuery,
    DecisionView,
    DrainResult,
    EngineOrder,
    EngineView,
    EventAnswer,
    FailureGroup,
    FailureView,
    HistoryEntry,
    LevelView,
    RejectRequest,
    RepairRequest,
    RuleAddition,
    RuleChange,
    RuleSelector,
    RuleSetView,
    RuleSpec,
    TrialView,
    TriggerView,
)
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import Value
from mendflow.core.recovery.patterns import Patterns


class RepairCalls:
    _transport: Transport

    # rules; the name of a set is its flow's, or "*" for the default rules

    async def rule_sets(self) -> list[RuleSetView]:
        return await self._transport.ask("GET", "/rules", list[RuleSetView])

    async def rule_set(self, name: str, version: int | None = None) -> RuleSetView:
        query: dict[str, str | int] = {} if version is None else {"version": version}
        return await self._transport.ask("GET", _set(name), RuleSetView, query=query)

    async def rule_versions(self, name: str) -> list[RuleSetView]:
        return await self._transport.ask("GET", f"{_set(name)}/versions", list[RuleSetView])

    async def put_rules(self, rules: RuleSet, *, note: str = "", expected: int | None = None) -> RuleSetView:
        """The set's next version, at once for all cases. Refused if the newest is not `expected` any more."""
        body = {"rules": rules, "note": note, "expected": expected}
        return await self._transport.ask("PUT", _set(rules.name), RuleSetView, body=body)

    async def restore_rules(self, name: str, version: int) -> RuleSetView:
        return await self._transport.ask("POST", f"{_set(name)}/restore", RuleSetView, body={"version": version})

    async def promote_rule(self, name: str, meant: RuleSelector) -> RuleChange:
        """Put a rule that was on trial in force."""
        return await self._transport.ask("POST", f"{_set(name)}/promote", RuleChange, body=meant)

    async def retire_rule(self, name: str, meant: RuleSelector) -> RuleChange:
        """Take a rule out of use."""
        return await self._transport.ask("POST", f"{_set(name)}/retire", RuleChange, body=meant)

    async def add_rule(self, wish: RuleSpec) -> RuleAddition:
        return await self._transport.ask("POST", "/rules/add", RuleAddition, body=wish)

    async def try_rule(self, wish: RuleSpec, *, limit: int = 10_000) -> TrialView:
        """What the rule would have caught; nothing changes, so this is repeated when the line breaks."""
        return await self._transport.ask(
            "POST", "/rules/try", TrialView, query={"limit": limit}, body=wish, repeatable=True
        )

    # failures and what was decided

    async def failures(self, *, since: Instant = 0, flow: str = "", limit: int = 100) -> list[FailureGroup]:
        query: dict[str, str | int] = {"since": since, "flow": flow, "limit": limit}
        return await self._transport.ask("GET", "/failures", list[FailureGroup], query=query)

    async def failure(self, group: str) -> FailureView:
        return await self._transport.ask("GET", f"/failures/{quote(group, safe='')}", FailureView)

    async def apply_rules(self, group: str, *, retry: bool = False) -> ApplyResult:
        """Ask the rules again about what waits, or has failed, by this cause; cases that failed go on from where they
        stood. `retry`: what no rule takes up is tried again as it is."""
        path = f"/failures/{quote(group, safe='')}/apply"
        return await self._transport.ask("POST", path, ApplyResult, body={"retry": retry})

    async def decisions(self, query: DecisionQuery | None = None) -> list[DecisionView]:
        asked = msgspec.structs.asdict(query or DecisionQuery())
        return await self._transport.ask("GET", "/decisions", list[DecisionView], query=asked)

    async def decision(self, decision: str) -> DecisionView:
        return await self._transport.ask("GET", f"/decisions/{quote(decision, safe='')}", DecisionView)

    async def reject_choice(self, wish: RejectRequest) -> DecisionView:
        return await self._transport.ask("POST", "/decisions/reject", DecisionView, body=wish)

    # one history, and exceptions from outside

    async def history(self, case: str) -> list[HistoryEntry]:
        return await self._transport.ask("GET", f"{_case(case)}/history", list[HistoryEntry])

    async def xes(self, case: str = "", *, flow: str = "", limit: int = 1000) -> str:
        """The history of a case, or of the newest cases of a flow, as an XES log."""
        path = f"{_case(case)}/history" if case else f"/flows/{quote(flow, safe='')}/history"
        query: dict[str, str | int] = {"format": "xes"} if case else {"limit": limit}
        async with self._transport.open("GET", path, query=query, read_s=STREAM_READ_S) as response:
            return (await response.read()).decode()

    async def triggers(self, case: str, item: str = "") -> list[TriggerView]:
        return await self._transport.ask("GET", f"{_case(case)}/triggers", list[TriggerView], query={"item": item})

    async def raise_trigger(self, case: str, trigger: str, item: str = "", *, data: Value = None) -> DecisionView:
        body = {"trigger": trigger, "item": item, "data": data}
        return await self._transport.ask("POST", f"{_case(case)}/raise", DecisionView, body=body)

    async def mend(self, case: str, wish: RepairRequest) -> DecisionView:
        return await self._transport.ask("POST", f"{_case(case)}/mend", DecisionView, body=wish)

    # the library of compensations

    async def compensations(self) -> list[CompensationView]:
        return await self._transport.ask("GET", "/compensations", list[CompensationView])

    async def register_compensation(self, task: str, flow: str = "") -> list[CompensationView]:
        """Let a deployed flow undo a task, in cases that begin from now on; without a flow, none does."""
        wish = CompensationView(task=task, flow=flow)
        return await self._transport.ask("POST", "/compensations", list[CompensationView], body=wish, repeatable=True)

    # levels of retries

    async def levels(self) -> list[LevelView]:
        return await self._transport.ask("GET", "/levels", list[LevelView])

    async def drain(self, level: str) -> DrainResult:
        return await self._transport.ask("POST", f"/levels/{quote(level, safe='')}/drain", DrainResult)

    # the repository of patterns

    async def patterns(self) -> Patterns:
        return await self._transport.ask("GET", "/patterns", Patterns)

    async def add_patterns(self, patterns: Patterns) -> Patterns:
        """Added twice they are the same, so this is repeated when the line breaks."""
        return await self._transport.ask("POST", "/patterns", Patterns, body=patterns, repeatable=True)

    # engines of other systems

    async def engines(self) -> list[EngineView]:
        return await self._transport.ask("GET", "/engines", list[EngineView])

    async def register_engine(self, name: str) -> EngineView:
        """Registered again it is the same engine, so this is repeated when the line breaks."""
        return await self._transport.ask("POST", "/engines", EngineView, body={"name": name}, repeatable=True)

    async def engine_event(self, engine: str, event: ExceptionEvent) -> EventAnswer:
        """The same id is the same event, so this is repeated when the line breaks."""
        named = event if event.id else msgspec.structs.replace(event, id=uuid.uuid4().hex)
        return await self._transport.ask("POST", f"{_engine(engine)}/events", EventAnswer, body=named, repeatable=True)

    async def engine_orders(self, engine: str, *, wait_ms: int = 0) -> list[EngineOrder]:
        """Held back until there is an order, or the time is over."""
        async with self._transport.open(
            "POST",
            f"{_engine(engine)}/orders",
            query={"wait_ms": wait_ms},
            timeout=self._transport.timeout_for(wait_ms / 1000),
        ) as response:
            return msgspec.json.decode(await response.read(), type=list[EngineOrder])

    async def engine_done(self, engine: str, order: str, answer: Value = True) -> list[EngineOrder]:
        """Said twice it counts once. The orders that are still open are the answer."""
        body = {"order": order, "answer": answer}
        return await self._transport.ask(
            "POST", f"{_engine(engine)}/done", list[EngineOrder], body=body, repeatable=True
        )


def _case(case: str) -> str:
    return f"/cases/{quote(case, safe='')}"


def _set(name: str) -> str:
    return f"/rules/{quote(name, safe='')}"


def _engine(name: str) -> str:
    return f"/engines/{quote(name, safe='')}"
