"""A real Grid Engine, a server beside it, and a site between them."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.sites import BatchSettings, PilotSettings, Site
from tests.e2e.batch_farm import BatchFarm, server_beside
from tests.e2e.conftest import World
from tests.servers import gridengine as servers
from tests.servers.gridengine import GridEngine

collect_ignore_glob = ["test_*.py"] if servers.lacking() else []


class GridFarm(BatchFarm):
    def __init__(self, engine: GridEngine, world: World) -> None:
        super().__init__(engine, world)
        self.engine = engine

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

    def pilots(self) -> list[str]:
        """The numbers of the site's pilots that Grid Engine runs."""
        lines = self.engine.run("qstat", "-s", "r").splitlines()[2:]
        return [line.split()[0] for line in lines]


@pytest.fixture
def grid_farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GridFarm]:
    monkeypatch.setenv("MENDFLOW_LEVELS", "1 s, 2 s, 4 s")
    engine = GridEngine()
    with server_beside(engine, tmp_path) as world:
        yield GridFarm(engine, world)
