"""A real batch system, a server beside it, and a site between them that is called farm."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import CaseId
from mendflow.core.model.sites import SiteView
from mendflow.core.model.views import JobQuery, JobView
from tests.e2e.conftest import World


class BatchServers(Protocol):
    """The processes of a batch system."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def story(self) -> str: ...


class BatchFarm:
    def __init__(self, batch: BatchServers, world: World) -> None:
        self._batch, self.world = batch, world
        self.client, self.folder = world.client, world.folder

    def view(self) -> SiteView:
        return self.client.site("farm")

    def jobs(self, case: CaseId) -> list[JobView]:
        return self.client.jobs(JobQuery(case=case, limit=1000))

    def lines(self, name: str = "lines") -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def until(self, holds: Callable[[], object], what: str) -> None:
        try:
            self.world.until(holds, what, every=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None

    def until_over(self, case: CaseId) -> None:
        self.until(lambda: self.is_over(case), "the case to be over")
        assert self.client.case(case).status == "completed", self.story()

    def is_over(self, case: CaseId) -> bool:
        return self.client.case(case).status != "running"

    def story(self) -> str:
        logs = "\n".join(f"{log}:\n{log.read_text()[-1500:]}" for log in self.folder.glob("farm/*/pilot.log"))
        said = f"{(self.folder / 'world.log').read_text()[-3000:]}\n{logs}\n{self._batch.story()}"
        return f"{said}\n{self._known()}\nlines: {self.lines()}"

    def _known(self) -> str:
        """What the server knows of its unfinished jobs, its pilots and the site."""
        try:
            unfinished = [job for job in self.client.jobs(JobQuery(limit=1000)) if not job.finished_at]
            why = [self.client.why(job.id) for job in unfinished[:3]]
            return "\n".join(map(repr, [*unfinished[:3], *why, *self.client.pilots(), *self.client.sites()]))
        except RequestError as error:
            return f"the server does not say what it knows: {error}"


@contextmanager
def server_beside(batch: BatchServers, folder: Path) -> Iterator[World]:
    """The batch system and a server run until the end."""
    try:
        batch.start()
        world = World(folder)
        try:
            world.start_server()
            world.wait_for_server()
            yield world
        finally:
            world.stop()
    finally:
        batch.stop()
