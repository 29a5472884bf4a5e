"""What the two sides of work that crosses domains offer: the host, which does it for others, and the sender."""

from typing import Protocol

from mendflow.core.model.domains import DomainAnswer, DomainReport, DomainRequest, DomainRights
from mendflow.core.model.ids import JobId
from mendflow.services.base.contracts import MetaScheduler


class WorkHost(Protocol):
    """Whoever keeps the hosted works provides it."""

    async def exchange(
        self, origin: str, rights: DomainRights, request: DomainRequest, report: DomainReport | None = None
    ) -> DomainAnswer:
        """Answer a server of another domain; `report` is what it is told of this one."""
        ...

    def wants_file(self, origin: str, sha256: str) -> bool:
        """Whether a domain was asked for this file."""
        ...

    def file_delivered(self, origin: str, sha256: str) -> None:
        """A domain has sent this file, whole: work of it may refer to it."""
        ...

    def file_bytes_max(self, origin: str, sha256: str) -> int:
        """How large a file may be that a domain was asked for."""
        ...

    def has_shown(self, origin: str, sha256: str) -> bool:
        """Whether a domain has shown that it has this file: it has brought it, or it is of an outcome for it."""
        ...

    def may_read(self, origin: str, sha256: str) -> bool:
        """Whether a file belongs to an outcome that is kept for this domain."""
        ...

    async def disconnect(self, origin: str) -> None:
        """The domain is no longer connected: its work is stopped, and its outcomes are dropped."""
        ...


class WorkSender(Protocol):
    """Whoever keeps the sent works provides it."""

    def peer(self, domain: str) -> MetaScheduler:
        """A domain as a meta-scheduler, whether it is connected now or not."""
        ...

    async def sent_to(self, job: JobId) -> str:
        """The domain that a job was sent to; empty if it was sent to none."""
        ...
