"""The conversation of a job: all messages between the flow manager and the executor of the job, as a value.

The flow knows one id. Behind it are the ids of all submissions, in order; the newest counts. A table says what each
message changes; it is the state diagram of a job: staging, submission, polling or notification, then completed or
failed, and from failed the ways back by repairs. No message is refused: a listener records what was sent."""

from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.ids import CaseId, Instant, JobId
from mendflow.core.model.jobs import JobSpec, Outcome, Resources
from mendflow.core.recovery.decision_subject import DecisionSubject
from mendflow.core.recovery.ids import submission_job_id

MESSAGES_FIRST = 8
MESSAGES_LAST = 56
"""A long conversation keeps its beginning and its end; the messages between are dropped."""


class ConversationMessage(StrEnum):
    STAGED = "staged"  # its input files are there
    SUBMIT = "submit"
    POST = "post"  # submitted by a client that does not wait for it
    RUN = "run"  # submitted by a client that waits until it has ended
    POLL = "poll"
    SUBSCRIBE = "subscribe"
    NOTIFY = "notify"  # the subscriber is notified
    END = "end"  # the flow knows how it ended
    FAILED = "failed"
    RESTAGE = "re-stage"
    RESUBMIT = "re-submit"
    REPOLL = "re-poll"
    REREGISTER = "re-register"
    FORCE_FAIL = "force-fail"
    FORCE_COMPLETE = "force-complete"


REPAIR_MESSAGES: Final = frozenset(
    list(ConversationMessage)[list(ConversationMessage).index(ConversationMessage.FAILED) :]
)
"""Messages that the flow neither sends nor gets: failures that were held back, and repairs."""


class ConversationPhase(StrEnum):
    """The state of a conversation."""

    NEW = "new"
    STAGING = "staging"
    SUBMISSION = "submission"
    POLLING = "polling"
    NOTIFICATION = "notification"
    COMPLETED = "completed"
    FAILED = "failed"


_SENT: Final = dict.fromkeys(
    (ConversationMessage.SUBMIT, ConversationMessage.POST, ConversationMessage.RUN), ConversationPhase.SUBMISSION
)

TRANSITIONS: Final[dict[ConversationPhase, dict[ConversationMessage, ConversationPhase]]] = {
    ConversationPhase.NEW: {
        ConversationMessage.STAGED: ConversationPhase.STAGING,
        ConversationMessage.FAILED: ConversationPhase.FAILED,
        **_SENT,
    },
    ConversationPhase.STAGING: {
        ConversationMessage.STAGED: ConversationPhase.STAGING,
        ConversationMessage.FAILED: ConversationPhase.FAILED,
        **_SENT,
    },
    ConversationPhase.SUBMISSION: {
        ConversationMessage.POLL: ConversationPhase.POLLING,
        ConversationMessage.SUBSCRIBE: ConversationPhase.NOTIFICATION,
        ConversationMessage.END: ConversationPhase.COMPLETED,
        ConversationMessage.FAILED: ConversationPhase.FAILED,
    },
    ConversationPhase.POLLING: {
        ConversationMessage.POLL: ConversationPhase.POLLING,
        ConversationMessage.SUBSCRIBE: ConversationPhase.NOTIFICATION,
        ConversationMessage.END: ConversationPhase.COMPLETED,
        ConversationMessage.FAILED: ConversationPhase.FAILED,
    },
    ConversationPhase.NOTIFICATION: {
        ConversationMessage.POLL: ConversationPhase.POLLING,
        ConversationMessage.SUBSCRIBE: ConversationPhase.NOTIFICATION,
        ConversationMessage.NOTIFY: ConversationPhase.NOTIFICATION,
        ConversationMessage.END: ConversationPhase.COMPLETED,
        ConversationMessage.FAILED: ConversationPhase.FAILED,
    },
    ConversationPhase.FAILED: {
        ConversationMessage.RESTAGE: ConversationPhase.STAGING,
        ConversationMessage.RESUBMIT: ConversationPhase.SUBMISSION,
        ConversationMessage.REPOLL: ConversationPhase.POLLING,
        ConversationMessage.REREGISTER: ConversationPhase.NOTIFICATION,
        ConversationMessage.FORCE_FAIL: ConversationPhase.FAILED,
        ConversationMessage.FORCE_COMPLETE: ConversationPhase.COMPLETED,
    },
    ConversationPhase.COMPLETED: {},
}
"""The transitions. A message that is not listed changes nothing."""


class HeldFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failure that the flow does not know of. `final`: the executor has given the job up. `asked` is what the job
    asked for, which the executor may have learned."""

    outcome: Outcome
    stage: str
    host: str = ""
    site: str = ""
    pilot: str = ""
    final: bool = True
    asked: Resources | None = None


class MadeResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job made whose files could not be published, and what it is as a whole: so it is submitted if it is to be
    run again after all."""

    outcome: Outcome
    spec: JobSpec


class Conversation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`submission_ids` are those of all submissions, `causes` the events that brought about each but the first. `keys`
    are those of the repairs that were done, so that none is done twice; `reports_sent` counts the failures that were
    held. `attempts` and `losses` are over all submissions, `earlier_*` those before the newest."""

    job: JobId
    case: CaseId
    submission_ids: tuple[JobId, ...]
    domain: str = ""
    messages: tuple[ConversationMessage, ...] = ()
    phase: ConversationPhase = ConversationPhase.NEW
    pattern: str = ""
    level: int = 0
    hosts: tuple[str, ...] = ()
    attempts: int = 0
    losses: int = 0
    earlier_attempts: int = 0
    earlier_losses: int = 0
    reports_sent: int = 0
    keys: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    suspended: bool = False
    not_before: Instant = 0
    held: HeldFailure | None = None
    over: bool = False  # the flow knows how it ended, or no longer wants to
    spec: JobSpec | None = None  # of the newest submission, if it differs from the flow's
    made: MadeResult | None = None  # if the newest submission only publishes what an earlier one made

    @property
    def newest(self) -> JobId:
        return self.submission_ids[-1]

    @property
    def generation(self) -> int:
        return len(self.submission_ids)

    def awaits(self, submission: JobId) -> bool:
        """Whether the end of this submission is still news: it has no successor, and no failure of it is held."""
        return submission == self.newest and self.held is None

    def with_message(self, message: ConversationMessage) -> "Conversation":
        """The conversation after this message. An immediate repetition, such as polling, is recorded once."""
        messages = (
            self.messages
            if self.messages and self.messages[-1] is message
            else _bounded_messages((*self.messages, message))
        )
        return replace(self, messages=messages, phase=TRANSITIONS[self.phase].get(message, self.phase))

    def with_failure(self, held: HeldFailure, *, attempts: int, losses: int) -> "Conversation":
        """The newest submission has failed; `attempts` and `losses` are its own."""
        hosts = self.hosts if not held.host or held.host in self.hosts else (*self.hosts, held.host)
        return replace(
            self.with_message(ConversationMessage.FAILED),
            held=held,
            hosts=hosts,
            attempts=self.earlier_attempts + attempts,
            losses=self.earlier_losses + losses,
            reports_sent=self.reports_sent + 1,
        )

    def with_resubmission(
        self,
        *,
        key: str,
        cause: str,
        spec: JobSpec,
        domain: str,
        level: int,
        not_before: Instant,
        staged: bool,
        made: MadeResult | None = None,
    ) -> "Conversation":
        """It is resubmitted as this, to that domain. `staged`: because its files are fetched again."""
        heard = (
            self.with_message(ConversationMessage.RESTAGE).with_message(ConversationMessage.SUBMIT)
            if staged
            else self.with_message(ConversationMessage.RESUBMIT)
        )
        return replace(
            heard,
            submission_ids=(*self.submission_ids, submission_job_id(self.job, self.generation + 1)),
            keys=(*self.keys, key),
            causes=(*self.causes, cause),
            spec=spec,
            domain=domain,
            level=max(self.level, level),
            not_before=not_before,
            made=made,
            earlier_attempts=self.attempts,
            earlier_losses=self.losses,
            held=None,
        )

    def has_overtaken(self, decided: DecisionSubject) -> bool:
        """Whether the submission that this was decided about already has a successor, caused by another event."""
        return any(cause != decided.event for cause in self.causes[decided.generation - 1 :])

    def ask_again(self, message: ConversationMessage, key: str) -> "Conversation":
        """The answer was lost, not the job: poll, or subscribe, once more."""
        return replace(self.with_message(message), keys=(*self.keys, key), held=None)


def begin(job: JobId, case: CaseId, messages: tuple[ConversationMessage, ...]) -> Conversation:
    """The conversation of a job from the messages so far."""
    conversation = Conversation(job=job, case=case, submission_ids=(job,))
    for message in messages:
        conversation = conversation.with_message(message)
    return conversation


def _bounded_messages(messages: tuple[ConversationMessage, ...]) -> tuple[ConversationMessage, ...]:
    return (
        messages
        if len(messages) <= MESSAGES_FIRST + MESSAGES_LAST
        else messages[:MESSAGES_FIRST] + messages[-MESSAGES_LAST:]
    )
