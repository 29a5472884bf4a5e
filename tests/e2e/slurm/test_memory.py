"""A job that takes more memory than its pilot was given on Slurm: the kernel kills the job, and the pilot goes on."""

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.sites import PilotSettings
from mendflow.formats import load
from tests.e2e.slurm.conftest import Farm

pytestmark = pytest.mark.slurm

GIVEN_BYTES = 400 << 20
HOG = """
name: hog
jobs:
  hog:
    run: python3 -c 'held = bytearray(900 << 20); print(len(held))'
"""


def test_a_job_that_the_kernel_kills_for_its_memory_is_told_so_and_its_pilot_lives_on(
    bounded_farm: Farm,
) -> None:  # PJ-8
    farm = bounded_farm
    farm.put(max_pilots=1, pilots=PilotSettings(memory_bytes=GIVEN_BYTES, idle_exit_ms=30_000))
    path = farm.folder / "hog.yaml"
    path.write_text(HOG)
    farm.client.deploy(load(path))
    case = farm.client.start("hog", {}).id

    def faults() -> list[Fault]:
        return [attempt.fault for job in farm.jobs(case) for attempt in job.history if attempt.fault is not None]

    farm.until(faults, "the kernel to kill it")
    for fault in faults():
        assert fault.category is Category.MEMORY and "memory" in fault.message, fault
    farm.client.cancel(case)
    (pilot,) = farm.pilots()
    after = farm.start(1, seconds=0.1)
    farm.until_over(after)
    assert [job.id for job in farm.pilots()] == [pilot.id], "the pilot was killed too"
