"""The half of the domain in memory that is about repairs: rule sets that are kept, failures that never happen, and
engines that are heard and given no orders. It is here so that the HTTP face can be proved alone."""

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.mending import XEvent
from mendflow.core.model.problems import Conflict, Forbidden, NotFound
from mendflow.core.model.repair_views import (
    Applied,
    CompensationView,
    DecisionQuery,
    DecisionView,
    Drained,
    EngineOrder,
    EngineView,
    FailureGroup,
    FailureView,
    HistoryEntry,
    LevelView,
    MendWish,
    RejectWish,
    RuleAdded,
    RuleChanged,
    RuleNamed,
    RuleSetView,
    RuleWish,
    Told,
    TrialView,
    TriggerView,
)
from mendflow.core.model.rules import HOUSE, RuleSet
from mendflow.core.model.values import Value
from mendflow.core.recovery.patterns import Patterns

NOW = 1_700_000_000_000


class MemoryRepairs:
    def __init__(self) -> None:
        self._versions: dict[str, list[RuleSet]] = {HOUSE: [RuleSet(name=HOUSE)]}
        self._engines: dict[str, EngineView] = {}
        self._patterns = Patterns()
        self._library: dict[str, CompensationView] = {}

    async def rule_sets(self) -> list[RuleSetView]:
        return [_view(versions[-1]) for versions in self._versions.values()]

    async def rule_set(self, name: str, version: int | None = None) -> RuleSetView:
        found = [each for each in self._versions.get(name, ()) if version in (None, each.version)]
        if not found:
            raise NotFound(f"there are no rules {name!r} of version {version}", rules=name)
        return msgspec.structs.replace(_view(found[-1]), rules=found[-1])

    async def rule_versions(self, name: str) -> list[RuleSetView]:
        await self.rule_set(name)
        return [_view(each) for each in reversed(self._versions[name])]

    async def put_rules(self, rules: RuleSet, *, who: str, note: str = "", expected: int | None = None) -> RuleSetView:
        newest = self._versions.get(rules.name, [RuleSet(name=rules.name)])[-1].version
        if expected is not None and expected != newest:
            raise Conflict(f"rule set {rules.name!r} is at version {newest}, not {expected}")
        made = msgspec.structs.replace(rules, version=newest + 1, author=who, note=note, at=NOW)
        self._versions.setdefault(rules.name, []).append(made)
        return _view(made)

    async def restore_rules(self, name: str, version: int, *, who: str) -> RuleSetView:
        wanted = (await self.rule_set(name, version)).rules
        assert wanted is not None
        return await self.put_rules(wanted, who=who, note=f"version {version} again")

    async def promote_rule(self, name: str, meant: RuleNamed, *, who: str) -> RuleChanged:
        raise NotFound(f"there is no rule {meant.rule} of {name!r}", rules=name)

    async def retire_rule(self, name: str, meant: RuleNamed, *, who: str) -> RuleChanged:
        raise NotFound(f"there is no rule {meant.rule} of {name!r}", rules=name)

    async def add_rule(self, wish: RuleWish, *, who: str) -> RuleAdded:
        raise NotFound(f"there is no decision {wish.decision!r}", decision=wish.decision)

    async def try_rule(self, wish: RuleWish, *, limit: int = 10_000) -> TrialView:
        raise NotFound(f"there is no decision {wish.decision!r}", decision=wish.decision)

    async def failures(self, *, since: Instant = 0, flow: str = "", limit: int = 100) -> list[FailureGroup]:
        return []

    async def failure(self, group: str) -> FailureView:
        raise NotFound(f"there is no group {group!r} of failures", group=group)

    async def apply_rules(self, group: str, *, who: str) -> Applied:
        raise NotFound(f"there is no group {group!r} of failures", group=group)

    async def decisions(self, query: DecisionQuery) -> list[DecisionView]:
        return []

    async def decision(self, decision: str) -> DecisionView:
        raise NotFound(f"there is no decision {decision!r}", decision=decision)

    async def reject_choice(self, wish: RejectWish, *, who: str) -> DecisionView:
        return await self.decision(wish.decision)

    async def history(self, case: str) -> list[HistoryEntry]:
        return []

    async def triggers(self, case: str, item: str = "") -> list[TriggerView]:
        return []

    async def raise_trigger(
        self, case: str, trigger: str, item: str = "", *, who: str, data: Value = None
    ) -> DecisionView:
        return await self.decision(trigger)

    async def mend(self, case: str, wish: MendWish, *, who: str) -> DecisionView:
        return await self.decision(wish.decision)

    async def levels(self) -> list[LevelView]:
        return [LevelView(level=1, wait_ms=60_000, waiting=0)]

    async def drain(self, level: str, *, who: str) -> Drained:
        if level not in ("1", "all"):
            raise NotFound(f"there is no level {level!r}", level=level)
        return Drained(level=1, let_go=0)

    async def compensations(self) -> list[CompensationView]:
        return list(self._library.values())

    async def register_compensation(self, wish: CompensationView, *, who: str) -> list[CompensationView]:
        self._library.pop(wish.task, None)
        if wish.flow:
            self._library[wish.task] = CompensationView(task=wish.task, flow=wish.flow, author=who, at=NOW)
        return await self.compensations()

    async def patterns(self) -> Patterns:
        return self._patterns

    async def add_patterns(self, patterns: Patterns, *, who: str) -> Patterns:
        self._patterns = self._patterns.with_more(patterns)
        return self._patterns

    async def engines(self) -> list[EngineView]:
        return list(self._engines.values())

    async def register_engine(self, name: str, *, who: str) -> EngineView:
        view = EngineView(name=name, registered_at=NOW, seen_at=NOW, owner=who)
        return self._engines.setdefault(name, view)

    async def engine_event(self, engine: str, event: XEvent, *, who: str) -> Told:
        self._owned(engine, who)
        return Told(event=event.id, held=False)

    async def engine_orders(self, engine: str, *, who: str, wait_ms: int = 0) -> list[EngineOrder]:
        self._owned(engine, who)
        return []

    async def engine_done(self, engine: str, order: str, answer: Value, *, who: str) -> None:
        self._owned(engine, who)

    def _owned(self, engine: str, who: str) -> None:
        if engine not in self._engines:
            raise NotFound(f"no engine {engine!r} is registered", engine=engine)
        if self._engines[engine].owner != who:
            raise Forbidden(f"the engine {engine!r} belongs to {self._engines[engine].owner!r}")


def _view(rules: RuleSet) -> RuleSetView:
    return RuleSetView(
        name=rules.name,
        version=rules.version,
        at=rules.at,
        author=rules.author,
        note=rules.note,
        exlets=[*rules.exlets],
    )
