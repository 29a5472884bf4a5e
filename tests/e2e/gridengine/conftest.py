"""A real Grid Engine, a server beside it, and a site between them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import CaseId
from mendflow.core.model.sites import BatchSettings, PilotSettings, Site, SiteView
from mendflow.core.model.views import JobQuery, JobView
from tests.e2e.conftest import World
from tests.servers import gridengine as servers
from tests.servers.gridengine import GridEngine

collect_ignore_glob = ["test_*.py"] if servers.lacking() else []


class GridFarm:
    """Grid Engine, a server, and a site between them that is called farm."""

    def __init__(self, engine: GridEngine, world: World) -> None:
        self.engine, self.world = engine, world
        self.client, self.folder = world.client, world.folder

    def put(self, *, pilots: PilotSettings | None = None, wall_ms: int = 0, **limits: int) -> None:
        """Describe the site, or describe it anew."""
        batch = BatchSettings(
            kind="gridengine",
            wall_ms=wall_ms,
            folder=str(self.folder / "farm"),
            environment=self.engine.settings,
            commands=str(servers.PROGRAMS),
        )
        given = {"name": "farm", "batch": batch, "pilots": pilots or PilotSettings(), **limits}
        self.client.put_site(msgspec.convert(given, Site))

    def view(self) -> SiteView:
        return self.client.site("farm")

    def pilots(self) -> list[str]:
        """The numbers of the site's pilots that Grid Engine runs."""
        lines = self.engine.run("qstat", "-s", "r").splitlines()[2:]
        return [line.split()[0] for line in lines]

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
        self.until(lambda: self.client.case(case).status != "running", "the case to be over")
        assert self.client.case(case).status == "completed", self.story()

    def story(self) -> str:
        logs = "\n".join(f"{log}:\n{log.read_text()[-1500:]}" for log in self.folder.glob("farm/*/pilot.log"))
        said = f"{(self.folder / 'world.log').read_text()[-3000:]}\n{logs}\n{self.engine.story()}"
        try:
            known = "\n".join(map(repr, [*self.client.pilots(), *self.client.sites()]))
        except RequestError as error:
            known = f"the server does not say what it knows: {error}"
        return f"{said}\n{known}\nlines: {self.lines()}"


@pytest.fixture
def grid_farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GridFarm]:
    monkeypatch.setenv("MENDFLOW_LEVELS", "1 s, 2 s, 4 s")
    engine = GridEngine()
    try:
        engine.start()
        world = World(tmp_path)
        try:
            world.start_server()
            world.wait_for_server()
            yield GridFarm(engine, world)
        finally:
            world.stop()
    finally:
        engine.stop()
