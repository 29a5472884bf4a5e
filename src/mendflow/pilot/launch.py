"""Starts and stops a pilot as a local process."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mendflow.pilot.own_secrets import take_secret
from mendflow.pilot.standby import STANDBY

STOP_PILOT_S = 15


class LocalPilot:
    """A pilot process that this process started."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log
        self._asked = False

    def ask_to_leave(self) -> None:
        """Ask it to leave: the first signal lets jobs end within their grace period, the second does not wait. The two
        are different signals, because two pending signals of one kind are delivered as one."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT if self._asked else signal.SIGTERM)
            self._asked = True

    async def stop(self, patience_s: float) -> None:
        """Ask it to end its jobs and leave; kill it if it does not."""
        self.ask_to_leave()
        ended = asyncio.ensure_future(asyncio.to_thread(self.process.wait))  # with a timeout it would poll
        if not (await asyncio.wait([ended], timeout=patience_s))[0]:
            self.process.kill()
        await ended


def start_pilot(
    url: str,
    *,
    work: Path,
    slots: int,
    token: str = "",
    site: str = "",
    server_file: Path | None = None,
    extra: Sequence[str] = (),
) -> LocalPilot:
    """Start a pilot as a separate process. The token is passed in the environment, so that it is in no process list. If
    the server is killed, the pilot finds the next one through `server_file`."""
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = work / "pilot.log"
    options = ["--server", url, "--work", str(work), "--jobs", str(slots)]
    options += [*(["--site", site] if site else []), *extra]
    options += ["--server-file", str(server_file.absolute())] if server_file is not None else []
    take_secret("MENDFLOW_TOKEN")  # the pilot's jobs are below this process
    more = {"MENDFLOW_TOKEN": token} if token else {}
    process = STANDBY.take(options, more, log)
    if process is None:
        with log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mendflow.pilot", *options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **more},
                start_new_session=True,
            )
    return LocalPilot(process, log)
