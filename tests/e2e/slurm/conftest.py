"""A real Slurm, a server beside it, and jobs that tell when they run and whether another of them runs too."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import CaseId
from mendflow.core.model.sites import BatchSettings, PilotSettings, Site, SiteView
from mendflow.core.model.views import JobQuery, JobView
from mendflow.formats import load
from tests.e2e.conftest import World
from tests.servers import slurm as servers
from tests.servers.slurm import Slurm

collect_ignore_glob = ["test_*.py"] if servers.lacking() else []
collect_ignore = [] if servers.can_bound_memory() else ["test_memory.py"]

FLOW = """
name: ticks
inputs:
  jobs: {type: list}
  folder: {type: string}
  seconds: {type: string}
  again: {type: string}
jobs:
  tick:
    for-each: ${{ inputs.jobs }}
    run: |
      exec 9>>${{ inputs.folder }}/lock-${{ item }}
      flock -n 9 || echo ${{ item }} >> ${{ inputs.folder }}/twice
      echo "${{ item }} start" >> ${{ inputs.folder }}/lines
      if [ "$MENDFLOW_ATTEMPT" = 1 ]; then sleep ${{ inputs.seconds }}; else sleep ${{ inputs.again }}; fi
      echo "${{ item }} end" >> ${{ inputs.folder }}/lines
"""
"""Each holds a lock while it, or anything that it started, lives: who finds it taken runs at the same time."""


class Farm:
    """Slurm, a server, and a site between them that is called farm."""

    def __init__(self, slurm: Slurm, world: World) -> None:
        self.slurm, self.world = slurm, world
        self.client = world.client
        self.folder = world.folder
        self.most = 0  # pilots that Slurm had at once

    def put(self, *, slots: int = 1, pilots: PilotSettings | None = None, wall_ms: int = 0, **limits: int) -> None:
        """Describe the site, or describe it anew."""
        given = pilots or PilotSettings()
        given = msgspec.structs.replace(given, slots=slots, cpus=slots)
        batch = BatchSettings(kind="slurm", wall_ms=wall_ms, folder=str(self.folder / "farm"))
        self.client.put_site(msgspec.convert({"name": "farm", "batch": batch, "pilots": given, **limits}, Site))

    def start(self, jobs: int, *, seconds: float, again: float = 0.2) -> CaseId:
        """A case of so many jobs, each of which takes `seconds` the first time, and `again` if it is run again."""
        path = self.folder / "ticks.yaml"
        path.write_text(FLOW)
        self.client.deploy(load(path))
        inputs = {"jobs": list(range(jobs)), "folder": str(self.folder), "seconds": str(seconds), "again": str(again)}
        return self.client.start("ticks", inputs).id

    def view(self) -> SiteView:
        return self.client.site("farm")

    def jobs(self, case: CaseId) -> list[JobView]:
        return self.client.jobs(JobQuery(case=case, limit=1000))

    def lines(self) -> list[str]:
        path = self.folder / "lines"
        return path.read_text().splitlines() if path.exists() else []

    def begun(self) -> int:
        return sum(line.endswith("start") for line in self.lines())

    def pilots(self) -> list[servers.BatchJob]:
        """What Slurm has of the site's pilots that is not over."""
        found = [job for job in self.slurm.living() if job.name.startswith("mendflow-farm-")]
        self.most = max(self.most, len(found))
        return found

    def until(self, holds: Callable[[], object], what: str) -> None:
        try:
            self.world.until(holds, what, every=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None

    def until_over(self, case: CaseId) -> None:
        def over() -> bool:
            self.pilots()
            return self.client.case(case).status != "running"

        self.until(over, "the case to be over")
        assert self.client.case(case).status == "completed", self.story()

    def each_ran_alone(self, jobs: int) -> None:
        """Every job has an end, and none ran while it ran already."""
        assert not (self.folder / "twice").exists(), f"these ran twice at once: {(self.folder / 'twice').read_text()}"
        ended = {line.split()[0] for line in self.lines() if line.endswith("end")}
        assert ended == {str(number) for number in range(jobs)}

    def story(self) -> str:
        logs = "\n".join(f"{log}:\n{log.read_text()[-1500:]}" for log in self.folder.glob("farm/*/pilot.log"))
        said = f"{(self.folder / 'world.log').read_text()[-3000:]}\n{logs}\n{self.slurm.story()}"
        return f"{said}\n{self._known()}\nlines: {self.lines()}"

    def _known(self) -> str:
        """What the server knows of its unfinished jobs, its pilots and the site."""
        try:
            unfinished = [job for job in self.client.jobs(JobQuery(limit=1000)) if not job.finished_at]
            why = [self.client.why(job.id) for job in unfinished[:3]]
            return "\n".join(map(repr, [*unfinished[:3], *why, *self.client.pilots(), *self.client.sites()]))
        except RequestError as error:
            return f"the server does not say what it knows: {error}"


def _farm(slurm: Slurm, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    monkeypatch.setenv("SLURM_CONF", slurm.environment["SLURM_CONF"])
    try:
        slurm.start()
        world = World(folder)
        try:
            world.start_server()
            world.wait_for_server()
            yield Farm(slurm, world)
        finally:
            world.stop()
    finally:
        slurm.stop()


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    yield from _farm(Slurm(), tmp_path, monkeypatch)


@pytest.fixture
def bounded_farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    """One whose jobs are kept within their memory by the kernel."""
    yield from _farm(Slurm(nodes=1, bound_memory=True), tmp_path, monkeypatch)
