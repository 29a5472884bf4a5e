"""The contract of every batch system: it gets a script under a name, and can be queried by name.

Its job ids are not trusted. `find` lists what it has under our names, `cancel` cancels by name, and a submission whose
answer was lost is found by its name like any other."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from mendflow.core.model.sites import BatchJobStatus, Site, SubmitResult


class Launch(msgspec.Struct, frozen=True):
    """A pilot that is ready to be submitted: the script that runs it, in its own folder."""

    name: str
    folder: Path

    @property
    def script(self) -> Path:
        return self.folder / "pilot.sh"

    @property
    def secret(self) -> Path:
        return self.folder / "secret"

    @property
    def log(self) -> Path:
        return self.folder / "pilot.log"


class BatchSystem(Protocol):
    async def submit(self, site: Site, launches: Sequence[Launch]) -> dict[str, SubmitResult]:
        """Submit these one after the other, until one is refused: the rest are `SubmitSkipped`. Each has an answer.
        Never raises BatchSystemUnavailable: a missing answer is `SubmitUncertain`."""
        ...

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        """What it has under names of this site, including ended ones that it still remembers. Raises
        BatchSystemUnavailable."""
        ...

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        """Cancel these; unknown names are no error. Raises BatchSystemUnavailable."""
        ...


def names_of(site: Site) -> str:
    """The prefix of the names of all pilots of this site."""
    return f"mendflow-{site.name}-"
