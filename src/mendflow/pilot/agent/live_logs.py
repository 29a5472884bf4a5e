"""Logs of attempts that run, read while they grow: the server asks for a part, and gets it with the next request.

Nothing is sent that nobody reads, so a job that prints much costs its server nothing; and a part is read from the file
when it is asked for, so neither side ever holds more of a log than that."""

import asyncio
from collections import deque
from collections.abc import Callable

from mendflow.core.model.sync import LOG_PART_BYTES, LogPart, LogRequest
from mendflow.pilot.agent.attempts import Attempts, HeldAttempt
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.logs import read_log, read_masked

REQUEST_BYTES = 4 * LOG_PART_BYTES
"""How much of logs one request to the server carries; the rest goes with the next."""


class LiveLogs:
    """`on_part` is called when there is a part to be sent."""

    def __init__(self, work_folder: WorkFolder, attempts: Attempts, on_part: Callable[[], None]) -> None:
        self._work_folder = work_folder
        self._attempts = attempts
        self._on_part = on_part
        self._parts: deque[LogPart] = deque()

    @property
    def has_parts(self) -> bool:
        return bool(self._parts)

    def take_parts(self) -> list[LogPart]:
        taken: list[LogPart] = []
        while self._parts and sum(len(part.data) for part in taken) + len(self._parts[0].data) <= REQUEST_BYTES:
            taken.append(self._parts.popleft())
        return taken

    async def read(self, wanted: LogRequest) -> None:
        held = self._attempts.all.get((wanted.job, wanted.fence))
        part = LogPart(wanted.job, wanted.fence, wanted.offset)
        if held is not None:
            part = await asyncio.to_thread(self._read, held, wanted)
        self._parts.append(part)
        self._on_part()

    def _read(self, held: HeldAttempt, wanted: LogRequest) -> LogPart:
        for path in self._paths(held):
            try:
                if held.work is not None and held.work.secrets:
                    mask = held.work.secrets.mask()
                    offset, data, size = read_masked(path, wanted.offset, LOG_PART_BYTES, mask)
                else:
                    offset, data, size = read_log(path, wanted.offset, LOG_PART_BYTES)
            except OSError:
                continue  # it has printed nothing yet, or is over
            return LogPart(wanted.job, wanted.fence, wanted.offset, offset, data, size)
        return LogPart(wanted.job, wanted.fence, wanted.offset, wanted.offset, b"", wanted.offset)

    def _paths(self, held: HeldAttempt) -> list[str]:
        """Where its log may be. A call prints to its slot's file while it runs."""
        paths = [f"{self._work_folder.attempt(*held.key)}.log"]
        is_call = held.work is None or not held.work.command
        if is_call and held.link is not None and held.state in ("running", "suspended"):
            paths.append(f"{self._work_folder.slots}/{held.link.number}.log")
        return paths
