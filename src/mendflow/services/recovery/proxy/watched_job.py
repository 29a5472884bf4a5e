"""A job under way, as little as can be kept of it: what was submitted, and who is to be told."""

import asyncio

import msgspec

from mendflow.core.model.jobs import Outcome, Submission
from mendflow.core.recovery.conversation import Message
from mendflow.services.base.contracts import Callback, NewJob


class Watched(msgspec.Struct, eq=False):
    """`outcome` is set when the job is over and nobody could be told yet: whoever polls or subscribes next hears it.
    There is one for every job, so it is the kind of value that is made fastest."""

    new: NewJob
    callback: Callback | None = None
    outcome: Outcome | None = None
    polled: bool = False
    failing: bool = False  # it has failed, and who mends it is being found out
    waiter: asyncio.Future[Outcome] | None = None  # of someone whose call returns when it is over

    @property
    def said(self) -> tuple[Message, ...]:
        """All that was said so far, worked out when somebody wants to know."""
        spec = self.new.spec
        forgotten = spec.submission is Submission.FORGET
        sent = Message.RUN if self.waiter is not None else Message.POST if forgotten else Message.SUBMIT
        said = [Message.STAGED, sent] if spec.inputs or spec.replicas else [sent]
        if self.callback is not None and self.waiter is None:
            said.append(Message.SUBSCRIBE)
        if self.polled:
            said.append(Message.POLL)
        return tuple(said)
