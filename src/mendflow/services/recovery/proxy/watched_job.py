"""The minimal record of a job under way: what was submitted, and who is to be told."""

import asyncio

import msgspec

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome, Submission
from mendflow.core.recovery.conversation import ConversationMessage
from mendflow.services.base.contracts import Callback, NewJob


class TrackedJob(msgspec.Struct, eq=False):
    """`outcome` is set when the job is over and nobody could be told yet: whoever polls or subscribes next gets it.
    There is one for every job, so it is the kind of object that is created fastest."""

    new: NewJob
    callback: Callback | None = None
    outcome: Outcome | None = None
    was_polled: bool = False
    failing: JobId | None = None  # the submission that has failed, while the proxy asks where it ran
    waiter: asyncio.Future[Outcome] | None = None  # of a caller whose call returns when it is over

    @property
    def messages(self) -> tuple[ConversationMessage, ...]:
        """All messages so far, computed on request."""
        spec = self.new.spec
        forgotten = spec.submission is Submission.FORGET
        sent = (
            ConversationMessage.RUN
            if self.waiter is not None
            else ConversationMessage.POST
            if forgotten
            else ConversationMessage.SUBMIT
        )
        sequence = [ConversationMessage.STAGED, sent] if spec.inputs or spec.replicas else [sent]
        if self.callback is not None and self.waiter is None:
            sequence.append(ConversationMessage.SUBSCRIBE)
        if self.was_polled:
            sequence.append(ConversationMessage.POLL)
        return tuple(sequence)
