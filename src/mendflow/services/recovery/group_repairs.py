"""All failures of one cause are taken up at once: those that wait, and those whose cases have failed.

A case that failed is reopened only if something follows from it: a rule that now concludes something else than before,
or the wish that its failed jobs are tried again. Its other failures, of other causes, are tried again with it: whoever
lets a case go on does not want it to fail at once by what is beside the point."""

from collections.abc import Sequence

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair_views import ApplyResult
from mendflow.services.base.cluster import root_of
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.recovery.administration import ManualRepairs
from mendflow.services.recovery.exlets import exlet_depth
from mendflow.services.recovery.failures import DecisionSummary
from mendflow.services.recovery.reopening import CaseReopener


class GroupRepairs:
    def __init__(
        self, administration: ManualRepairs, reopener: CaseReopener, manager: FlowManager, homes: HomeRegistry
    ) -> None:
        self._administration = administration
        self._reopener = reopener
        self._manager = manager
        self._homes = homes

    async def apply(self, group: str, members: Sequence[DecisionSummary], *, who: str, retry: bool) -> ApplyResult:
        """Ask the rules, as they are now, about these failures. `retry`: what no rule takes up is tried again as it
        is."""
        taken_up, left = list[str](), list[str]()
        for member in members:
            if member.state == "waiting" or self._administration.is_in_level(member.exlet_case):
                tried_again = retry and member.state == "waiting"
                here = self._homes.mine(CaseId(member.id))
                done = here and await self._take_up(member.id, who=who, retry=tried_again)
                (taken_up if done else left).append(member.id)
        cases, refused = list[str](), dict[str, str]()
        for root, failed in (await self._failed_trees(members)).items():
            if not retry and not [each for each in failed if await self._administration.would_change(each.id)]:
                left += [each.id for each in failed]
                continue
            try:
                waiting = await self._reopener.reopen(root, who=who)
            except StoreUnavailable:
                raise
            except RequestError as error:
                refused[root] = error.message
                continue
            cases.append(root)
            taken_up += [id for id in waiting if await self._take_up(id, who=who, retry=True)]
        return ApplyResult(group=group, taken_up=taken_up, left=left, cases=cases, refused=refused)

    async def _take_up(self, id: str, *, who: str, retry: bool) -> bool:
        """Whether a rule takes it up, or another try."""
        done = await self._administration.apply(id, who=who)
        if done is None and retry:
            done = await self._administration.retry(id, who=who)
        return done is not None

    async def _failed_trees(self, members: Sequence[DecisionSummary]) -> dict[CaseId, list[DecisionSummary]]:
        """The failures that ended their cases, by the trees of these."""
        trees: dict[CaseId, list[DecisionSummary]] = {}
        for member in members:
            root = root_of(member.case)
            if member.engine or exlet_depth(member.case) or member.replaced_by or root in self._manager.live:
                continue
            if root not in trees and not await self._has_failed(root):
                continue
            trees.setdefault(root, []).append(member)
        return trees

    async def _has_failed(self, root: CaseId) -> bool:
        document = await self._manager.document(root)
        return document is not None and document.status == "failed"
