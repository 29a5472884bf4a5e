"""The part of the domain that is about learning: proposals, the report of costs, and settings."""

from mendflow.core.model.ids import Instant
from mendflow.core.model.learning import (
    AdoptionRequest,
    DismissalRequest,
    LearningReport,
    LearningSettings,
    Proposal,
    RecountView,
)
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.services.api.domain_reader import DomainReader


class LearningOperations(DomainReader):
    async def proposals(self, *, every: bool = False, sight: Sight = EVERYTHING) -> list[Proposal]:
        found = await self._server.runtime.learning.proposals(every=every)
        return [each for each in found if await self._is_for(each.rules, sight)]

    async def _is_for(self, rules: str, sight: Sight) -> bool:
        """What is proposed for the default rules is for administrators: its evidence is of all projects."""
        return sight.projects is None or (rules != DEFAULT_RULES and await self.is_of_seen_flow(rules, sight))

    async def proposal(self, proposal: str) -> Proposal:
        return await self._server.runtime.learning.proposal(proposal)

    async def adopt_proposal(self, proposal: str, wish: AdoptionRequest, *, who: str) -> Proposal:
        return await self._server.runtime.learning.adopt(proposal, wish, who=who)

    async def dismiss_proposal(self, proposal: str, wish: DismissalRequest, *, who: str) -> Proposal:
        return await self._server.runtime.learning.dismiss(proposal, wish.why, who=who)

    async def learning_report(self, *, since: Instant = 0, flow: str = "", sight: Sight = EVERYTHING) -> LearningReport:
        async def sees(rules: str) -> bool:
            return await self._is_for(rules, sight)

        return await self._server.runtime.learning.report(since=since, flow=flow, sees=sees)

    async def learning_settings(self) -> LearningSettings:
        return await self._server.runtime.learning.settings()

    async def put_learning_settings(self, settings: LearningSettings, *, who: str) -> LearningSettings:
        return await self._server.runtime.learning.put_settings(settings)

    async def recount_learning(self, *, who: str) -> RecountView:
        counted = await self._server.runtime.learning.recount()
        return RecountView(decisions=counted.decisions, jobs=counted.jobs)
