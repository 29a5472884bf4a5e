"""A real Slurm, a server beside it, and jobs that tell when they run and whether another of them runs too."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.ids import CaseId
from mendflow.core.model.sites import BatchSettings, PilotSettings, Site
from mendflow.formats import load
from tests.e2e.batch_farm import BatchFarm, server_beside
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


class Farm(BatchFarm):
    def __init__(self, slurm: Slurm, world: World) -> None:
        super().__init__(slurm, world)
        self.slurm = slurm
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

    def begun(self) -> int:
        return sum(line.endswith("start") for line in self.lines())

    def pilots(self) -> list[servers.BatchJob]:
        """What Slurm has of the site's pilots that is not over."""
        found = [job for job in self.slurm.living() if job.name.startswith("mendflow-farm-")]
        self.most = max(self.most, len(found))
        return found

    def is_over(self, case: CaseId) -> bool:
        self.pilots()
        return super().is_over(case)

    def each_ran_alone(self, jobs: int) -> None:
        """Every job has an end, and none ran while it ran already."""
        assert not (self.folder / "twice").exists(), f"these ran twice at once: {(self.folder / 'twice').read_text()}"
        ended = {line.split()[0] for line in self.lines() if line.endswith("end")}
        assert ended == {str(number) for number in range(jobs)}


def _farm(slurm: Slurm, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    monkeypatch.setenv("SLURM_CONF", slurm.environment["SLURM_CONF"])
    with server_beside(slurm, folder) as world:
        yield Farm(slurm, world)


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    yield from _farm(Slurm(), tmp_path, monkeypatch)


@pytest.fixture
def bounded_farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    """One whose jobs are kept within their memory by the kernel."""
    yield from _farm(Slurm(nodes=1, bound_memory=True), tmp_path, monkeypatch)
