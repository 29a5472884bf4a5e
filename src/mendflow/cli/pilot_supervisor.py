"""Starts, restarts and stops the pilot beside a local server.

A server that was killed leaves its pilot running, with its jobs. The next server in the same folder starts no other
while that one lives: it moves over by itself, and its jobs count."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mendflow.pilot.agent.orphan import OrphanPilot
from mendflow.pilot.bounds import USUAL_BOUNDS, AttemptBounds
from mendflow.pilot.launch import STOP_PILOT_S, LocalPilot, start_pilot
from mendflow.wiring import RunningServer

ORPHAN_MS = 60_000
"""A pilot whose server was killed ends after this long."""

ORPHAN_REJOIN_S = 5.0
"""A leftover pilot that does not move over within this time is replaced."""

GRACE_S = 5
PILOT_STARTS_MAX = 4
LOOK_EVERY_S = 0.5


class PilotSupervisor:
    """`on_failure` is called with a sentence when no pilot can live here. `grace_s` is how long what runs may go on
    when it is stopped, `words` are further options of the pilot. `work` is its folder, if that cannot be in
    the data folder: where other accounts pass through."""

    def __init__(
        self,
        server: RunningServer,
        data: Path,
        *,
        slots: int,
        keep: bool,
        on_failure: Callable[[str], None],
        grace_s: int = GRACE_S,
        bounds: AttemptBounds = USUAL_BOUNDS,
        words: Sequence[str] = (),
        work: Path | None = None,
    ) -> None:
        self._server = server
        self._data = data
        self._slots = slots or os.cpu_count() or 1
        self._keep_folders = keep
        self._on_failure = on_failure
        self._grace_s = grace_s
        self._bounds = bounds
        self._words = words
        self._work = work or data / "work"
        if work is not None:
            OrphanPilot(data / "work").kill()  # of a server that ran jobs as itself
        self._orphan_unkillable = False  # the holder of the work folder neither moved over nor could be killed
        self._pilot = self._start_pilot()

    def _start_pilot(self) -> LocalPilot | OrphanPilot:
        orphan = OrphanPilot(self._work)
        if orphan.alive and not self._orphan_unkillable:
            return orphan
        return start_pilot(
            self._server.url,
            work=self._work,
            slots=self._slots,
            token=self._server.pilot_token,
            server_file=self._data / "server.json",
            extra=[
                *("--away-exit-ms", str(ORPHAN_MS), "--grace-ms", str(self._grace_s * 1000)),
                *(["--keep"] if self._keep_folders else []),
                *self._bounds.options,
                *self._words,
                *self._server.pilot_tls.words,
            ],
        )

    async def supervise(self) -> None:
        """Keep a pilot running until cancelled."""
        for _ in range(PILOT_STARTS_MAX):
            if isinstance(self._pilot, OrphanPilot):
                await self._await_replacement(self._pilot)
            else:
                while self._pilot.process.poll() is None:
                    await asyncio.sleep(LOOK_EVERY_S)
                await asyncio.sleep(LOOK_EVERY_S)
            self._pilot = self._start_pilot()
        self._on_failure(f"the pilot ends as soon as it is started: {_last_log_line(self._pilot.log)}")

    async def _await_replacement(self, orphan: OrphanPilot) -> None:
        """Wait until a leftover pilot has ended, by itself or because it was killed."""
        give_up_at = time.monotonic() + ORPHAN_REJOIN_S
        came = False
        while orphan.alive and not self._orphan_unkillable:
            await asyncio.sleep(LOOK_EVERY_S)
            came = came or any(pilot.state == "active" for pilot in await self._server.domain.pilots())
            if not came and time.monotonic() > give_up_at:
                orphan.kill()
                await asyncio.sleep(LOOK_EVERY_S)
                self._orphan_unkillable = orphan.alive

    async def stop(self) -> None:
        await self._pilot.stop(self._grace_s + STOP_PILOT_S)

    def stop_now(self) -> None:
        """Stop without waiting for running jobs."""
        self._pilot.ask_to_leave()


def _last_log_line(log: Path) -> str:
    """The last line that the pilot wrote."""
    with log.open("rb") as source:
        source.seek(max(log.stat().st_size - 4096, 0))
        lines = source.read().decode(errors="replace").strip().splitlines()
    return f"{lines[-1] if lines else 'it said nothing'} (more in {log})"
