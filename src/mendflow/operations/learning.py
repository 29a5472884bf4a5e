"""Learning: proposals from the past, what failures have cost, and what is adopted by itself."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.ids import Instant
from mendflow.core.model.learning import (
    AdoptionRequest,
    DismissalRequest,
    LearningReport,
    LearningSettings,
    Proposal,
    RecountView,
)
from mendflow.operations.arguments import Body
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, AUTHORS, VIEWERS
from mendflow.operations.subjects import INSTALLATION, LISTED, PROPOSAL

EveryProposal = Annotated[bool, Meta(description="Also those that are in force, dismissed or outdated.")]
ReportSince = Annotated[Instant, Meta(ge=0, description="From the day of this moment on.")]
ReportFlow = Annotated[str, Meta(description="Of this flow only.")]


class LearningCalls(Calls, tag="learning"):
    @operation("GET", "/proposals", VIEWERS, LISTED)
    async def proposals(self, *, every: EveryProposal = False) -> list[Proposal]:
        """Rules that the past suggests, with their evidence. Those that wait for a person come first, then those on
        trial."""

    @operation("GET", "/proposals/{proposal}", VIEWERS, PROPOSAL)
    async def proposal(self, proposal: str) -> Proposal:
        """One proposal, by its id or its beginning."""

    @operation("POST", "/proposals/{proposal}/adopt", AUTHORS, PROPOSAL)
    async def adopt_proposal(self, proposal: str, wish: Body[AdoptionRequest]) -> Proposal:
        """Make the proposal a rule, on trial first. Refused with the cornerstone's name if the rule would change what
        that cornerstone concludes."""

    @operation("POST", "/proposals/{proposal}/dismiss", AUTHORS, PROPOSAL)
    async def dismiss_proposal(self, proposal: str, wish: Body[DismissalRequest]) -> Proposal:
        """Do not propose this again. The reason is remembered."""

    @operation("GET", "/learning/report", VIEWERS, LISTED)
    async def learning_report(self, *, since: ReportSince = 0, flow: ReportFlow = "") -> LearningReport:
        """What failed attempts, over-asking and waits have cost, and what adopted proposals have saved."""

    @operation("GET", "/learning/settings", VIEWERS, INSTALLATION)
    async def learning_settings(self) -> LearningSettings:
        """Which kinds of proposals are adopted by themselves, and how much evidence each needs."""

    @operation("PUT", "/learning/settings", ADMINISTRATORS, INSTALLATION)
    async def put_learning_settings(self, settings: Body[LearningSettings]) -> LearningSettings:
        """Say which kinds of proposals are adopted by themselves, and how much evidence each needs."""

    @operation("POST", "/learning/recount", ADMINISTRATORS, INSTALLATION)
    async def recount_learning(self) -> RecountView:
        """Count all failures and jobs of the store again, as after an import of cases."""
