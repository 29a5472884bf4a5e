"""Adopts proposals: their rules are added at the place that the core finds, on trial first, and put in force later.

What protects other rules' cornerstones protects them here as well: a rule that would change what one of them concludes
is refused, whoever adopts it."""

from typing import Final

import msgspec

from mendflow.core.model.errors import Conflict, RequestError
from mendflow.core.model.learning import AdoptionRequest, Proposal, ProposalState
from mendflow.core.model.repair_views import RuleSelector
from mendflow.core.rules import Draft, add_rule
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.loop_yielder import done_in_pieces
from mendflow.services.learning.proposal_store import ProposalStore
from mendflow.services.recovery.rules.editor import RuleEditor
from mendflow.services.recovery.rules.store import RuleStore, StaleVersion

WAITING_STATES: Final[tuple[ProposalState, ...]] = ("open", "outdated", "dismissed", "retired")
"""Those that a person may adopt."""


class ProposalAdopter:
    def __init__(self, proposals: ProposalStore, rules: RuleStore, editor: RuleEditor, clock: Clock) -> None:
        self._proposals = proposals
        self._rules = rules
        self._editor = editor
        self._clock = clock

    async def adopt(self, proposal: Proposal, request: AdoptionRequest, promote_after: int, *, who: str) -> Proposal:
        if proposal.state == "on-trial" and request.in_force:
            return await self.promote(proposal, who=who)
        if proposal.state not in WAITING_STATES:
            raise Conflict(f"proposal {proposal.id} is adopted already: it is {proposal.state}")
        adopted = msgspec.structs.replace(
            proposal,
            adopted_by=who,
            adopted_at=self._clock.now(),
            promote_after=promote_after if request.promote_after is None else request.promote_after,
            why=request.note or proposal.why,
        )
        if proposal.kind == "retire":
            adopted = await self._retire(adopted, who)
        else:
            adopted = await self._add(adopted, request, who)
        await self._proposals.put(adopted, states=WAITING_STATES, now=self._clock.now())
        return adopted

    async def _retire(self, proposal: Proposal, who: str) -> Proposal:
        assert proposal.rule is not None
        meant = RuleSelector(
            rule=proposal.rule, type=proposal.type, task=proposal.task, note=f"proposal {proposal.id}: never helped"
        )
        changed = await self._editor.retire_rule(proposal.rules, meant, who=who)
        return msgspec.structs.replace(proposal, state="in-force", version=changed.version)

    async def _add(self, proposal: Proposal, request: AdoptionRequest, who: str) -> Proposal:
        for _ in range(TRIES):
            before = self._rules.newest_or_empty(proposal.rules)
            draft = Draft(
                condition=proposal.condition,
                exlet=proposal.exlet,
                steps=proposal.flow if proposal.exlet not in before.exlets else None,
                author=who,
                at=self._clock.now(),
                note=f"Proposed: {proposal.sentence}." + (f" {request.note}" if request.note else ""),
                passive=not request.in_force,
            )
            work = add_rule.pieces(before, proposal.type, proposal.task, proposal.cornerstone, draft)
            grown = await done_in_pieces(work)
            note = f"rule {grown.rule} added by proposal {proposal.id}"
            try:
                made = await self._rules.put(grown.rule_set, author=who, note=note, expected=before.version)
            except StaleVersion:
                continue
            return msgspec.structs.replace(
                proposal,
                state="in-force" if request.in_force else "on-trial",
                rule=grown.rule,
                task=grown.tree,
                version=made.version,
            )
        raise Conflict(f"the rules of {proposal.rules} are changed by several at once; adopt it once more")

    async def promote(self, proposal: Proposal, *, who: str) -> Proposal:
        """Put the rule of an adopted proposal in force."""
        assert proposal.rule is not None
        meant = RuleSelector(rule=proposal.rule, type=proposal.type, task=proposal.task)
        changed = await self._editor.promote_rule(proposal.rules, meant, who=who)
        promoted = msgspec.structs.replace(proposal, state="in-force", version=changed.version)
        await self._proposals.put(promoted, states=("on-trial",), now=self._clock.now())
        return promoted

    async def promote_or_leave(self, proposal: Proposal, *, who: str) -> str:
        """Put it in force if that is possible; else why not."""
        try:
            await self.promote(proposal, who=who)
        except RequestError as refused:
            return refused.message
        return ""
