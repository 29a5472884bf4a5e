"""What the side that does work for other domains answers. Whoever keeps the hosted works provides it."""

from typing import Protocol

from mendflow.core.model.domains import DomainAnswer, DomainReport, DomainRequest, DomainRights


class WorkHost(Protocol):
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

    def may_read(self, origin: str, sha256: str) -> bool:
        """Whether a file belongs to an outcome that is kept for this domain."""
        ...

    async def disconnect(self, origin: str) -> None:
        """The domain is no longer connected: its work is stopped, and its outcomes are dropped."""
        ...
