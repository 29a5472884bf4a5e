"""An agent that is to start jobs otherwise than the one before uses none of its slots for new jobs."""

import subprocess
import sys

from mendflow.pilot.agent.slot_link import starts_jobs_as
from mendflow.pilot.isolation.options import Isolation
from mendflow.pilot.isolation.variables import PassedVariables
from mendflow.pilot.slot.settings import SlotSettings

PLAIN = SlotSettings()
WAITS = "import sys; sys.stdin.read()"


def told(*words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", WAITS, *words], stdin=subprocess.PIPE)


def test_what_a_slot_was_told_decides_whether_it_is_used() -> None:  # SE-2
    with told("7", '{"log_bytes_max":5}') as plain, told("--spare") as spare:
        try:
            assert starts_jobs_as(plain.pid, PLAIN) and starts_jobs_as(spare.pid, PLAIN)
            for other in (
                SlotSettings(isolation=Isolation(sandbox="bubblewrap")),
                SlotSettings(isolation=Isolation(jobs_as="nobody")),
            ):
                assert not starts_jobs_as(plain.pid, other) and not starts_jobs_as(spare.pid, other)
            assert not starts_jobs_as(plain.pid, SlotSettings(variables=PassedVariables(("MORE",))))
        finally:
            plain.kill()
            spare.kill()
