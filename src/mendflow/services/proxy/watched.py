"""A job under way, as little as can be kept of it: what was submitted, and who is to be told."""

from mendflow.core.model.jobs import Outcome, Submission
from mendflow.core.recovery.conversation import Message
from mendflow.services.contracts import Callback, NewJob


class Watched:
    """`outcome` is set when the job is over and nobody could be told yet: whoever polls or subscribes next hears it."""

    __slots__ = ("_sent", "callback", "new", "outcome", "polled")

    def __init__(self, new: NewJob, sent: Message | None = None) -> None:
        self.new = new
        self.callback: Callback | None = None
        self.outcome: Outcome | None = None
        self.polled = False
        self._sent = sent

    @property
    def said(self) -> tuple[Message, ...]:
        """All that was said so far, worked out when somebody wants to know."""
        spec = self.new.spec
        sent = self._sent or (Message.POST if spec.submission is Submission.FORGET else Message.SUBMIT)
        said = [Message.STAGED, sent] if spec.inputs or spec.replicas else [sent]
        if self.callback is not None and sent is not Message.RUN:
            said.append(Message.SUBSCRIBE)
        if self.polled:
            said.append(Message.POLL)
        return tuple(said)
