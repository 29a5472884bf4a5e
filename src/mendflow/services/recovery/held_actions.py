"""What was held for a repair: the start or the end of a case or an item, or the outcome of a job. It continues when the
repair is over, or earlier where the exlet only waits; an outcome that was not mended is passed on to the flow."""

from collections.abc import Mapping
from typing import Final

from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.recovery.decision_subject import event_of_decision, subject_of_decision
from mendflow.services.base.contracts import MendableJobs
from mendflow.services.base.engine_interfaces import Engine
from mendflow.services.cases.suspensions import sentence
from mendflow.services.recovery.decisions import DecisionStore, EngineCaseId, name_of

CONSTRAINT_TYPES: Final = frozenset(
    {ExceptionType.CASE_PRE, ExceptionType.CASE_POST, ExceptionType.ITEM_PRE, ExceptionType.ITEM_POST}
)
"""For these types what was held continues when the exlet waits for something, unless it was suspended."""


class HeldActions:
    """`engines` are those that hold, by name; `jobs` hold the outcomes of jobs."""

    def __init__(self, *, engines: Mapping[str, Engine], decisions: DecisionStore, jobs: MendableJobs | None) -> None:
        self._engines = engines
        self._decisions = decisions
        self._jobs = jobs

    def engine(self, decision: Decision) -> Engine:
        found = self._engines.get(decision.engine)
        assert found is not None, f"nobody has registered the engine {decision.engine!r}"
        return found

    async def release(self, decision: Decision, *, passes_on: bool) -> None:
        """The repair is over. `passes_on`: it mended nothing, so the flow is told of the failure."""
        engine = self.engine(decision)
        if decision.type is ExceptionType.ABORT and decision.job is not None and not decision.engine:
            if passes_on and self._jobs is not None:
                await self._jobs.pass_on(decision.job, decided=subject_of_decision(decision, decision.job))
            return
        await engine.release(event_of_decision(decision.id))

    async def release_while_exlet_waits(self, decision: Decision) -> None:
        """A step of the exlet waits for something: what was held continues meanwhile, unless it was suspended."""
        if decision.type not in CONSTRAINT_TYPES or decision.released or decision.state != "running":
            return
        engine = self.engine(decision)
        if not await engine.suspended(decision.case, decision.item):
            decision.released = True
            self._decisions.note(decision)
            await engine.release(event_of_decision(decision.id))

    async def release_case(self, decision: Decision) -> None:
        """Release a case that was suspended until the repair is over."""
        if decision.safeguard:
            await self.engine(decision).resume(decision.case, None, holder=decision.safeguard, by=f"{decision.id}/end")

    async def remaining_holds(self, decision: Decision, exlet: CaseId) -> list[str]:
        """What a failed exlet has suspended stays suspended, for a person to decide: who holds it, and what to do."""
        engine = self.engine(decision)
        cases = dict.fromkeys([decision.case, *await engine.cases_of(decision.flow, decision.project)])
        held = [(case, await engine.held_by(exlet, case)) for case in cases]
        names = {case: CaseId(name_of(EngineCaseId(decision.engine, case))) for case in cases}
        return [sentence(names[case], holds) for case, holds in held if holds]
