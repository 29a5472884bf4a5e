"""One job's conversation: all that was said between the flow manager and whoever executes the job, as a value.

The flow knows one id. Behind it stand the ids of all submissions, in order; the newest is the one that matters. Every
message changes the conversation by one step of a table, which is the diagram of a job's life: staging, submission,
polling or notification, then completed or failed, and from failed the ways back that repairs take. Nothing here
refuses a message: whoever listens hears what was said."""

from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.ids import CaseId, Instant, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.recovery.decided import Decided
from mendflow.core.recovery.ids import real_id

SAID_FIRST = 8
SAID_LAST = 56
"""A long conversation keeps how it began and how it goes; what was said between is forgotten."""


class Message(StrEnum):
    STAGED = "staged"  # its input files are there
    SUBMIT = "submit"
    POST = "post"  # submitted by someone who does not wait for it
    RUN = "run"  # submitted by someone who waits until it is over
    POLL = "poll"
    SUBSCRIBE = "subscribe"
    NOTIFY = "notify"  # the subscriber is told
    END = "end"  # the flow knows how it ended
    FAILED = "failed"
    RESTAGE = "re-stage"
    RESUBMIT = "re-submit"
    REPOLL = "re-poll"
    REREGISTER = "re-register"
    FORCE_FAIL = "force-fail"
    FORCE_COMPLETE = "force-complete"


MENDING: Final = frozenset(list(Message)[list(Message).index(Message.FAILED) :])
"""What the flow neither says nor hears: failures that were held back, and repairs."""


class Phase(StrEnum):
    """Where a conversation stands."""

    NEW = "new"
    STAGING = "staging"
    SUBMISSION = "submission"
    POLLING = "polling"
    NOTIFICATION = "notification"
    COMPLETED = "completed"
    FAILED = "failed"


_SENT: Final = dict.fromkeys((Message.SUBMIT, Message.POST, Message.RUN), Phase.SUBMISSION)

TRANSITIONS: Final[dict[Phase, dict[Message, Phase]]] = {
    Phase.NEW: {Message.STAGED: Phase.STAGING, Message.FAILED: Phase.FAILED, **_SENT},
    Phase.STAGING: {Message.STAGED: Phase.STAGING, Message.FAILED: Phase.FAILED, **_SENT},
    Phase.SUBMISSION: {
        Message.POLL: Phase.POLLING,
        Message.SUBSCRIBE: Phase.NOTIFICATION,
        Message.END: Phase.COMPLETED,
        Message.FAILED: Phase.FAILED,
    },
    Phase.POLLING: {
        Message.POLL: Phase.POLLING,
        Message.SUBSCRIBE: Phase.NOTIFICATION,
        Message.END: Phase.COMPLETED,
        Message.FAILED: Phase.FAILED,
    },
    Phase.NOTIFICATION: {
        Message.POLL: Phase.POLLING,
        Message.SUBSCRIBE: Phase.NOTIFICATION,
        Message.NOTIFY: Phase.NOTIFICATION,
        Message.END: Phase.COMPLETED,
        Message.FAILED: Phase.FAILED,
    },
    Phase.FAILED: {
        Message.RESTAGE: Phase.STAGING,
        Message.RESUBMIT: Phase.SUBMISSION,
        Message.REPOLL: Phase.POLLING,
        Message.REREGISTER: Phase.NOTIFICATION,
        Message.FORCE_FAIL: Phase.FAILED,
        Message.FORCE_COMPLETE: Phase.COMPLETED,
    },
    Phase.COMPLETED: {},
}
"""What each message makes of where the conversation stands. What is not here leaves it where it is."""


class Held(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failure that the flow has not heard of. `final`: whoever executes the job has given it up."""

    outcome: Outcome
    stage: str
    host: str = ""
    site: str = ""
    pilot: str = ""
    final: bool = True


class Conversation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`reals` are the ids of all submissions, `causes` the events that brought about each but the first. `keys` are
    those of the repairs that were done, so that none is done twice; `told` counts the failures that were held.
    `attempts` and `losses` are over all submissions, `earlier_*` those before the newest."""

    job: JobId
    case: CaseId
    reals: tuple[JobId, ...]
    domain: str = ""
    said: tuple[Message, ...] = ()
    phase: Phase = Phase.NEW
    pattern: str = ""
    level: int = 0
    hosts: tuple[str, ...] = ()
    attempts: int = 0
    losses: int = 0
    earlier_attempts: int = 0
    earlier_losses: int = 0
    told: int = 0
    keys: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    suspended: bool = False
    not_before: Instant = 0
    held: Held | None = None
    over: bool = False  # the flow has heard how it ended, or no longer wants to
    spec: JobSpec | None = None  # of the newest submission, where it is not the one that the flow gave

    @property
    def newest(self) -> JobId:
        return self.reals[-1]

    @property
    def generation(self) -> int:
        return len(self.reals)

    def hear(self, message: Message) -> "Conversation":
        """The conversation after this message. One that is repeated at once, as polls are, is noted once."""
        said = self.said if self.said and self.said[-1] is message else _bounded((*self.said, message))
        return replace(self, said=said, phase=TRANSITIONS[self.phase].get(message, self.phase))

    def fail(self, held: Held, *, attempts: int, losses: int) -> "Conversation":
        """The newest submission has failed; `attempts` and `losses` are its own."""
        hosts = self.hosts if not held.host or held.host in self.hosts else (*self.hosts, held.host)
        return replace(
            self.hear(Message.FAILED),
            held=held,
            hosts=hosts,
            attempts=self.earlier_attempts + attempts,
            losses=self.earlier_losses + losses,
            told=self.told + 1,
        )

    def send_again(
        self, *, key: str, cause: str, spec: JobSpec, domain: str, level: int, not_before: Instant, staged: bool
    ) -> "Conversation":
        """It is submitted again as this, to that domain. `staged`: because its files are to be brought anew."""
        heard = self.hear(Message.RESTAGE).hear(Message.SUBMIT) if staged else self.hear(Message.RESUBMIT)
        return replace(
            heard,
            reals=(*self.reals, real_id(self.job, self.generation + 1)),
            keys=(*self.keys, key),
            causes=(*self.causes, cause),
            spec=spec,
            domain=domain,
            level=max(self.level, level),
            not_before=not_before,
            earlier_attempts=self.attempts,
            earlier_losses=self.losses,
            held=None,
        )

    def overtook(self, decided: Decided) -> bool:
        """Whether the submission that this was decided about has a successor which another event brought about."""
        return any(cause != decided.event for cause in self.causes[decided.generation - 1 :])

    def ask_again(self, message: Message, key: str) -> "Conversation":
        """The answer was lost, not the job: it is polled, or registered for, once more."""
        return replace(self.hear(message), keys=(*self.keys, key), held=None)


def begin(job: JobId, case: CaseId, said: tuple[Message, ...]) -> Conversation:
    """The conversation of a job from what was said of it so far."""
    conversation = Conversation(job=job, case=case, reals=(job,))
    for message in said:
        conversation = conversation.hear(message)
    return conversation


def _bounded(said: tuple[Message, ...]) -> tuple[Message, ...]:
    return said if len(said) <= SAID_FIRST + SAID_LAST else said[:SAID_FIRST] + said[-SAID_LAST:]
