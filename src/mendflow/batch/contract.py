"""What every batch system is to us: something that is given a name with a script, and that can be asked by name.

None of its numbers is relied on. `find` tells what it has by our names, `cancel` takes back by name, and a submission
whose answer was lost is found by its name like any other."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from mendflow.core.model.sites import BatchJobStatus, Site, SubmitResult


class Launch(msgspec.Struct, frozen=True):
    """A pilot that is ready to be submitted: the script that runs it, in a folder of its own."""

    name: str
    folder: Path

    @property
    def script(self) -> Path:
        return self.folder / "pilot.sh"

    @property
    def log(self) -> Path:
        return self.folder / "pilot.log"


class BatchSystem(Protocol):
    async def submit(self, site: Site, launches: Sequence[Launch]) -> dict[str, SubmitResult]:
        """Submit these, one after the other, until one is not taken: the rest are `Untried`. Each has an answer. Never
        raises BatchSystemUnavailable: whoever could not be asked gave no answer, which is one."""
        ...

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        """What it has by names of this site, also what has ended, if it still remembers. Raises
        BatchSystemUnavailable."""
        ...

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        """Take these back; those that it does not know are no mistake. Raises BatchSystemUnavailable."""
        ...


def names_of(site: Site) -> str:
    """What the names of all pilots begin with that are submitted for this site."""
    return f"mendflow-{site.name}-"
