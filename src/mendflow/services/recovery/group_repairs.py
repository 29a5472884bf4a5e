"""All failures of one cause are taken up at once: those that wait, and those whose cases have failed.

A case that failed is reopened only if something follows from it: a rule that now concludes something else than before,
or the wish that its failed jobs are tried again. Its other failures, of other causes, are tried again with it: whoever
lets a case go on does not want it to fail at once by what is beside the point. A failed case that was run again stays
as it is: another case stands in its place."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.repair_views import ApplyResult
from mendflow.core.model.rule_views import ApplyProgress
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.recovery.administration import ManualRepairs
from mendflow.services.recovery.exlets import exlet_depth
from mendflow.services.recovery.failures import DecisionSummary
from mendflow.services.recovery.later_runs import failed_cases, run_again
from mendflow.services.recovery.reopening import CaseReopener
from mendflow.stores.contract import Store

RUNS_KEPT: Final = 100


class ApplyRun(msgspec.Struct, kw_only=True):
    """One application of rules to a group, while it runs and after."""

    group: str
    by: str
    started_at: Instant
    total: int
    running: bool = True
    done: int = 0
    taken_up: list[str] = []
    left: list[str] = []
    cases: list[str] = []
    refused: dict[str, str] = {}
    stopped: bool = False
    ended_at: Instant = 0
    failures: int = 0


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
        self._runs: dict[str, ApplyRun] = {}

    async def apply(self, group: str, members: Sequence[DecisionSummary], *, who: str, retry: bool) -> ApplyResult:
        """Ask the rules, as they are now, about these failures. `retry`: what no rule takes up is tried again as it is.
        Its progress can be asked for, and it can be stopped between two failures."""
        waiting = self._waiting(members)
        run = ApplyRun(group=group, by=who, started_at=self._clock.now(), total=len(waiting))
        self._runs.pop(group, None)
        while len(self._runs) >= RUNS_KEPT:
            del self._runs[next(iter(self._runs))]
        self._runs[group] = run
        try:
            trees = await self._failed_trees(members)
            run.total += len(trees)
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
        run: "ApplyRun",
        waiting: Sequence[DecisionSummary],
        trees: Mapping[CaseId, Sequence[DecisionSummary]],
        *,
        who: str,
        retry: bool,
    ) -> None:
        for member in waiting:
            tried_again = retry and member.state == "waiting"
            if self._homes.mine(CaseId(member.id)) and not run.stopped:
                await self._take_up_waiting(run, member.id, who=who, retry=tried_again)
            else:
                run.left.append(member.id)
            run.done += 1
        for root, failed in trees.items():
            if run.stopped or (
                not retry and not [each for each in failed if await self._administration.would_change(each.id)]
            ):
                run.left += [each.id for each in failed]
            else:
                await self._reopen(run, root, failed, who)
            run.done += 1

    async def _take_up_waiting(self, run: "ApplyRun", id: str, *, who: str, retry: bool) -> None:
        """One that was mended meanwhile is refused by itself; the others are still asked about."""
        try:
            done = await self._take_up(id, who=who, retry=retry)
        except StoreUnavailable:
            raise
        except RequestError as error:
            run.refused[id] = error.message
            return
        (run.taken_up if done else run.left).append(id)
        run.failures += done

    async def _reopen(self, run: "ApplyRun", root: CaseId, failed: Sequence[DecisionSummary], who: str) -> None:
        try:
            waiting = await self._reopener.reopen(root, who=who)
        except StoreUnavailable:
            raise
        except RequestError as error:
            run.refused[root] = error.message
            return
        run.cases.append(root)
        run.failures += len(failed)
        run.taken_up += [id for id in waiting if await self._take_up(id, who=who, retry=True)]

    def progress(self, group: str) -> ApplyProgress:
        """How far the last application to a group has come; `group` may be the beginning of its id."""
        run = self._run(group)
        if run is None:
            return ApplyProgress(group=group, by="", started_at=0, running=False, total=0, done=0)
        return msgspec.convert(msgspec.to_builtins(run), ApplyProgress)

    def stop(self, group: str) -> ApplyProgress:
        """What comes next is left as it is."""
        run = self._run(group)
        if run is not None:
            run.stopped = run.stopped or run.running
        return self.progress(group)

    def _run(self, group: str) -> "ApplyRun | None":
        found = [run for id, run in self._runs.items() if group and id.startswith(group)]
        return found[-1] if found else None

    async def _take_up(self, id: str, *, who: str, retry: bool) -> bool:
        """Whether a rule takes it up, or another try."""
        done = await self._administration.apply(id, who=who)
        if done is None and retry:
            done = await self._administration.retry(id, who=who)
        return done is not None

    async def _failed_trees(self, members: Sequence[DecisionSummary]) -> dict[CaseId, list[DecisionSummary]]:
        """The failures that ended their cases, by the trees of these; without those that were run again, and without
        what a person has rejected: that is decided."""
        trees: dict[CaseId, list[DecisionSummary]] = {}
        for member in members:
            root = root_of(member.case)
            rejected = member.fault is not None and member.fault.rejected_by
            if rejected or member.engine or exlet_depth(member.case) or member.replaced_by:
                continue
            if root not in self._manager.live:
                trees.setdefault(root, []).append(member)
        failed = await failed_cases(self._store, trees)
        again = await run_again(self._store, failed)
        return {root: each for root, each in trees.items() if root in failed and root not in again}
