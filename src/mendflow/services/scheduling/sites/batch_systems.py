"""What provisioning sees of batch systems."""

from collections.abc import Collection, Sequence
from typing import Protocol

from mendflow.core.model.sites import BatchJobStatus, PilotSubmission, Site, SubmitResult


class SiteBatchSystems(Protocol):
    """Whichever a site has. Nothing here lasts longer than the site's settings allow, whatever a batch system does."""

    @property
    def host(self) -> str:
        """The machine on which batch systems are spoken to."""
        ...

    @property
    def ready(self) -> bool:
        """Whether pilots would know where to go: not before the server can be reached."""
        ...

    async def submit(self, site: Site, submissions: Sequence[PilotSubmission]) -> dict[str, SubmitResult]:
        """Each gets an answer. Never raises."""
        ...

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        """What it has by names of this site. Raises BatchSystemUnavailable."""
        ...

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        """Raises BatchSystemUnavailable."""
        ...

    async def tidy(self, site: Site, *, keep: Collection[str], left: Collection[str]) -> None:
        """Remove what is left of pilots that are over."""
        ...

    async def sweep(self, sites: Collection[str]) -> None:
        """Remove what is left of sites other than these, where no pilot uses it any more."""
        ...

    async def lacks(self, site: Site) -> list[str]:
        """What is missing where batch systems are spoken to, in sentences."""
        ...
