"""The commands of each batch system: how to list and cancel jobs, and what the answers mean.

Everything uses names. If a batch system cancels by id only, the ids are looked up by name just before."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from mendflow.batch.commands import output_of
from mendflow.batch.contract import names_of
from mendflow.core.model.sites import BatchJobStatus, BatchSystemUnavailable, Site
from mendflow.lazy import lazy_pattern


class QueueCommands(Protocol):
    """The commands of one kind of batch system."""

    async def list_jobs(self, site: Site) -> dict[str, BatchJobStatus]:
        """What it has under the names of this site. Raises BatchSystemUnavailable."""
        ...

    async def cancel_jobs(self, site: Site, names: Sequence[str]) -> None: ...


def select_own(site: Site, rows: Sequence[tuple[str, BatchJobStatus]]) -> dict[str, BatchJobStatus]:
    """Those of this site. Of several with one name, the one furthest from its end counts: another may be left from an
    earlier try."""
    found: dict[str, BatchJobStatus] = {}
    for name, each in rows:
        known = found.get(name)
        if name.startswith(names_of(site)) and (known is None or _ORDER[each.state] > _ORDER[known.state]):
            found[name] = each
    return found


_ORDER = {"ended": 0, "queued": 1, "running": 2}


def _state(word: str, states: Mapping[str, str], native: str, why: str = "") -> BatchJobStatus:
    match next((state for state, words in states.items() if word in words.split()), "ended"):
        case "queued":
            return BatchJobStatus("queued", native, why)
        case "running":
            return BatchJobStatus("running", native, why)
        case _:
            return BatchJobStatus("ended", native, why)


def _cells(text: str, count: int, command: str) -> list[list[str]]:
    rows = [line.strip().split("|") for line in text.splitlines() if line.strip()]
    if bad := [row for row in rows if len(row) < count]:
        raise BatchSystemUnavailable(f"the answer of {command} cannot be parsed: {'|'.join(bad[0])[:200]}")
    return rows


_OURS = f"--user={os.geteuid()}"
"""By uid: the user name in the environment may be another's, and then all our jobs would be missing."""


class Slurm:
    """A pilot that was requeued, or is ending, still exists: two of one name may even run at a time."""

    STATES = {
        "queued": "PENDING CONFIGURING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT",
        "running": "RUNNING COMPLETING SUSPENDED STOPPED SIGNALING STAGE_OUT RESIZING",
    }

    async def list_jobs(self, site: Site) -> dict[str, BatchJobStatus]:
        words = ["squeue", "--noheader", "--states=all", _OURS, "--format=%j|%i|%T|%r"]
        rows = _cells(await output_of(site, words), 4, "squeue")
        return select_own(site, [(name, self._found(state, native, why)) for name, native, state, why, *_ in rows])

    def _found(self, state: str, native: str, why: str) -> BatchJobStatus:
        text = state.lower().replace("_", " ")
        return _state(state, self.STATES, native, f"{text} ({why})" if why not in ("None", "") else text)

    async def cancel_jobs(self, site: Site, names: Sequence[str]) -> None:
        for name in names:
            await output_of(site, ["scancel", "--quiet", _OURS, f"--name={name}"])


class Lsf:
    STATES = {"queued": "PEND PROV PSUSP WAIT", "running": "RUN USUSP SSUSP UNKWN ZOMBI"}

    async def list_jobs(self, site: Site) -> dict[str, BatchJobStatus]:
        words = ["bjobs", "-a", "-noheader", "-o", "job_name jobid stat exit_reason delimiter='|'"]
        text = await output_of(site, words, well={255: "No job found", 1: "No job found"})
        rows = _cells("" if "No job found" in text else text, 4, "bjobs")
        return select_own(
            site,
            [(name, _state(state, self.STATES, native, _reason_text(why))) for name, native, state, why, *_ in rows],
        )

    async def cancel_jobs(self, site: Site, names: Sequence[str]) -> None:
        for name in names:
            await output_of(site, ["bkill", "-J", name], well={255: "No match", 1: "No match"})


def _reason_text(why: str) -> str:
    return "" if why.strip() == "-" else why.strip()


class _PbsJob(msgspec.Struct):
    Job_Name: str
    job_state: str
    comment: str = ""

    @property
    def name(self) -> str:
        """Without the quotes that PSI/J adds, which not every PBS interprets."""
        return self.Job_Name.strip(' ="')


class _PbsJobs(msgspec.Struct):
    Jobs: dict[str, _PbsJob] = {}


class Pbs:
    STATES = {"queued": "Q H W T M", "running": "R E B S U"}

    async def list_jobs(self, site: Site) -> dict[str, BatchJobStatus]:
        jobs = await self._jobs(site)
        rows = [(each.name, _state(each.job_state, self.STATES, native, each.comment)) for native, each in jobs.items()]
        return select_own(site, rows)

    async def cancel_jobs(self, site: Site, names: Sequence[str]) -> None:
        known, wanted = await self._jobs(site), set(names)
        numbers = [
            native
            for native, each in known.items()
            if each.name in wanted and _state(each.job_state, self.STATES, native).state != "ended"
        ]
        if numbers:
            await output_of(site, ["qdel", *numbers], well={35: "finished", 153: "Unknown Job"})

    async def _jobs(self, site: Site) -> dict[str, _PbsJob]:
        text = await output_of(site, ["qstat", "-x", "-f", "-F", "json"])
        try:
            return msgspec.json.decode(text, type=_PbsJobs).Jobs if text.strip() else {}
        except msgspec.DecodeError as error:
            raise BatchSystemUnavailable(f"the answer of qstat cannot be parsed: {error}") from error


QUEUES: dict[str, QueueCommands] = {"slurm": Slurm(), "lsf": Lsf(), "pbs": Pbs()}

UNCERTAIN = lazy_pattern(
    r"timed? ?out|unable to contact|unable to send message|communicat|connect|try again|temporar|not respond",
    re.IGNORECASE,
)
"""Messages of a batch system that could not be reached: it may have accepted the submission all the same."""
