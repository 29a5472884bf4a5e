"""All failures of one cause are taken up at once: those that wait, and those whose cases have failed.

A case that failed is reopened only if something follows from it: a rule that now concludes something else than before,
or the wish that its failed jobs are tried again. Its other failures, of other causes, are tried again with it: whoever
lets a case go on does not want it to fail at once by what is beside the point. A failed case that was run again since
stays as it is: another case stands in its place."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.principals import Sight
from mendflow.core.model.repair_views import ApplyResult
from mendflow.core.model.rule_views import ApplyProgress
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.recovery.administration import ManualRepairs
from mendflow.services.recovery.exlets import exlet_depth
from mendflow.services.recovery.failures import DecisionSummary, is_rejection
from mendflow.services.recovery.later_runs import failed_cases, starts_of_later_runs
from mendflow.services.recovery.reopening import CaseReopener
from mendflow.stores.contract import Store

RUNS_KEPT: Final = 100


class ApplyRun(msgspec.Struct, kw_only=True):
    """One application of rules to a group, while it runs and after. `projects` are those of its failures, `parts` that
    of each of its parts in turn: a failure that waits, or a case that has failed. `project_of` is the same by the ids
    of these: a group has failures of several projects, and who sees some of them is told of these alone."""

    group: str
    by: str
    started_at: Instant
    projects: set[str]
    application: str = ""
    parts: list[str] = []
    project_of: dict[str, str] = {}
    running: bool = True
    done: int = 0
    taken_up: list[str] = []
    left: list[str] = []
    cases: list[str] = []
    refused: dict[str, str] = {}
    stops: list[Sight] = []
    task_roles: Collection[str] | None = None
    ended_at: Instant = 0
    failures: Counter[str] = msgspec.field(default_factory=Counter)  # by project

    def is_stopped(self, project: str) -> bool:
        return any(each.sees(project) for each in self.stops)

    def is_seen(self, sight: Sight) -> bool:
        return sight.projects is None or any(map(sight.sees, self.projects))

    def progress_in(self, sight: Sight) -> ApplyProgress:
        def of(ids: Iterable[str]) -> list[str]:
            return [id for id in ids if sight.projects is None or sight.sees(self.project_of[id])]

        return ApplyProgress(
            group=self.group,
            by=self.by,
            application=self.application,
            started_at=self.started_at,
            running=self.running,
            total=sum(map(sight.sees, self.parts)),
            done=sum(map(sight.sees, self.parts[: self.done])),
            taken_up=of(self.taken_up),
            left=of(self.left),
            cases=of(self.cases),
            refused={id: self.refused[id] for id in of(self.refused)},
            stopped=any(self.is_stopped(project) for project in self.projects if sight.sees(project)),
            ended_at=self.ended_at,
            failures=sum(count for project, count in self.failures.items() if sight.sees(project)),
        )


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
        self._runs: list[ApplyRun] = []  # the newest is the last

    async def apply(
        self,
        group: str,
        members: Sequence[DecisionSummary],
        *,
        who: str,
        retry: bool,
        application: str = "",
        task_roles: Collection[str] | None = None,
    ) -> ApplyResult:
        """Ask the rules, as they are now, about these failures of a group. `retry`: what no rule takes up is tried
        again as it is. Its progress can be asked for, and it can be stopped between two failures. `application` is what
        the servers that do it together call it. `task_roles` are the roles whose user tasks whoever orders it may end;
        None: any."""
        waiting = self._waiting(members)
        run = ApplyRun(
            group=group,
            by=who,
            started_at=self._clock.now(),
            application=application,
            task_roles=task_roles,
            projects={each.project for each in members},
            parts=[each.project for each in waiting],
            project_of={each.id: each.project for each in members},
        )
        self._runs = [*self._runs[1 - RUNS_KEPT :], run]
        try:
            await self._administration.read_newest_rules({each.flow for each in members})
            trees = await self._failed_trees(members)
            of_trees: dict[str, str] = {root: failed[0].project for root, failed in trees.items()}
            run.project_of |= of_trees
            run.parts += of_trees.values()
            await self._apply(run, waiting, trees, who=who, retry=retry)
        finally:
            run.running, run.ended_at = False, self._clock.now()
        return ApplyResult(group=group, taken_up=run.taken_up, left=run.left, cases=run.cases, refused=run.refused)

    async def open_counts(self, members: Sequence[DecisionSummary]) -> tuple[int, int]:
        """Of how many of these failures rules can still be asked: that wait, and that their cases failed by."""
        failed = await self._failed_trees(members)
        return len(self._waiting(members)), sum(len(each) for each in failed.values())

    def _waiting(self, members: Sequence[DecisionSummary]) -> list[DecisionSummary]:
        in_level = self._administration.is_in_level
        return [each for each in members if each.state == "waiting" or in_level(each.exlet_case)]

    async def _apply(
        self,
        run: ApplyRun,
        waiting: Sequence[DecisionSummary],
        trees: Mapping[CaseId, Sequence[DecisionSummary]],
        *,
        who: str,
        retry: bool,
    ) -> None:
        for member in waiting:
            tried_again = retry and member.state == "waiting"
            if self._homes.mine(CaseId(member.id)) and not run.is_stopped(member.project):
                await self._take_up_waiting(run, member.id, who=who, retry=tried_again)
            else:
                run.left.append(member.id)
            run.done += 1
        for root, failed in trees.items():
            if run.is_stopped(run.project_of[root]) or (
                not retry and not [each for each in failed if await self._administration.would_change(each.id)]
            ):
                run.left += [each.id for each in failed]
            else:
                await self._reopen(run, root, failed, who)
            run.done += 1

    async def _take_up_waiting(self, run: ApplyRun, id: str, *, who: str, retry: bool) -> None:
        """One that was mended meanwhile is refused by itself; the others are still asked about."""
        try:
            done = await self._take_up(run, id, who=who, retry=retry)
        except StoreUnavailable:
            raise
        except RequestError as error:
            run.refused[id] = error.message
            return
        (run.taken_up if done else run.left).append(id)
        run.failures[run.project_of[id]] += done

    async def _reopen(self, run: ApplyRun, root: CaseId, failed: Sequence[DecisionSummary], who: str) -> None:
        try:
            waiting = await self._reopener.reopen(root, who=who)
        except StoreUnavailable:
            raise
        except RequestError as error:
            run.refused[root] = error.message
            return
        run.project_of |= dict.fromkeys(waiting, run.project_of[root])
        run.cases.append(root)
        run.failures[run.project_of[root]] += len(failed)
        run.taken_up += [id for id in waiting if await self._take_up(run, id, who=who, retry=True)]

    def progress(self, group: str, sight: Sight) -> ApplyProgress:
        """How far the last application to a group has come, as far as it is in sight."""
        run = self._last_run(group, sight)
        if run is None:
            return ApplyProgress(group=group, by="", started_at=0, running=False, total=0, done=0)
        return run.progress_in(sight)

    def stop(self, group: str, sight: Sight) -> ApplyProgress:
        """What comes next is left as it is, of what is in sight."""
        for run in self._runs:
            if run.group == group and run.running and run.is_seen(sight):
                run.stops.append(sight)
        return self.progress(group, sight)

    def has_run(self, group: str, sight: Sight) -> bool:
        """Whether rules were applied to something in sight of the group of this id, so that there certainly is one."""
        return self._last_run(group, sight) is not None

    def _last_run(self, group: str, sight: Sight) -> ApplyRun | None:
        return next((run for run in reversed(self._runs) if run.group == group and run.is_seen(sight)), None)

    async def _take_up(self, run: ApplyRun, id: str, *, who: str, retry: bool) -> bool:
        """Whether a rule takes it up, or another try."""
        done = await self._administration.apply(id, who=who, task_roles=run.task_roles)
        if done is None and retry:
            done = await self._administration.retry(id, who=who, task_roles=run.task_roles)
        return done is not None

    async def _failed_trees(self, members: Sequence[DecisionSummary]) -> dict[CaseId, list[DecisionSummary]]:
        """The failures that ended their cases, by the trees of these; without those that a later run has taken up, and
        without what a person has rejected: that is decided."""
        trees: dict[CaseId, list[DecisionSummary]] = {}
        for member in members:
            root = root_of(member.case)
            if is_rejection(member) or member.engine or exlet_depth(member.case) or member.replaced_by:
                continue
            if root not in self._manager.live:
                trees.setdefault(root, []).append(member)
        failed = await failed_cases(self._store, trees)
        later = await starts_of_later_runs(self._store, failed)
        left = {
            root: [each for each in found if later.get(root, -1) < each.occurred_at]
            for root, found in trees.items()
            if root in failed
        }
        return {root: found for root, found in left.items() if found}
