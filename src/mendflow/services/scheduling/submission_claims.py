"""Whether pilots were submitted under the names that they give. Everybody who sees pilots sees these names, and what is
heard under one decides about its site; so a name counts only with the secret that its pilot was started with."""

import msgspec

from mendflow.core.model.sync import SyncRequest
from mendflow.core.scheduling.submissions import site_of
from mendflow.services.base.notices import Notices
from mendflow.services.scheduling.facts import SubmittedPilots
from mendflow.services.scheduling.pilot_records import PilotRecord, SubmissionClaim

TOLD_MAX = 1_000
"""For how many sites and tokens it is remembered that somebody was told."""


class SubmissionClaims:
    def __init__(self, sites: SubmittedPilots, notices: Notices) -> None:
        self._sites = sites
        self._notices = notices
        self._told: dict[tuple[str, str], None] = {}  # site, token

    async def check(self, pilot: PilotRecord, request: SyncRequest, who: str) -> SyncRequest:
        """The request; without the name of its submission, if its pilot was not submitted under that. The pilot works
        on all the same: its token lets it."""
        name, secret = request.submission, request.submission_secret
        claim = pilot.claim
        if claim is None or (claim.name, claim.secret) != (name, secret):
            claim = pilot.claim = SubmissionClaim(name, secret, await self._sites.has_submitted(name, secret))
        if claim.holds:
            return request
        self._tell(pilot, name, who)
        return msgspec.structs.replace(request, submission="", submission_secret="")

    def _tell(self, pilot: PilotRecord, name: str, who: str) -> None:
        site = site_of(name)
        if (site, who) in self._told:
            return
        self._told[site, who] = None
        while len(self._told) > TOLD_MAX:
            del self._told[next(iter(self._told))]
        by = f" with the token {who}" if who else ""
        self._notices.post(
            f"pilot {pilot.id}{by} says that site {site} has submitted it as {name}, and does not have the secret of"
            " that; what it says of it is ignored"
        )


def is_news(pilot: PilotRecord, request: SyncRequest) -> bool:
    """Whether a submitted pilot arrives, leaves, or reports that it cannot work; the server that it is connected to
    reports that."""
    comes = pilot.submission != request.submission
    return not request.front and (comes or request.leaving or bool(request.unfit))
