"""Carries out the primitives of exlets on the case that is mended.

Each primitive is an order of the exlet's own case, and its identity, `EXLET/SERIAL`, goes with everything that is done
for it: so when a crash makes the exlet repeat the order, nothing is done twice. What is suspended is held in the
exlet's name, and `continue` releases nothing else.

A primitive that cannot be done fails the exlet, also one for an item that the flow does not have; one whose case or
item has ended by then has nothing left to do. A primitive for another item than that of the decision does not settle
the decision's item: its failure is still passed on."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from mendflow.core.engine import item_order
from mendflow.core.engine.messages import RunPrimitive
from mendflow.core.model.errors import InvalidRequest, RequestError, StoreUnavailable
from mendflow.core.model.faults import asked_for_by
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.values import Value
from mendflow.core.recovery.decision_subject import subject_of_decision
from mendflow.core.recovery.primitive_checks import WHOLE_CASES
from mendflow.services.base.contracts import Change, MendableJobs, SubmissionFailed
from mendflow.services.base.notices import Notices
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.services.recovery.levels import LevelEntry, Levels
from mendflow.services.recovery.primitive_settings import (
    change_of,
    failed,
    fault_for,
    host_to_leave,
    level_of,
    mode_of,
    next_source,
)
from mendflow.services.recovery.repair_targets import (
    RepairTarget,
    RepairTargets,
    job_of,
    job_of_ended_item,
)
from mendflow.services.recovery.replaced_inputs import FilesInPlace, with_files_in_place
from mendflow.services.recovery.unwinding import Unwinding

log = logging.getLogger("mendflow.primitives")

RESULTS: Final = {
    Primitive.REMOVE: "removed",
    Primitive.RESTART: "restarted",
    Primitive.COMPLETE: "completed",
    Primitive.FAIL: "failed",
    Primitive.UNWIND: "unwound",
}
"""The result of a decision after its exlet has done this."""


class UnwindHandler(Protocol):
    async def unwind(self, exlet: LiveCase, serial: int, case: CaseId) -> Unwinding:
        """Start to undo what the case has completed, as a case whose end is the end of this item of the exlet."""
        ...


BEFORE_SUBMISSION = frozenset({ExceptionType.ITEM_PRE, ExceptionType.ITEM_POST})
"""At these points the job of an item is not submitted yet, or has completed."""


class Primitives:
    def __init__(
        self,
        *,
        service: ExceptionService,
        manager: FlowManager,
        jobs: MendableJobs,
        levels: Levels,
        unwinding: UnwindHandler,
        notices: Notices,
        files: FilesInPlace,
    ) -> None:
        self._service = service
        self._manager = manager
        self._jobs = jobs
        self._levels = levels
        self._unwinding = unwinding
        self._targets = RepairTargets(manager, service.engines, service.decisions)
        self._notices = notices
        self._files = files
        self._do: dict[Primitive, Callable[[RepairTarget, RunPrimitive], Awaitable[bool | None]]] = {
            Primitive.SUSPEND: self._suspend,
            Primitive.CONTINUE: self._continue,
            Primitive.REMOVE: self._remove,
            Primitive.RESTART: self._restart,
            Primitive.COMPLETE: self._complete,
            Primitive.FAIL: self._fail,
            Primitive.WRITE: self._write,
            Primitive.RESTAGE: self._restage,
            Primitive.RESUBMIT: self._resubmit,
            Primitive.REPOLL: self._repoll,
            Primitive.REREGISTER: self._reregister,
        }

    async def do(self, live: LiveCase, order: RunPrimitive, reissued: bool) -> None:
        """Carry out a primitive, and report to the exlet that it is done."""
        try:
            outcome = await self._perform(live, order, reissued)
        except StoreUnavailable:
            raise  # the exlet repeats the order after everything was loaded again
        except (RequestError, SubmissionFailed) as problem:
            outcome = failed(order, problem)
        except Exception as error:  # an internal error fails the exlet, and what it mends continues
            log.exception("primitive %s of %s failed", order.do.value, live.id, extra={"case": live.id})
            outcome = failed(order, RequestError(f"internal error of mendflow: {error!r:.300}"))
        if outcome is not None:
            await self._manager.finish(live.id, order.serial, outcome)

    async def _perform(self, live: LiveCase, order: RunPrimitive, reissued: bool) -> Outcome | None:
        mended = await self._targets.resolve(live, order)
        if not reissued:
            self._note_absence(mended, order)
        self._note_primitive(mended, order.do)
        await self._targets.demand_task_roles(mended, order)
        if order.do is Primitive.UNWIND:
            return await self._unwind(mended, live, order)
        if order.do is Primitive.RETRY_LATER:
            return await self._retry_later(mended, order)
        if order.do is Primitive.NOTIFY:
            await self._notify(mended, order, reissued)
        else:
            if order.target != "item" and order.do not in WHOLE_CASES:
                raise InvalidRequest(f"{order.do.value} is for items, not for {order.target}")
            done = await self._do[order.do](mended, order)
            if done is False and not mended.local:
                self._note_refusal(mended, order)
                return Outcome()
        if order.target != "item" or self._is_settled(mended):
            self._note_step(mended, order.do)
        return Outcome(files=mended.given)

    def _note_primitive(self, mended: RepairTarget, do: Primitive) -> None:
        """Record in the decision what its exlet does: one that only tells somebody has mended nothing."""
        if mended.decision is not None and do not in mended.decision.steps:
            mended.decision.steps = [*mended.decision.steps, do]
            self._service.decisions.note(mended.decision)

    def _note_refusal(self, mended: RepairTarget, order: RunPrimitive) -> None:
        """Record in the decision that another engine said of a step that there is nothing to do it to."""
        if mended.decision is None:
            return
        what = f"item {mended.item}" if order.target == "item" else "case"
        text = f"{order.do.value}: engine {mended.decision.engine} has no such {what} under way, so nothing was done"
        mended.decision.note = "; ".join(each for each in (mended.decision.note, text) if each)
        self._service.decisions.note(mended.decision)

    def _is_settled(self, mended: RepairTarget) -> bool:
        """Whether the item of the decision is settled by this primitive. If the item is over, the failure of its job is
        still held."""
        job = job_of_ended_item(mended)
        return mended.at_hand and (bool(mended.items) or job is None or self._jobs.phase_of(job) != "held")

    def _note_step(self, mended: RepairTarget, do: Primitive) -> None:
        """Record the step in the decision."""
        if mended.decision is not None and (word := RESULTS.get(do)):
            mended.decision.result = word
            self._service.decisions.note(mended.decision)

    def _note_absence(self, mended: RepairTarget, order: RunPrimitive) -> None:
        """Record in the decision that another item that was named has not begun, or is over, and was left alone."""
        if mended.decision is None or order.target != "item" or not order.about or mended.items or mended.at_hand:
            return
        text = f"{order.do.value}: {order.about} is not under way, so nothing was done to it"
        mended.decision.note = "; ".join(each for each in (mended.decision.note, text) if each)
        self._service.decisions.note(mended.decision)

    # Suspend, continue, remove, write: items and cases

    async def _suspend(self, mended: RepairTarget, order: RunPrimitive) -> bool:
        engine, holder, by = mended.engine, mended.holder, mended.by
        if order.target == "item":
            return any([await engine.suspend(mended.case, each.item, holder=holder, by=by) for each in mended.items])
        cases = await self._targets.affected_cases(mended, order)
        return any([await engine.suspend(case, None, holder=holder, by=by) for case in cases])

    async def _continue(self, mended: RepairTarget, order: RunPrimitive) -> None:
        engine, holder, by = mended.engine, mended.holder, mended.by
        if order.target == "item":
            for each in mended.items:
                await engine.resume(mended.case, each.item, holder=holder, by=by)
            return
        for case in await self._targets.affected_cases(mended, order):
            await engine.resume(case, None, holder=holder, by=by)

    async def _remove(self, mended: RepairTarget, order: RunPrimitive) -> bool:
        if order.target == "item":
            return any([await mended.engine.remove(mended.case, each.item, by=mended.by) for each in mended.items])
        if mended.decision is not None:
            mended.decision.removes = True  # on disk before the case is gone: its end stops the other exlets
            self._service.decisions.note(mended.decision)
        cases, reason = await self._targets.affected_cases(mended, order), asked_for_by(f"exlet {mended.holder}")
        return any([await mended.engine.cancel(case, reason=reason, by=mended.by) for case in cases])

    async def _write(self, mended: RepairTarget, order: RunPrimitive) -> bool:
        values = order.settings.get("values")
        if not isinstance(values, dict):
            raise InvalidRequest(f"what is written must be a map of values, not {values!r:.80}")
        engine, by = mended.engine, mended.by
        if order.target == "item":
            about = mended.decision
            at_its_end = about is not None and about.type is ExceptionType.ITEM_POST
            ended = {about.item: about.serial} if about is not None and at_its_end else {}
            return any(
                [
                    await engine.write(mended.case, each.item, values, by=by, ended=ended.get(each.item, 0))
                    for each in mended.items
                ]
            )
        cases = await self._targets.affected_cases(mended, order)
        return any([await engine.write(case, None, values, by=by) for case in cases])

    # Items

    async def _restart(self, mended: RepairTarget, order: RunPrimitive) -> bool:
        values, engine, by = order.settings.get("with"), mended.engine, mended.by
        changed = values if isinstance(values, dict) else None
        return any([await engine.restart(mended.case, each.item, by=by, values=changed) for each in mended.items])

    async def _complete(self, mended: RepairTarget, order: RunPrimitive) -> bool:
        outputs, engine, by = order.settings.get("outputs"), mended.engine, mended.by
        return any([await engine.complete(mended.case, each.item, outputs, by=by) for each in mended.items])

    async def _fail(self, mended: RepairTarget, order: RunPrimitive) -> bool:
        fault = fault_for(mended.decision, order)
        proceed = order.settings.get("throw") is False
        if not mended.items and (job := job_of_ended_item(mended)) is not None:
            await self._jobs.pass_on(job, decided=subject_of_decision(mended.decision, job))
        engine, by = mended.engine, mended.by
        return any([await engine.fail(mended.case, each.item, fault, proceed=proceed, by=by) for each in mended.items])

    # Jobs

    async def _resubmit(self, mended: RepairTarget, order: RunPrimitive) -> None:
        await self._resubmit_items(mended, change_of(order.settings))

    async def _restage(self, mended: RepairTarget, order: RunPrimitive) -> None:
        """Stage the files again: as before, with other parameters, from another replica, or to another target."""
        change = change_of(order.settings)
        sources, way = dict(change.sources), order.settings.get("way")
        if way == "replica" and not sources:
            sources = next_source(mended.decision)
        named = change.resources.get("site") or change.publish_to or change.publish_on
        if way == "target" and not named and (host := host_to_leave(mended.decision)):
            change = msgspec.structs.replace(change, avoid_hosts=(*change.avoid_hosts, host))
        transfer = order.settings.get("parameters")
        await self._resubmit_items(
            mended,
            msgspec.structs.replace(
                change, sources=sources, transfer=transfer if isinstance(transfer, dict) else {}, restage=True
            ),
        )

    async def _resubmit_items(self, mended: RepairTarget, change: Change) -> None:
        """Submit jobs again; other items are restarted."""
        if mended.decision is not None and mended.decision.type in BEFORE_SUBMISSION:
            raise InvalidRequest(
                f"at {mended.decision.type.value} there is no submission to make again: `write` changes what goes out,"
                " and `restart` runs what has ended once more"
            )
        if not mended.items and (left := job_of_ended_item(mended)) is not None:
            await self._jobs.resubmit(
                left,
                await self._with_files(mended, left, change),
                key=mended.by,
                decided=subject_of_decision(mended.decision, left),
            )
            await self._note_retry(mended, left)
        for each in mended.items:
            job = job_of(mended, each)
            if job is None:
                values: dict[str, Value] | None = dict(change.sources) or None
                again = await mended.engine.restart(
                    mended.case, each.item, by=mended.by, values=values, level=change.level
                )
                if again or mended.local:
                    self._note_restart(mended)
            else:
                await self._jobs.resubmit(
                    job,
                    await self._with_files(mended, job, change),
                    key=mended.by,
                    decided=subject_of_decision(mended.decision, job),
                )
                await self._note_retry(mended, job)

    async def _with_files(self, mended: RepairTarget, job: JobId, change: Change) -> Change:
        """The change with the files that it names in place of inputs. The same ones are only staged again."""
        live, spec = self._manager.live.get(mended.case), self._jobs.newest_spec(job)
        if live is None or spec is None or change.restage or not (change.sources or change.files):
            return change
        exlet = CaseId(mended.by.rpartition("/")[0])
        change = await with_files_in_place(self._files, live, exlet, spec, change)
        mended.given.update(change.files)
        return change

    async def _repoll(self, mended: RepairTarget, _order: RunPrimitive) -> None:
        for each in mended.items:
            if (job := job_of(mended, each)) is not None:
                await self._jobs.repoll(job, key=mended.by)
                await self._note_retry(mended, job)

    async def _reregister(self, mended: RepairTarget, _order: RunPrimitive) -> None:
        for each in mended.items:
            if (job := job_of(mended, each)) is not None:
                await self._jobs.reregister(job, key=mended.by)
                await self._note_retry(mended, job)

    async def _retry_later(self, mended: RepairTarget, order: RunPrimitive) -> Outcome | None:
        """Put the job into a level. The exlet waits with it: its step is done when the job has been submitted again."""
        items = mended.items
        job = JobId(f"{mended.case}/{items[0].serial}") if items else job_of_ended_item(mended)
        if job is None:
            return Outcome()
        await self._levels.enter(
            mended.by,
            level=level_of(order.settings.get("level", 0), mended.decision, len(self._levels.waits_ms)),
            job=job,
            case=mended.case,
            item=items[0].item if items else mended.item or ItemId(""),
            mode=mode_of(order.settings.get("mode", "recoverable")),
            wait_ms=change_of(order.settings).wait_ms or None,
        )
        return None

    async def due(self, entry: LevelEntry) -> None:
        """An entry of a level is due: carry it out, if its exlet is still live."""
        exlet, _, serial = entry.key.rpartition("/")
        live = self._manager.live.get(CaseId(exlet))
        order = item_order(live.case, int(serial)) if live is not None else None
        if live is None or not isinstance(order, RunPrimitive):
            return
        try:
            change = msgspec.structs.replace(change_of(order.settings), wait_ms=0, level=entry.level)
            mended = await self._targets.resolve(live, order)
            await self._targets.demand_task_roles(mended, order)
            await self._resubmit_items(mended, change)
            outcome = Outcome(files=mended.given)
        except StoreUnavailable:
            raise
        except (RequestError, SubmissionFailed) as problem:
            outcome = failed(order, problem)
        await self._manager.finish(live.id, order.serial, outcome)

    async def _note_retry(self, mended: RepairTarget, job: JobId) -> None:
        """Mark the job of the decision as retried. If it has ended meanwhile, because this step was repeated after a
        crash, no other report of its end will come."""
        if mended.decision is not None and job == f"{mended.case}/{mended.decision.serial}":
            self._service.decisions.mark_retrying(mended.decision)
            if (well := await self._jobs.ended_well(job)) is not None:
                self._service.job_over(mended.case, mended.decision.serial, well)

    def _note_restart(self, mended: RepairTarget) -> None:
        if mended.at_hand:
            self._note_step(mended, Primitive.RESTART)

    # The rest

    async def _unwind(self, mended: RepairTarget, live: LiveCase, order: RunPrimitive) -> Outcome | None:
        if not mended.local:
            raise InvalidRequest("only this server's own engine can unwind what it has completed")
        self._note_step(mended, Primitive.UNWIND)
        begun = await self._unwinding.unwind(live, order.serial, mended.case)
        if begun.items and mended.decision is not None:
            mended.decision.undone = begun.items
            self._service.decisions.note(mended.decision)
        return None if begun.is_live else Outcome()

    async def _notify(self, mended: RepairTarget, order: RunPrimitive, reissued: bool) -> None:
        settings = order.settings
        to = f"to {settings['to']}: " if settings.get("to") else ""
        data = settings.get("data")
        with_data = f" ({msgspec.json.encode(data).decode()[:500]})" if data is not None else ""
        message = f"{to}{settings.get('message') or 'an exlet asks for attention'}{with_data} [{mended.by}]"
        if reissued and any(message == notice.message for notice in await self._notices.latest(200)):
            return
        self._notices.post(message, case=mended.case, item=mended.item)
        await self._notices.posted()
