"""Three servers as real processes on one PostgreSQL start flows by the clock; one of them is killed.

Each case writes its due time: none may be missing, and none may be there twice."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseQuery
from mendflow.formats import load
from tests.e2e.postgresql_site import site_on_postgresql
from tests.e2e.site import Site

NAMES = ("east", "west", "north")
SCHEDULES = ("one", "two", "three")
EVERY_S = 2
FLOW = """
name: tick
inputs:
  at: {type: string}
  by: {type: string}
  folder: {type: string}
jobs:
  note: echo "${{ inputs.by }} ${{ inputs.at }}" >> ${{ inputs.folder }}/lines
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_on_postgresql(tmp_path) as site:
        yield site


def test_a_killed_server_costs_no_due_time_and_none_is_started_twice(site: Site) -> None:  # DU-6
    east, west, _ = (site.serve(name) for name in NAMES)
    site.until(lambda: len(west.servers()) == 3, "the servers to see each other")
    for name in ("west", "north"):
        site.pilot(f"p-{name}", name)
    (site.folder / "tick.yaml").write_text(FLOW)
    east.deploy(load(site.folder / "tick.yaml"))
    inputs: dict[str, Value] = {"at": "${{ schedule.time }}", "by": "${{ schedule.name }}", "folder": str(site.folder)}
    for name in SCHEDULES:  # several, so that the one that is killed was chosen for some
        every_ms = EVERY_S * 1000
        west.put_schedule(
            ScheduleSpec(name=name, flow="tick", every_ms=every_ms, inputs=inputs, catch_up="all", overlap="allow")
        )
    site.until(lambda: len(site.lines()) >= 9, "cases to run")
    site.processes["east"].kill()
    seen = len(site.lines())
    site.until(lambda: len(site.lines()) >= seen + 30, "cases to be started without it")
    for name in SCHEDULES:
        west.pause_schedule(name)
    site.until(lambda: _over(west), "the end")
    started = Counter(
        (str(case.inputs["by"]), str(case.inputs["at"])) for case in west.find_cases(CaseQuery(limit=1000)).rows
    )
    assert set(started.values()) == {1}
    for name in SCHEDULES:
        due = sorted(datetime.fromisoformat(at) for by, at in started if by == name)
        assert len(due) >= 5
        expected = [due[0] + timedelta(seconds=EVERY_S * number) for number in range(len(due))]
        assert due == expected, f"a time of {name} is missing"
    assert set(site.lines()) == {f"{by} {at}" for by, at in started}, "a case did not run"


def _over(client: SyncClient) -> bool:
    return not client.find_cases(CaseQuery(status="running")).rows
