"""Pilots on a real Grid Engine run a flow whole: what fails is mended, and what is lost with its pilot runs again."""

import pytest

from mendflow.core.model.repair_views import DecisionQuery
from mendflow.core.model.sites import PilotSettings
from mendflow.formats import load
from mendflow.formats.rules import load_rules
from tests.e2e.gridengine.conftest import GridFarm

pytestmark = pytest.mark.gridengine

BRIEF = PilotSettings(idle_exit_ms=3_000)
FLOW = """
name: counting
inputs:
  folder: {type: string}
jobs:
  split:
    run: |
      echo "split" >> ${{ inputs.folder }}/lines
      echo 'parts=["plain", "later", "broken", "lost"]' >> "$MENDFLOW_OUTPUT"
  count:
    for-each: ${{ jobs.split.outputs.parts }}
    run: |
      exec 9>>${{ inputs.folder }}/lock-${{ item }}
      flock -n 9 || echo ${{ item }} >> ${{ inputs.folder }}/twice
      echo "${{ item }} ${FIXED:-begun}" >> ${{ inputs.folder }}/lines
      times=$(grep -c "^${{ item }} " ${{ inputs.folder }}/lines)
      case ${{ item }} in
        later) test $times -ge 2 || exit 75 ;;
        broken) test -n "${FIXED:-}" || exit 7 ;;
        lost) test $times -ge 2 || sleep 600 ;;
      esac
      echo "${{ item }} done" >> ${{ inputs.folder }}/ends
  sum:
    needs: count
    run: echo "sum=$(wc -l < ${{ inputs.folder }}/ends)" >> "$MENDFLOW_OUTPUT"
outputs:
  sum: ${{ jobs.sum.outputs.sum }}
"""
RULES = """
rules: counting
abort:
  count:
    - if: fault.exit_code == 7
      do: mend
exlets:
  mend:
    - re-submit:
      env: {FIXED: fixed}
"""


def test_a_flow_runs_whole_on_grid_engine_though_jobs_fail_and_a_pilot_is_deleted(
    grid_farm: GridFarm,
) -> None:  # PJ-8 JS-7 FM-6
    farm = grid_farm
    farm.put(max_pilots=3, pilots=BRIEF, wall_ms=240_000, lost_ms=5_000)
    for name, text in (("counting.yaml", FLOW), ("rules.yaml", RULES)):
        (farm.folder / name).write_text(text)
    farm.client.deploy(load(farm.folder / "counting.yaml"))
    farm.client.put_rules(load_rules(farm.folder / "rules.yaml"))
    case = farm.client.start("counting", {"folder": str(farm.folder)}).id
    farm.until(lambda: "lost begun" in farm.lines() and len(farm.lines("ends")) == 3, "all but one to be done")
    ended = {line.split()[0] for line in farm.lines("ends")}
    assert ended == {"plain", "later", "broken"}
    for number in farm.pilots():
        farm.engine.run("qdel", number)
    farm.until_over(case)
    assert farm.client.case(case).outputs == {"sum": 4}
    assert not farm.lines("twice")
    assert sorted(farm.lines()) == sorted(
        [
            "split",
            "plain begun",
            "later begun",
            "later begun",
            "broken begun",
            "broken fixed",
            "lost begun",
            "lost begun",
        ]
    )
    (lost,) = [job for job in farm.jobs(case) if any(attempt.end == "lost" for attempt in job.history)]
    assert [attempt.end for attempt in lost.history] == ["lost", "completed"]
    mended = {each.exlet for each in farm.client.decisions(DecisionQuery(case=case)) if each.result}
    assert "mend" in mended
    farm.until(lambda: not farm.pilots(), "Grid Engine to have no pilot left")
    farm.until(lambda: not farm.view().submissions, "the site to know that")


def test_while_the_qmaster_is_away_jobs_go_on_and_pilots_come_when_it_is_back(grid_farm: GridFarm) -> None:  # PJ-8
    farm = grid_farm
    farm.put(max_pilots=2, pilots=BRIEF, lost_ms=2_000)
    (farm.folder / "ticks.yaml").write_text(TICKS)
    farm.client.deploy(load(farm.folder / "ticks.yaml"))
    first = farm.client.start("ticks", {"folder": str(farm.folder), "name": "first"}).id
    farm.until(lambda: farm.lines() == ["first"], "the job to run")
    farm.engine.kill_master()
    (second,) = [farm.client.start("ticks", {"folder": str(farm.folder), "name": "second"}).id]
    farm.until(lambda: farm.view().trouble, "the site to say that the qmaster does not answer")
    (farm.folder / "awake").touch()
    farm.until_over(first)
    farm.engine.start_master()
    farm.until_over(second)
    assert farm.lines() == ["first", "second"]


TICKS = """
name: ticks
inputs:
  folder: {type: string}
  name: {type: string}
jobs:
  tick:
    run: |
      echo ${{ inputs.name }} >> ${{ inputs.folder }}/lines
      until [ -e ${{ inputs.folder }}/awake ]; do sleep 0.1; done
"""
