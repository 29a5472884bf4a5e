"""Pilots as processes of this machine, as a batch system of its own.

A process is identified by the folder of its name: its pid is stored there, and counts only while that process runs that
folder's script."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from mendflow.batch.commands import environment_for
from mendflow.batch.contract import Launch, names_of
from mendflow.core.model.sites import BatchJobStatus, Site, SubmitAccepted, SubmitRejected, SubmitResult, SubmitSkipped

Folder = Callable[[Site], Path]
"""Where the folders of a site's pilots are."""


class LocalBatchSystem:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []

    async def submit(self, site: Site, launches: Sequence[Launch]) -> dict[str, SubmitResult]:
        answers: dict[str, SubmitResult] = {}
        for launch in launches:
            if any(isinstance(answer, SubmitRejected) for answer in answers.values()):
                answers[launch.name] = SubmitSkipped()
                continue
            try:
                answers[launch.name] = SubmitAccepted(str(await asyncio.to_thread(self._start, site, launch)))
            except OSError as error:
                answers[launch.name] = SubmitRejected(f"no process can be started: {error.strerror}")
        return answers

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        self._children = [child for child in self._children if child.poll() is None]
        return await asyncio.to_thread(self._find, site)

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        for name in names:
            launch = Launch(name, self._folder(site) / name)
            if (pid := _living(launch)) is not None:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGTERM)

    def _start(self, site: Site, launch: Launch) -> int:
        child = subprocess.Popen(
            ["/bin/sh", str(launch.script)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=launch.folder,
            env=environment_for(site),
            start_new_session=True,
        )
        self._children.append(child)
        draft = launch.folder / "process.new"
        draft.write_text(str(child.pid))
        draft.replace(_number(launch))
        return child.pid

    def _find(self, site: Site) -> dict[str, BatchJobStatus]:
        found = {}
        for number in self._folder(site).glob(f"{names_of(site)}*/process"):
            launch = Launch(number.parent.name, number.parent)
            pid = _living(launch)
            state = BatchJobStatus("running", str(pid)) if pid is not None else BatchJobStatus("ended")
            found[launch.name] = state
        return found


def _number(launch: Launch) -> Path:
    return launch.folder / "process"


def _living(launch: Launch) -> int | None:
    """The process of this pilot, if it lives. A pid that was reused does not count. A process that just begins has a
    program, and for a moment no words; one of the kernel, which could have its pid later, has neither."""
    try:
        pid = int(_number(launch).read_text())
        ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        begins = words == [b""] and bool(os.readlink(f"/proc/{pid}/exe"))
    except (OSError, ValueError):
        return None
    return pid if not ended and (begins or str(launch.script).encode() in words) else None
