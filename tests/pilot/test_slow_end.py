"""What a slot does after its job has ended may outlast the lease: nothing is left that the lease could stop."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

SLOT = """
import socket, sys, time
from pathlib import Path
import msgspec
from mendflow.core.model.jobs import Limits
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot import shell
from mendflow.pilot.slot.lease import boot_ms
from mendflow.pilot.slot.messages import SlotWork
from mendflow.pilot.slot.process import Slot
from mendflow.pilot.slot.processes import become_reaper
from mendflow.pilot.slot.settings import SlotSettings

def slow(self, *given, done=shell.ShellRun.done):
    while not slot._lease.is_over(boot_ms() - 600):
        time.sleep(0.05)  # a folder of very many files, on a slow disk
    return done(self, *given)

shell.ShellRun.done = slow
become_reaper()
folder = WorkFolder(Path(sys.argv[1]))
folder.make()
listener = socket.socket()
listener.listen()
slot = Slot(folder, 0, listener, SlotSettings())
slot._lease.renew(sent_at=boot_ms(), lease_ms=4_500)

def told(done):
    print(msgspec.msgpack.decode(done.outcome)["exit_code"])
    slot._stop()

slot._runner._ended = told
slot._runner.queue.append(
    SlotWork("c/1", 1, "c", "a", "true", msgspec.Raw(b""), "", "", {}, {}, False, 0, 0, Limits())
)
slot.serve()
"""


@pytest.mark.full
def test_a_job_that_ended_in_time_has_its_result_although_the_look_at_it_outlasts_the_lease(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SLOT, str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (ran.returncode, ran.stdout) == (0, "0\n"), ran.stderr
