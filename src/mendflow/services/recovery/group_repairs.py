"""All failures of one cause are taken up at once: those that wait, and those whose cases have failed.

A case that failed is reopened only if something follows from it for failures of the cause: a rule that now concludes
something else than before, or the wish that they are tried again. What its flow went on after, the case did not fail
by: that stays as it is. Its other failures, of other causes, are tried again with it: whoever lets a case go on does
not want it to fail at once by what is beside the point. A failed case that was run again since stays as it is: another
case stands in its place."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.repair_views import ApplyResult
from mendflow.core.model.rule_views import ApplyProgress
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.recovery.administration import ManualRepairs
from mendflow.services.recovery.apply_runs import ApplyRun, ApplyRuns
from mendflow.services.recovery.exlets import exlet_depth
from mendflow.services.recovery.failures import (
    DecisionSummary,
    is_rejection,
    may_be_asked_about,
    started_case,
    was_run_again,
)
from mendflow.services.recovery.reopening import CaseReopener, HasHomeElsewhere, NothingTakenUp
from mendflow.services.recovery.settled_cases import failed_cases, settled_cases
from mendflow.stores.contract import Store

EARLIER_TOLD: Final = 10


class GroupRepairs:
    def __init__(
        self,
        administration: ManualRepairs,
        reopener: CaseReopener,
        manager: FlowManager,
        homes: HomeRegistry,
        store: Store,
        clock: Clock,
    ) -> None:
        self._store = store
        self._administration = administration
        self._reopener = reopener
        self._manager = manager
        self._homes = homes
        self._clock = clock
        self._runs = ApplyRuns()

    async def apply(
        self,
        group: str,
        members: Sequence[DecisionSummary],
        *,
        who: str,
        retry: bool,
        application: str = "",
        task_roles: Collection[str] | None = None,
        sight: Sight = EVERYTHING,
    ) -> ApplyResult:
        """Ask the rules, as they are now, about these failures of a group, as far as their cases are in sight. `retry`:
        what no rule takes up is tried again as it is. Its progress can be asked for, and it can be stopped between two
        failures. `application` is what the servers that do it together call it. `task_roles` are the roles whose user
        tasks whoever orders it may end; None: any."""
        run = ApplyRun(
            group=group,
            by=who,
            started_at=self._clock.now(),
            application=application,
            task_roles=task_roles,
            sight=sight,
            projects={each.project for each in members},
        )
        self._runs.begin(run)
        try:
            await self._administration.read_newest_rules({each.flow for each in members})
            await self._store.refresh()  # a case that was run again a moment ago is not to go on beside its later run
            failed = await self._failed_cases(members)
            waiting = [
                each for each in self._waiting(members, failed) if await self._administration.is_seen(each, sight)
            ]
            for each in (*waiting, *(one for found in failed.values() for one in found)):
                run.total[each.project] += 1
            await self._apply(run, waiting, failed, who=who, retry=retry)
        finally:
            self._runs.end(run, self._clock.now())
        return run.result()

    async def open_counts(self, members: Sequence[DecisionSummary]) -> tuple[int, int]:
        """Of how many of these failures rules can still be asked: that wait, and that their cases failed by."""
        failed = await self._failed_cases(members)
        may_go_on = [len(found) for case, found in failed.items() if root_of(case) == case]
        return len(self._waiting(members, failed)), sum(may_go_on)

    def _waiting(
        self, members: Sequence[DecisionSummary], failed: Mapping[CaseId, Sequence[DecisionSummary]]
    ) -> list[DecisionSummary]:
        """What waits in a case that has failed was to be reopened with it, and that was cut short."""
        in_level, others = self._administration.is_in_level, {each.id for found in failed.values() for each in found}
        waiting = (each for each in members if each.state == "waiting" or in_level(each.exlet_case))
        return [each for each in waiting if each.id not in others]

    async def _apply(
        self,
        run: ApplyRun,
        waiting: Sequence[DecisionSummary],
        failed: Mapping[CaseId, Sequence[DecisionSummary]],
        *,
        who: str,
        retry: bool,
    ) -> None:
        for member in waiting:
            tried_again = retry and member.state == "waiting"
            if not self._homes.mine(CaseId(member.id)):
                run.add_left([member.id], member.project, "elsewhere")
            elif run.is_stopped(member.project):
                run.add_left([member.id], member.project, "stopped")
            else:
                await self._take_up_waiting(run, member, who=who, retry=tried_again)
            run.done[member.project] += 1
        for case, found in failed.items():
            project, all_ids = found[0].project, [each.id for each in found]
            if run.is_stopped(project):
                run.add_left(all_ids, project, "stopped")
            elif about := [id for id in all_ids if retry or await self._administration.would_change(id)]:
                await self._reopen(run, case, found, who, about)
            else:
                run.add_left(all_ids, project, "no-rule")
            run.done[project] += len(found)

    async def _take_up_waiting(self, run: ApplyRun, member: DecisionSummary, *, who: str, retry: bool) -> None:
        """One that was mended meanwhile is refused by itself; the others are still asked about."""
        try:
            done = await self._take_up(run, member.id, who=who, retry=retry)
        except StoreUnavailable:
            raise
        except RequestError as error:
            run.add_refused([member.id], member.project, error.message)
            return
        if done:
            run.add_taken_up([member.id], member.project)
        else:
            run.add_left([member.id], member.project, "no-rule" if member.state == "waiting" else "next-try")

    async def _reopen(
        self, run: ApplyRun, case: CaseId, failed: Sequence[DecisionSummary], who: str, about: Sequence[str]
    ) -> None:
        """Let a failed case go on, if one of the failures that this is `about` is tried again then. One that another
        server has just made its own is left to that: whoever applies rules asks all servers, and each begins with what
        nobody has."""
        failures, project = [each.id for each in failed], failed[0].project
        await self._store.refresh()
        settled = await settled_cases(self._store, [case])
        if all(was_run_again(each, settled) for each in failed):  # since the application began
            run.add_left(failures, project, "run-again")
            return
        try:
            reopened = await self._reopener.reopen(case, who=who, about=about, sight=run.sight)
        except StoreUnavailable:
            raise
        except HasHomeElsewhere:
            run.add_left(failures, project, "elsewhere")
            return
        except NothingTakenUp:
            run.add_left(failures, project, "passed")
            return
        except RequestError as error:
            run.add_refused(failures, project, error.message)
            return
        run.add_case(case, project)
        reasons: dict[str, str] = {}
        for id in reopened.waiting:
            try:
                await self._take_up(run, id, who=who, retry=True)
            except StoreUnavailable:
                raise
            except RequestError as error:  # it waits for a person, in a case that goes on
                reasons[id] = error.message
        for failure in failures:
            if failure not in reopened.taken_up:
                run.add_left([failure], project, "passed")
            elif reason := reasons.get(reopened.taken_up[failure]):
                run.add_refused([failure], project, reason)
            else:
                run.add_taken_up([failure], project)

    def progress(self, group: str, sight: Sight) -> ApplyProgress:
        """How far the last application to a group has come, as far as it is in sight."""
        runs = self._runs.of(group, sight)
        if not runs:
            return ApplyProgress(group=group, by="", started_at=0, running=False, total=0, done=0)
        earlier = [each.application for each in runs[:-1] if each.application]
        return replace(runs[-1].progress_in(sight), earlier=earlier[-EARLIER_TOLD:])

    def stop(self, group: str, sight: Sight) -> ApplyProgress:
        """What comes next is left as it is, of what is in sight."""
        for run in self._runs.of(group, sight):
            if run.running:
                run.stops.append(sight)
        return self.progress(group, sight)

    def has_run(self, group: str, sight: Sight) -> bool:
        """Whether rules were applied to something in sight of the group of this id, so that there certainly is one."""
        return bool(self._runs.of(group, sight))

    async def _take_up(self, run: ApplyRun, id: str, *, who: str, retry: bool) -> bool:
        """Whether a rule takes it up, or another try."""
        done = await self._administration.apply(id, who=who, task_roles=run.task_roles)
        if done is None and retry:
            done = await self._administration.retry(id, who=who, task_roles=run.task_roles)
        return done is not None

    async def _failed_cases(self, members: Sequence[DecisionSummary]) -> dict[CaseId, list[DecisionSummary]]:
        """The failures that rules can be asked about again, by the cases that were started and have failed; without
        what a person has rejected: that is decided."""
        cases: dict[CaseId, list[DecisionSummary]] = {}
        for member in members:
            case = started_case(member)
            if is_rejection(member) or not case or exlet_depth(member.case) or member.replaced_by:
                continue
            if case not in self._manager.live:
                cases.setdefault(case, []).append(member)
        failed = await failed_cases(self._store, cases)
        settled = await settled_cases(self._store, failed)
        open_failures = {
            case: [each for each in found if may_be_asked_about(each, settled)]
            for case, found in cases.items()
            if case in failed
        }
        return {case: found for case, found in open_failures.items() if found}
