"""The contract of batch systems, as the pilot monitor uses it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from mendflow.core.model.sites import BatchJobStatus, PilotSubmission, Site, SubmitResult


class SiteBatchSystems(Protocol):
    """The batch systems of all sites. No call takes longer than the site's settings allow, whatever a batch system
    does."""

    @property
    def host(self) -> str:
        """The machine from which batch systems are called."""
        ...

    @property
    def ready(self) -> bool:
        """Whether submitted pilots would find the server: not before it can be reached."""
        ...

    async def submit(
        self, site: Site, submissions: Sequence[PilotSubmission], secrets: Mapping[str, str]
    ) -> dict[str, SubmitResult]:
        """Submit pilots; each gets a result. `secrets` has, by the name of each, what its pilot is to be known by; no
        other pilot may read it. Never raises."""
        ...

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        """The jobs of the batch system that have names of this site. Raises BatchSystemUnavailable."""
        ...

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        """Raises BatchSystemUnavailable."""
        ...

    async def tidy(self, site: Site, *, keep: Collection[str], left: Collection[str]) -> None:
        """Remove the files of pilots that are over."""
        ...

    async def sweep(self, sites: Collection[str]) -> None:
        """Remove the files of sites other than these, where no pilot uses them any more."""
        ...

    async def lacks(self, site: Site) -> list[str]:
        """What is missing on the machine that calls batch systems, in sentences."""
        ...
