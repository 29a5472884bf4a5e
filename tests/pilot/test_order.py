"""Which of the jobs that a pilot has taken ahead begins first, and which of them may go back."""

from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.ids import ItemId, JobId, PilotId
from mendflow.core.model.jobs import JobSpec, Measurements, Resources
from mendflow.core.model.sync import NOT_STARTED, AttemptStatus, Capacity
from mendflow.pilot.agent.agent import Agent
from mendflow.pilot.agent.attempts import HELD_MAX, Attempts, HeldAttempt
from mendflow.pilot.files.staging import FileStager
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.services.scheduling.pilot_records import GrantedAttempt as Heard


def came(attempts: Attempts, name: str, priority: int = 0) -> HeldAttempt:
    held = HeldAttempt(JobId(name), 1, Resources(), JobSpec(item=ItemId("i"), command="x", priority=priority))
    attempts.add(held)
    return held


def here() -> Attempts:
    return Attempts(Capacity(slots=1, cpus=1.0, memory_bytes=0, disk_bytes=0))


@given(st.data())
def test_of_those_taken_ahead_the_higher_priority_begins_first_then_the_first_come(data: st.DataObject) -> None:
    """In whichever order their files have come."""
    attempts = here()
    priorities = data.draw(st.lists(st.integers(-2, 2), max_size=8))
    all_of_them = [came(attempts, f"c/{number}", each) for number, each in enumerate(priorities)]
    for held in data.draw(st.permutations(all_of_them)):
        attempts.enqueue(held)
    assert list(attempts.ready) == sorted(all_of_them, key=lambda each: -priorities[all_of_them.index(each)])


def test_one_that_waits_may_go_back_and_one_whose_files_were_brought_stays() -> None:
    attempts = here()
    held = came(attempts, "c/1")
    held.to_heartbeat()
    assert held.can_be_returned
    held.state = "staging"
    held.to_heartbeat()
    held.state = "held"
    assert held.can_be_returned, "staging is no beginning, for the server either, and nothing had to be brought"
    held.staging_measures = Measurements(fetched_files=1)
    assert not held.can_be_returned, "its files are here, and would have to be brought again elsewhere"


@pytest.mark.parametrize("state", ["held", "staging", "running", "suspended", "keeping"])
def test_pilot_and_server_take_the_same_for_begun(state: str) -> None:
    held = came(here(), "c/1")
    held.state = state
    beat, heard = held.to_heartbeat(), Heard(since=1)
    heard.hear(AttemptStatus(beat.job, beat.fence, beat.state, beat.measures))
    assert held.was_reported_begun == heard.begun == (state not in NOT_STARTED)


def test_a_pilot_asks_for_no_more_than_it_can_name(tmp_path: Path) -> None:
    has = Capacity(slots=2 * HELD_MAX, cpus=1.0, memory_bytes=0, disk_bytes=0)
    agent = Agent(WorkFolder(tmp_path), PilotId("p"), has, cast(FileStager, None))
    assert agent.jobs_wanted(5.0) == HELD_MAX
    for number in range(HELD_MAX - 2):
        agent.attempts.add(HeldAttempt(JobId(f"case/{number}"), 1, Resources()))
    assert agent.jobs_wanted(5.0) == 2
