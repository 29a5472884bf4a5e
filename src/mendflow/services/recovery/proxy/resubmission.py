"""What the proxy does when a job has failed: it asks whether it is to be mended, and carries out the repair.

The failure is held before the question is asked, because a repair may act before the answer has arrived. What is done
is on disk before it is acknowledged, and a repair that is repeated under the same key is done once. A new submission is
written into the conversation first and submitted second: a crash between the two is made up for when the flow, or the
repair, asks again."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec.structs import replace

from mendflow.core.domains.domain_names import not_connected
from mendflow.core.model.domains import ANY_DOMAIN
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome, Resources
from mendflow.core.recovery.conversation import Conversation, ConversationMessage, HeldFailure, MadeResult, begin
from mendflow.core.recovery.decision_subject import DecisionSubject
from mendflow.core.recovery.patterns import Patterns, match_pattern
from mendflow.core.recovery.resubmission import published_result, publishing_alone, with_changes
from mendflow.core.results.result_key import number_in, numbered, result_key
from mendflow.core.scheduling.retries import with_spent
from mendflow.services.base.contracts import (
    Change,
    Clock,
    Failure,
    MetaScheduler,
    NewJob,
    Repairs,
    Status,
    SubmissionFailed,
    never_arrived,
)
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.domain_checks import KnownDomains
from mendflow.services.recovery.proxy.conversations import ConversationStore
from mendflow.services.recovery.proxy.watched_job import TrackedJob

OUR_QUEUE: Final = "."
LOST_ANSWER_STAGES: Final = frozenset({"submission", "polling", "notification"})
"""Stages where an answer may be lost and the job not. Asking again after another failure would give the same answer."""

_CONVERSATION_STAGES: Final[dict[str, str]] = {
    AttemptStage.STAGE_IN: "staging",
    AttemptStage.STAGE_OUT: "staging",
    AttemptStage.SUBMISSION: "submission",
}

OutcomeListener = Callable[[JobId, Outcome], Awaitable[None]]


class NoRepairs:
    """Mends nothing."""

    async def failed(self, failure: Failure) -> bool:
        return False


NO_REPAIRS: Final = NoRepairs()


class Recovery:
    def __init__(
        self,
        *,
        inner: Mapping[str, MetaScheduler],
        ledger: Ledger,
        clock: Clock,
        conversations: ConversationStore,
        watched: dict[JobId, TrackedJob],
        patterns: Patterns,
        hub: Hub,
        on_outcome: OutcomeListener,
    ) -> None:
        self._inner = inner
        self._ledger = ledger
        self._clock = clock
        self._conversations = conversations
        self._tracked = watched
        self.patterns = patterns
        self._hub = hub
        self.on_outcome = on_outcome

    @property
    def repairs(self) -> Repairs:
        """Decides whether failed jobs are mended."""
        return self._hub.provider(Repairs) or NO_REPAIRS

    def use_patterns(self, patterns: Patterns) -> None:
        """Recognise conversations by these patterns from now on."""
        self.patterns = patterns

    def scheduler_of(self, domain: str) -> MetaScheduler:
        found = self._inner.get(domain)
        if found is None:
            message = not_connected(domain)
            raise SubmissionFailed(Fault(name="noSuchDomain", category=Category.SCHEDULER_DOWN, message=message))
        return found

    # A failure

    async def failed(self, watched: TrackedJob, real: JobId, outcome: Outcome, *, stage: str) -> bool:
        """Whether this submission is being mended; otherwise its failure was reported to the flow. Somebody may submit
        the job again at any moment, as after its case was reopened: then this failure is taken up, and another one is
        that of the successor."""
        talk = self._conversation_of(watched)
        if not talk.awaits(real):
            return True
        outcome = _whole(talk, outcome)
        watched.failing = real
        last = await self._last(talk) if stage == "execution" else _unknown_status(real)
        if watched.failing == real:
            watched.failing = None
        if self._tracked.get(talk.job) is not watched:
            return False  # the flow went on without it
        talk = self._conversation_of(watched)
        if not talk.awaits(real):
            return True
        held = HeldFailure(
            outcome=outcome,
            stage=_stage(outcome, stage),
            host=last.host,
            site=last.site,
            pilot=last.pilot,
            asked=_learned(last.asked),
        )
        talk = self._note(watched, talk.with_failure(held, attempts=last.attempts, losses=last.losses))
        return await self._ask(watched, talk)

    async def attempt_failed(self, watched: TrackedJob, job: Job, outcome: Outcome) -> bool:
        """The same for an attempt that would be retried. If it is not mended, or nobody could be asked, nothing is
        recorded."""
        before, last = self._conversations.get(watched.new.id), job.history[-1]
        outcome = _whole(before, outcome)
        stage, fault = _stage(outcome, "execution"), outcome.fault
        losses = job.losses + (fault is not None and fault.infrastructure)  # the queue has not counted this one yet
        held = HeldFailure(
            outcome=outcome,
            stage=stage,
            host=last.host,
            site=last.site,
            pilot=last.pilot,
            final=False,
            asked=_learned(job.spec.resources),
        )
        talk = self._note(watched, self._conversation_of(watched).with_failure(held, attempts=job.tries, losses=losses))
        mended = False
        try:
            mended = await self.repairs.failed(self._failure(watched, talk)) or self._is_taken_up(talk)
        finally:
            if mended:
                self._keep(talk.job)
            elif before is not None:
                self._conversations.note(before)
            else:
                self._conversations.close(talk.job)
        return mended

    async def take_up(self, watched: TrackedJob, talk: Conversation) -> None:
        """After a crash: follow the newest submission, or ask again whether its failure is mended, which is decided
        once. An attempt whose failure is held, and which the queue has not ended yet, is ended now."""
        if talk.held is None:
            await self._hand_over(watched, talk)
            return
        if not talk.held.final:
            inner, new = self.scheduler_of(talk.domain), self._newest(watched, talk)
            await inner.submit([new], reissued=True)
            await inner.cancel(new.id)
            if self._is_taken_up(talk) or self._tracked.get(talk.job) is not watched:
                return  # somebody has submitted it again, or the flow went on without it
        await self._ask(watched, talk)

    async def report_outcome(self, watched: TrackedJob, outcome: Outcome) -> None:
        """Report to the flow how the job ended, under the id that it uses. A poller gets it when it asks."""
        known = watched.new.id
        outcome = _whole(self._conversations.get(known), outcome)
        watched.outcome = outcome
        if watched.callback is not None:
            self._tracked.pop(known, None)
            await watched.callback(known, outcome)
            self._conversations.close(known)

    async def pass_on(self, id: JobId, decided: DecisionSubject | None = None) -> None:
        """Report the held failure to the flow, unless it is one of a later submission, which another repair handles."""
        watched, talk = self._tracked.get(id), self._conversations.get(id)
        if watched is None or watched.outcome is not None or talk is None or talk.held is None:
            return
        if decided is not None and talk.has_overtaken(decided):
            return
        self._conversations.note(talk.with_message(ConversationMessage.FORCE_FAIL))
        await self.report_outcome(watched, talk.held.outcome)

    async def _ask(self, watched: TrackedJob, talk: Conversation) -> bool:
        if await self.repairs.failed(self._failure(watched, talk)):
            self._keep(talk.job)
            return True
        if self._is_taken_up(talk):
            return True
        await self.pass_on(talk.job)
        return False

    def _is_taken_up(self, asked: Conversation) -> bool:
        """Whether the failure that was asked about is no longer the one that is held: the job was submitted again while
        nobody had answered yet. What is held now is asked about by itself."""
        talk = self._conversations.get(asked.job)
        return talk is not None and talk.held is not asked.held

    async def _last(self, talk: Conversation) -> Status:
        try:
            return await self.scheduler_of(talk.domain).status(talk.newest)
        except (NotFound, SubmissionFailed):
            return _unknown_status(talk.newest)

    def _conversation_of(self, watched: TrackedJob) -> Conversation:
        return self._conversations.get(watched.new.id) or begin(watched.new.id, watched.new.case, watched.messages)

    def _note(self, watched: TrackedJob, talk: Conversation) -> Conversation:
        talk = replace(talk, pattern=match_pattern(self.patterns, watched.messages) or talk.pattern)
        self._conversations.note(talk)
        return talk

    def _keep(self, known: JobId) -> None:
        """It is being mended, or may have been mended already."""
        talk = self._conversations.get(known)
        if talk is not None:
            self._conversations.keep(talk)

    # What repairs do

    async def resubmit(self, id: JobId, change: Change, key: str, decided: DecisionSubject | None = None) -> None:
        """Submit the job again, with changes. If it is still under way, it is ended first. Nothing happens if the flow
        no longer waits for it, if it was done before, or if the submission that was decided about is no longer the
        newest."""
        watched = self._tracked.get(id)
        if watched is None or watched.outcome is not None:
            return
        before = self._conversation_of(watched)
        if key not in before.keys and (decided is None or not before.has_overtaken(decided)):
            talk = self._changed(watched, before, change, key, cause=decided.event if decided is not None else key)
            self._conversations.keep(talk)
            if before.held is None:
                await self.scheduler_of(before.domain).cancel(before.newest)
            await self._hand_over(watched, talk)
        elif before.held is None:
            await self._hand_over(watched, before)
        await self._ledger.settled()

    async def ask_again(self, id: JobId, message: ConversationMessage, key: str) -> None:
        """Poll for the newest submission, or subscribe to its end, once more: an answer was lost. Refused for a job
        that has failed, because the answer would be the same."""
        watched = self._tracked.get(id)
        if watched is None or watched.outcome is not None:
            return
        talk = self._conversation_of(watched)
        if key in talk.keys:
            return
        if talk.held is not None and talk.held.stage not in LOST_ANSWER_STAGES:
            raise Conflict(f"job {talk.newest} has failed, and would only say so again; re-submit it")
        talk = talk.ask_again(message, key)
        self._conversations.keep(talk)
        try:
            await self._ask_for(watched, talk, message)
        except SubmissionFailed as failed:
            stage = "polling" if message is ConversationMessage.REPOLL else "notification"
            await self.failed(watched, talk.newest, Outcome(fault=failed.fault), stage=stage)
        await self._ledger.settled()

    async def _ask_for(self, watched: TrackedJob, talk: Conversation, message: ConversationMessage) -> None:
        inner = self.scheduler_of(talk.domain)
        try:
            if message is ConversationMessage.REPOLL:
                found = await inner.status(talk.newest)
                if found.outcome is not None:
                    await self.on_outcome(talk.newest, found.outcome)
                    return
            if message is ConversationMessage.REREGISTER or watched.callback is not None:
                await inner.subscribe(talk.newest, self.on_outcome)
        except NotFound as error:
            raise never_arrived(error) from error

    def newest_spec(self, watched: TrackedJob) -> JobSpec:
        """The job as it was submitted last. Where only its files were published since then, that is the whole job."""
        talk = self._conversation_of(watched)
        return talk.made.spec if talk.made is not None else talk.spec or watched.new.spec

    def _changed(
        self, watched: TrackedJob, talk: Conversation, change: Change, key: str, *, cause: str
    ) -> Conversation:
        whole = self.newest_spec(watched)
        domain = change.domain or talk.domain
        if domain not in self._inner:
            whole, domain = replace(whole, domain=self._routed_domain(domain)), ""
        spec = with_changes(
            whole,
            resources=change.resources,
            env=change.env,
            avoid_hosts=change.avoid_hosts,
            sources=change.sources,
            files=change.files,
            same_content=change.restage,
            transfer=change.transfer,
            image=change.container,
        )
        fault = talk.held.outcome.fault if talk.held is not None else None
        spec = replace(spec, earlier_losses=talk.losses, earlier_attempts=talk.attempts)
        spec = with_spent(spec, fault, max(talk.attempts - talk.losses, 0))
        made = self._made(talk, change, spec)
        if made is not None:
            spec = publishing_alone(spec, made.outcome, to=change.publish_to, on=change.publish_on)
        elif change.publish_to or change.publish_on:
            raise InvalidRequest(f"{spec.item} has no files that wait to be published; its outcome names those that do")
        not_before = self._clock.now() + change.wait_ms if change.wait_ms > 0 else 0
        return talk.with_resubmission(
            key=key,
            cause=cause,
            spec=spec,
            domain=domain,
            level=change.level,
            not_before=not_before,
            staged=change.restage or made is not None,
            made=made,
        )

    def _routed_domain(self, domain: str) -> str:
        """What a job says so that the router, which stands before our own queue, takes it to this domain."""
        known = self._hub.provider(KnownDomains)
        if domain == OUR_QUEUE:
            return ""
        if domain == ANY_DOMAIN or (known is not None and known.knows_domain(domain)):
            return domain
        names = ", ".join(sorted(repr(name) if name else f"'{OUR_QUEUE}' (our own queue)" for name in self._inner))
        raise NotFound(f"there is no domain {domain!r} to submit to; there are {names}, and those that are connected")

    def _made(self, talk: Conversation, change: Change, spec: JobSpec) -> MadeResult | None:
        """What the job has made, if all that is to be repeated is the publishing of it. Who submits it again outright
        wants it to be run again; but where only the publishing was submitted the last time, that is submitted again."""
        held = talk.held
        if held is not None and held.outcome.has_rescued_files and (change.restage or change.level or talk.made):
            return MadeResult(outcome=held.outcome, spec=spec)
        return MadeResult(outcome=talk.made.outcome, spec=spec) if talk.made is not None else None

    def _newest(self, watched: TrackedJob, talk: Conversation) -> NewJob:
        spec, key = talk.spec or watched.new.spec, watched.new.key
        if talk.made is not None:
            key = ""  # it is part of a result
        elif key and talk.spec is not None:  # a repair may have changed what the result is made from
            key = numbered(result_key(talk.spec), number_in(key))
        return NewJob(talk.newest, talk.case, spec, not_before=talk.not_before, key=key)

    async def _hand_over(self, watched: TrackedJob, talk: Conversation) -> None:
        """Give the newest submission to its domain; submitting is idempotent."""
        try:
            inner = self.scheduler_of(talk.domain)
            await inner.submit([self._newest(watched, talk)], reissued=True)
            if self._tracked.get(talk.job) is not watched:
                await inner.cancel(talk.newest)  # the flow went on without it while it was being submitted
                return
            if talk.suspended:
                await inner.suspend(talk.newest)
            if watched.callback is not None:
                await inner.subscribe(talk.newest, self.on_outcome)
        except SubmissionFailed as failed:
            await self.failed(watched, talk.newest, Outcome(fault=failed.fault), stage="submission")

    def _failure(self, watched: TrackedJob, talk: Conversation) -> Failure:
        held = talk.held
        assert held is not None and held.outcome.fault is not None
        return Failure(
            id=f"{talk.newest}:{talk.attempts}:{talk.reports_sent}",
            job=talk.job,
            real=talk.newest,
            case=talk.case,
            spec=_as_asked(talk.spec or watched.new.spec, held.asked),
            fault=held.outcome.fault,
            outcome=held.outcome,
            generation=talk.generation,
            attempts=talk.attempts,
            losses=talk.losses,
            level=talk.level,
            host=held.host,
            site=held.site,
            pilot=held.pilot,
            pattern=talk.pattern,
            stage=held.stage,
            domain=talk.domain,
            hosts=talk.hosts,
            final=held.final,
        )


def _whole(talk: Conversation | None, outcome: Outcome) -> Outcome:
    """How the job ended, where its newest submission only publishes what an earlier one made."""
    return published_result(talk.made.outcome, outcome) if talk is not None and talk.made is not None else outcome


def _learned(asked: Resources | None) -> Resources | None:
    """What a job asked for, if its flow does not say it."""
    return asked if asked is not None and asked.is_learned else None


def _as_asked(spec: JobSpec, asked: Resources | None) -> JobSpec:
    """The job with the memory and the time that it had."""
    if asked is None:
        return spec
    had = replace(spec.resources, memory_bytes=asked.memory_bytes, wall_ms=asked.wall_ms)
    return replace(spec, resources=had)


def _stage(outcome: Outcome, stage: str) -> str:
    """The stage of the conversation: that of the attempt, if it is about files or submission."""
    fault = outcome.fault
    return _CONVERSATION_STAGES.get(fault.stage, stage) if fault is not None else stage


def _unknown_status(job: JobId) -> Status:
    return Status(job=job, state=JobState.AVAILABLE)
