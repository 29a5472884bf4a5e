"""The side that sends work to other domains, as the router knows it. Whoever keeps the sent works provides it."""

from typing import Protocol

from mendflow.core.model.ids import JobId
from mendflow.services.base.contracts import MetaScheduler


class WorkSender(Protocol):
    def peer(self, domain: str) -> MetaScheduler:
        """A domain as a meta-scheduler, whether it is connected now or not."""
        ...

    async def sent_to(self, job: JobId) -> str:
        """The domain that a job was sent to; empty if it was sent to none."""
        ...
