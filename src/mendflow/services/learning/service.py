"""Learning: counts failures and costs as they end, and makes proposals from time to time.

Every server counts what ends with it, and adds that to the counts in the store. One of them, the same while it lives,
makes the proposals; so does any that is asked for them, which finds the same. Nothing is adopted without a person,
unless the settings say so for its kind. A server that is alone and where nothing has ended, and no rule has changed,
reads nothing: it would find what it found before."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from mendflow.core.learning.group_statistics import GroupStatistics
from mendflow.core.learning.usage import HOUR_DIGITS, HOUR_MS, lost_time, total_usage
from mendflow.core.model.errors import Conflict, InvalidRequest, RequestError, StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Job
from mendflow.core.model.learning import (
    AdoptionRequest,
    LearningReport,
    LearningSettings,
    Proposal,
    SavedTime,
)
from mendflow.lazy import LazyModule
from mendflow.services.base.alerts import AlertFinding, ProblemFound
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.responsibility import Responsibility
from mendflow.services.learning.counting import FailureCounter
from mendflow.services.learning.ended_jobs import EndedJobs
from mendflow.services.learning.proposal_store import ProposalStore
from mendflow.services.learning.retry_estimates import RetryEstimator
from mendflow.services.learning.statistics_store import LearningState, StatisticsStore
from mendflow.services.recovery.contexts import RetryEstimates
from mendflow.services.recovery.decisions import DecisionEnded, DecisionWaits
from mendflow.services.recovery.proxy.patterns import PatternStore
from mendflow.services.recovery.rules.editor import RuleEditor
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.stores.contract import Store

if TYPE_CHECKING:
    from mendflow.services.learning import adoption, learned_failures, proposal_maker
    from mendflow.services.learning import recount as past_count
else:
    adoption = LazyModule("mendflow.services.learning.adoption")
    learned_failures = LazyModule("mendflow.services.learning.learned_failures")
    proposal_maker = LazyModule("mendflow.services.learning.proposal_maker")
    past_count = LazyModule("mendflow.services.learning.recount")

log = logging.getLogger("mendflow.learning")

LOOK_MS: Final = 30_000
BY_ITSELF: Final = "mendflow"
"""Who has adopted what the administrator lets be adopted by itself."""
COUNT_MS_MAX: Final = 6 * HOUR_MS
"""A count of the past that takes longer has died with its server."""
WHOSE: Final = "proposals"


class LearningService:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        hub: Hub,
        membership: OwnMembership,
        rules: RuleStore,
        editor: RuleEditor,
        patterns: PatternStore,
        ended_jobs: EndedJobs,
        flow_of: Callable[[Job], str],
        counted_name: Callable[[str, str], Awaitable[str]],
        look_ms: int = LOOK_MS,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._hub = hub
        self._membership = membership
        self._responsibility = Responsibility(membership)
        self._look_ms = look_ms
        self._statistics = StatisticsStore(store)
        self._proposals = ProposalStore(store)
        self._counter = FailureCounter(flow_of)
        self._counted_name = counted_name
        self._rules = rules
        self._editor = editor
        self._patterns = patterns
        self._since = clock.now()
        self._last_seen: dict[str, tuple[int, int]] = {}  # by group: what was counted when it was last looked at
        self._last_versions: dict[str, int] | None = None  # of the rule sets, when they were last looked at
        self._is_anything_new = True
        self._was_alone = False
        self._is_past_counted = False
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._ended_jobs = ended_jobs
        ended_jobs.read_by(self._jobs_ended)
        hub.subscribe(DecisionEnded, self._decision_ended)
        hub.subscribe(DecisionWaits, lambda _: self._note_news())
        hub.provide(RetryEstimates, RetryEstimator(self._statistics, self._counter, clock))

    @cached_property
    def _maker(self) -> "proposal_maker.ProposalMaker":
        return proposal_maker.ProposalMaker(self._store, self._rules, self._patterns)

    @cached_property
    def _adopter(self) -> "adoption.ProposalAdopter":
        return adoption.ProposalAdopter(self._proposals, self._rules, self._editor, self._clock)

    # Counting

    def _note_news(self) -> None:
        self._is_anything_new = True

    def _jobs_ended(self, jobs: Sequence[Job]) -> None:
        self._counter.count_jobs(jobs)
        self._is_anything_new = True

    def _decision_ended(self, fact: DecisionEnded) -> None:
        self._note_news()
        decided = msgspec.convert(fact.decision, learned_failures.DecidedFailure, from_attributes=True, strict=False)
        failure = learned_failures.learned_failure(decided, self._maker.is_same_again)
        if failure is not None:
            self._counter.count_failure(failure)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="learning")

    async def stop(self) -> None:
        await cancel_tasks(self._task)
        try:
            await self._merge()
        except (StoreUnavailable, RequestError) as error:
            log.warning("the last counts of failures could not be stored: %s", error.message)

    async def _run(self) -> None:
        while True:
            await self._clock.sleep(self._look_ms)
            try:
                if self._membership.may_promise() and self._must_look():
                    await self.look(only_if_mine=True)
            except (StoreUnavailable, Conflict) as error:  # or another server counts the past: the next look sees it
                log.warning("proposals could not be made: %s; trying again", error.message)
            except Exception:  # whatever one look meets, the next may succeed
                log.exception("proposals could not be made; trying again")

    def _must_look(self) -> bool:
        """Whether there may be something to find. Other servers count too, and the last that one of them has counted
        may come just before it is gone."""
        was_alone, self._was_alone = self._was_alone, not self._membership.live_servers()
        is_alone = was_alone and self._was_alone
        return self._is_anything_new or not is_alone or self._last_versions != self._versions()

    def _versions(self) -> dict[str, int]:
        return {each.name: each.version for each in self._rules.all()}

    async def look(self, *, only_if_mine: bool = False) -> dict[str, Proposal]:
        """Store what was counted; make, adopt and promote proposals. All of them by their ids."""
        async with self._lock:
            self._is_anything_new = False
            try:
                await self._count_past()
                await self._merge()
                if only_if_mine and not self._responsibility.mine(WHOSE):
                    return {}
                return await self._make_proposals()
            except BaseException:
                self._is_anything_new = True
                raise

    async def _count_past(self) -> None:
        """Count the past of a store that has never been counted."""
        if self._is_past_counted:
            return
        state, _ = await self._statistics.state()
        self._is_past_counted = state is not None and state.done
        now = self._clock.now()
        if state is None or (not state.done and state.counted_at < now - COUNT_MS_MAX):
            await self.recount_locked()

    async def recount(self) -> "past_count.RecountResult":
        """Count everything again, from the decisions and jobs of the store. What was learned from cases that were
        removed since stays."""
        async with self._lock:
            await self._merge()
            return await self.recount_locked()

    async def recount_locked(self) -> "past_count.RecountResult":
        await self._ledger.settled()
        _, version = await self._statistics.state()
        begun = LearningState(self._clock.now(), self._membership.id)
        if not await self._statistics.put_state(begun, version):
            raise Conflict("another server counts the past just now; ask again in a minute")
        counter, result = await past_count.recount(
            self._store, FailureCounter, begun.counted_at, self._maker.is_same_again, self._counted_name
        )
        self._discard_older(begun.counted_at)
        await self._statistics.keep_greater(*counter.take())
        _, version = await self._statistics.state()
        await self._statistics.put_state(msgspec.structs.replace(begun, done=True), version)
        return result

    def _discard_older(self, counted_at: Instant) -> None:
        """What this server had counted before is in the count of the past."""
        if self._since < counted_at:
            self._ended_jobs.hand_over()
            self._counter.take()
            self._since = counted_at

    async def _merge(self) -> None:
        """Add what this server has counted to the counts in the store. Where there are other servers it is asked at
        every look whether one has counted the past: what comes after that look is not in its count."""
        self._ended_jobs.hand_over()
        if not self._counter.groups and not self._counter.usage and not self._membership.live_servers():
            return
        state, _ = await self._statistics.state()
        if state is None or not state.done:
            return
        if state.counted_by != self._membership.id:
            self._discard_older(state.counted_at)
        groups, usage = self._counter.take()
        try:
            await self._statistics.add_groups(groups)
            await self._statistics.add_usage(usage)
        finally:
            self._counter.put_back(groups, usage)

    # Proposals

    async def _make_proposals(self) -> dict[str, Proposal]:
        settings, known = await self._proposals.settings(), await self._proposals.all()
        groups = await self._maker.with_waiting(await self._statistics.groups())
        known = await self._close_retired(known, groups)
        changed = {group.id for group in groups if self._last_seen.get(group.id) != _seen(group)}
        changed |= {each.group for each in known.values() if each.state == "open" and each.group}
        versions = self._versions()
        if versions != self._last_versions:
            changed = {group.id for group in groups}
        if changed:
            usage, now = await self._statistics.usage(), self._clock.now()
            made = await self._maker.make(groups, changed, usage, known, settings, now)
            await self._keep(made, known, changed, now)
            self._last_seen = {group.id: _seen(group) for group in groups}
        self._last_versions = versions
        if changed:
            known = await self._proposals.all()
        await self._adopt_by_itself(known, settings)
        await self._promote_by_itself(known, groups)
        return await self._proposals.all()

    async def _keep(self, made: list[Proposal], known: dict[str, Proposal], changed: set[str], now: Instant) -> None:
        for proposal in made:
            before = known.get(proposal.id)
            kept = msgspec.structs.replace(proposal, at=before.at) if before is not None else proposal
            written = await self._proposals.put(kept, states=("open", "outdated"), now=now)
            if written and before is None:
                log.info("proposal %s (%s): %s", proposal.id, proposal.kind, proposal.sentence)
                if proposal.kind == "avoid":
                    self._hub.publish(ProblemFound(_place_finding(proposal)))
        ids = {proposal.id for proposal in made}
        for before in known.values():
            if before.state == "open" and before.id not in ids and (not before.group or before.group in changed):
                outdated = msgspec.structs.replace(before, state="outdated")
                await self._proposals.put(outdated, states=("open",), now=now)

    async def _close_retired(self, known: dict[str, Proposal], groups: list[GroupStatistics]) -> dict[str, Proposal]:
        """Proposals whose rules were taken out of use since are closed, with how many failures there were by then."""
        counts, closed = {group.id: group.count for group in groups}, dict[str, Proposal]()
        for proposal in known.values():
            adopted = proposal.state in ("on-trial", "in-force") and proposal.kind != "retire"
            if adopted and self._maker.is_rule_retired(proposal):
                failures = counts.get(proposal.group, proposal.evidence.failures)
                retired = msgspec.structs.replace(proposal, state="retired", closed_failures=failures)
                if await self._proposals.put(retired, states=(proposal.state,), now=self._clock.now()):
                    closed[proposal.id] = retired
        return {**known, **closed}

    async def _adopt_by_itself(self, known: dict[str, Proposal], settings: LearningSettings) -> None:
        for proposal in known.values():
            policy = settings.adopt.get(proposal.kind, "ask")
            if proposal.state != "open" or policy == "ask" or proposal.evidence.breaks:
                continue
            request = AdoptionRequest(in_force=policy == "in-force", note="Adopted as the settings say.")
            try:
                await self._adopter.adopt(proposal, request, settings.promote_after, who=BY_ITSELF)
            except RequestError as refused:
                log.warning("proposal %s could not be adopted by itself: %s", proposal.id, refused.message)

    async def _promote_by_itself(self, known: dict[str, Proposal], groups: list[GroupStatistics]) -> None:
        for proposal in known.values():
            if proposal.state != "on-trial" or not proposal.promote_after:
                continue
            trial = proposal_maker.agreement_of(proposal, groups)
            if trial.agreed < proposal.promote_after or trial.otherwise > trial.agreed // 10:
                continue
            if reason := await self._adopter.promote_or_leave(proposal, who=proposal.adopted_by or BY_ITSELF):
                log.warning("proposal %s stays on trial: %s", proposal.id, reason)

    async def proposals(self, *, every: bool = False) -> list[Proposal]:
        """Those that wait for a person and those on trial; the surest first."""
        await self._ledger.settled()
        known = await self.look()
        groups = await self._statistics.groups()
        shown = [each for each in known.values() if every or each.state in ("open", "on-trial")]
        found = [msgspec.structs.replace(each, trial=proposal_maker.agreement_of(each, groups)) for each in shown]
        return sorted(found, key=lambda each: (each.state != "open", -each.evidence.caught, each.id))

    async def proposal(self, name: str) -> Proposal:
        found = await self._proposals.find(name)
        return msgspec.structs.replace(found, trial=proposal_maker.agreement_of(found, await self._statistics.groups()))

    async def adopt(self, name: str, request: AdoptionRequest, *, who: str) -> Proposal:
        settings = await self._proposals.settings()
        return await self._adopter.adopt(await self._proposals.find(name), request, settings.promote_after, who=who)

    async def dismiss(self, name: str, why: str, *, who: str) -> Proposal:
        if not why.strip():
            raise InvalidRequest("say why it is dismissed; it is remembered", field="why")
        found = await self._proposals.find(name)
        failures = found.evidence.failures
        dismissed = msgspec.structs.replace(
            found, state="dismissed", why=why, dismissed_by=who, closed_failures=failures
        )
        if not await self._proposals.put(dismissed, states=adoption.WAITING_STATES, now=self._clock.now()):
            raise Conflict(
                f"proposal {found.id} is {found.state}: retire its rule instead, with `mendflow rules retire"
                f" {found.rules} {found.rule}`"
            )
        return dismissed

    async def settings(self) -> LearningSettings:
        return await self._proposals.settings()

    async def put_settings(self, settings: LearningSettings) -> LearningSettings:
        await self._proposals.put_settings(settings)
        self._last_seen = {}  # other numbers, other proposals
        self._note_news()
        return settings

    # What it has cost, and saved

    async def report(
        self, *, since: Instant = 0, flow: str = "", sees: Callable[[str], Awaitable[bool]]
    ) -> LearningReport:
        """Of the flows and rules that whoever asks may see."""
        await self._ledger.settled()
        async with self._lock:
            await self._count_past()
            await self._merge()
        usage, proposals = await self._statistics.usage(), (await self._proposals.all()).values()
        names = {each.flow for each in usage} | {each.rules for each in proposals}
        seen = {name for name in names if await sees(name)}
        totals = total_usage((each for each in usage if each.flow in seen), since, flow)
        groups = await self._statistics.groups()
        adopted = [each for each in proposals if each.state == "in-force" and each.rules in seen]
        return LearningReport(
            since=since,
            jobs=sum(each.jobs for each in totals.values()),
            attempts=sum(each.attempts for each in totals.values()),
            useful_hours=round(sum(each.useful.ms for each in totals.values()) / HOUR_MS, HOUR_DIGITS),
            useful_gb_hours=round(sum(each.useful.gb_ms for each in totals.values()) / HOUR_MS, HOUR_DIGITS),
            lost=[lost for each in totals.values() for lost in lost_time(each)],
            saved=[saved_time(each, groups) for each in adopted if each.kind != "retire"],
        )


def _seen(group: GroupStatistics) -> tuple[int, int]:
    return group.count, group.lost_attempts


def saved_time(proposal: Proposal, groups: list[GroupStatistics]) -> SavedTime:
    """What the rule of an adopted proposal has cured, and what that would have cost."""
    key = (proposal.rules, proposal.task, proposal.rule, proposal.exlet)
    counts = [(group, count) for group in groups for count in group.repairs if count.key == key]
    ms = sum(count.helped * group.lost_ms / max(1, group.lost_attempts) for group, count in counts)
    return SavedTime(
        proposal=proposal.id,
        sentence=proposal.sentence,
        since=proposal.adopted_at,
        fired=sum(count.tried + count.other for _, count in counts),
        cured=sum(count.helped for _, count in counts),
        hours=round(ms / HOUR_MS, HOUR_DIGITS),
    )


def _place_finding(proposal: Proposal) -> AlertFinding:
    return AlertFinding(
        kind="failure",
        subject=proposal.message,
        episode=proposal.id,
        sentence=f"{proposal.sentence}. See `mendflow proposals show {proposal.id}`",
    )
