"""Rejects a choice: the wrong exlet, or worklet, is stopped, what it held continues, and the right one replaces it.

That takes many steps in several cases. So the rejection is written first, into the document of the wrong decision, and
removed when all is done: a server that is stopped in between finds it there and repeats every step. Each step is
idempotent."""

from collections.abc import Iterable

from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair import RETRYING, Conclusion, Decision, ExceptionType
from mendflow.services.base.contracts import Clock
from mendflow.services.base.engine_interfaces import Engine
from mendflow.services.base.ledger import Ledger
from mendflow.services.recovery.decisions import is_by_hand, successor, successor_id
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.services.recovery.worklet_choices import is_own_selection


class RejectionHandler:
    def __init__(self, service: ExceptionService, ledger: Ledger, clock: Clock) -> None:
        self._service = service
        self._decisions = service.decisions
        self._ledger = ledger
        self._clock = clock

    def resume(self, decisions: Iterable[Decision]) -> None:
        """After a start: complete what was under way."""
        for decision in decisions:
            if decision.correction is not None:
                self._service.run_in_background(self._again(decision))

    async def _again(self, wrong: Decision) -> None:
        await self._finish(wrong)

    async def reject(self, wrong: Decision, right: Conclusion, note: str) -> Decision:
        """Replace a decision by this conclusion; returns the new decision, or for a worklet the wrong decision, which
        says what was chosen instead."""
        wrong.state, wrong.correction, wrong.note = "rejected", right, note
        wrong.replaced_by, wrong.ended_at = successor_id(wrong), self._clock.now()
        wrong.result = "rejected" if wrong.result in ("", RETRYING) else wrong.result
        self._decisions.begin(wrong)
        await self._ledger.settled()
        if wrong.engine:
            # Its engine fetches its orders when it likes: nobody waits for that.
            self._service.run_in_background(self._again(wrong))
            return wrong
        return await self._finish(wrong)

    async def _finish(self, wrong: Decision) -> Decision:
        """All steps, whichever were done before."""
        engine, holder = self._service.held.engine(wrong), f"reject:{wrong.id}"
        stands = wrong
        if await engine.facts(wrong.case) is not None:
            await engine.suspend(wrong.case, None, holder=holder, by=f"{wrong.id}/reject")
            if not is_own_selection(wrong):
                stands = await self._replace(wrong, engine)
            elif wrong.item is not None:
                await engine.restart(wrong.case, wrong.item, by=f"{wrong.id}/again")
            await engine.resume(wrong.case, None, holder=holder, by=f"{wrong.id}/replaced")
            if is_own_selection(wrong):
                await self._note_new_choice(wrong, engine)
            await self._ledger.settled()
        wrong.correction = None
        self._decisions.close(wrong)
        return stands

    async def _note_new_choice(self, wrong: Decision, engine: Engine) -> None:
        """The call was restarted: its worklet is cancelled, and the rules are asked again, for another serial; unless a
        person has chosen."""
        facts = await engine.facts(wrong.case, wrong.item)
        serial = next((each.serial for each in facts.items if each.item == wrong.item), 0) if facts else 0
        wrong.replaced_by = f"{wrong.case}/{serial}/{ExceptionType.SELECTION.value}"
        known = await self._decisions.find(wrong.replaced_by) or self._decisions.open.get(wrong.replaced_by)
        if wrong.correction is not None and is_by_hand(wrong.correction) and serial and known is None:
            right = successor(wrong, wrong.correction, self._clock)
            right.id, right.serial, right.exlet_case = wrong.replaced_by, serial, CaseId(f"{wrong.case}.{serial}")
            self._decisions.begin(right)

    async def _replace(self, wrong: Decision, engine: Engine) -> Decision:
        assert wrong.correction is not None
        if wrong.exlet_case is not None:
            await self._service.engines[""].cancel(wrong.exlet_case, reason=wrong.note, by=f"{wrong.id}/wrong")
            await self._undo_holds(wrong, engine, wrong.exlet_case)
        begun = await self._decisions.find(wrong.replaced_by)
        if begun is not None:
            return begun
        right = successor(wrong, wrong.correction, self._clock)
        right.taken_up_by = wrong.taken_up_by  # a person had it replaced
        return await self._service.apply_conclusion(right, wrong.correction, right.context) or right

    async def _undo_holds(self, wrong: Decision, engine: Engine, holder: CaseId) -> None:
        """What the wrong exlet suspended continues: cases of the flow, and items of the case."""
        by = f"{wrong.id}/undo"
        for case in {*await engine.cases_of(wrong.flow, wrong.project), wrong.case}:
            await engine.resume(case, None, holder=holder, by=by)
        facts = await engine.facts(wrong.case, wrong.item)
        for each in facts.items if facts is not None else ():
            if each.status == "suspended":
                await engine.resume(wrong.case, each.item, holder=holder, by=by)
