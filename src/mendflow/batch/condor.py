"""HTCondor, through its own commands. Each pilot has its name in a custom attribute, and all queries use it."""

import os
from collections.abc import Collection, Sequence

import msgspec

from mendflow.batch.commands import environment_for, output_of, run_command
from mendflow.batch.contract import Launch, names_of
from mendflow.batch.queue_commands import UNCERTAIN, select_own
from mendflow.core.model.sites import (
    BatchJobStatus,
    BatchSystemUnavailable,
    Site,
    SubmitAccepted,
    SubmitRejected,
    SubmitResult,
    SubmitSkipped,
    SubmitUncertain,
)

NAME = "MendflowName"
QUEUED, RUNNING = frozenset({1, 5}), frozenset({2, 6, 7})
"""The numbers of states: 1 idle, 5 held; 2 running, 6 transferring output, 7 suspended."""


class _Row(msgspec.Struct):
    MendflowName: str
    ClusterId: int
    JobStatus: int
    HoldReason: str = ""

    def found(self) -> BatchJobStatus:
        native, why = str(self.ClusterId), self.HoldReason
        if self.JobStatus in QUEUED:
            return BatchJobStatus("queued", native, why)
        return (
            BatchJobStatus("running", native, why)
            if self.JobStatus in RUNNING
            else BatchJobStatus("ended", native, why)
        )


class CondorBatchSystem:
    async def submit(self, site: Site, launches: Sequence[Launch]) -> dict[str, SubmitResult]:
        answers: dict[str, SubmitResult] = {}
        for launch in launches:
            stopped = any(not isinstance(answer, SubmitAccepted) for answer in answers.values())
            answers[launch.name] = SubmitSkipped() if stopped else await self._submit(site, launch)
        return answers

    async def _submit(self, site: Site, launch: Launch) -> SubmitResult:
        try:
            result = await run_command(site, ["condor_submit", "-terse", "-"], given=description(site, launch).encode())
        except BatchSystemUnavailable as error:
            return SubmitRejected(str(error))
        if result.code is None:
            return SubmitUncertain("condor_submit did not answer in time")
        if result.code != 0:
            return (
                SubmitUncertain(result.last_line) if UNCERTAIN.search(result.err) else SubmitRejected(result.last_line)
            )
        return SubmitAccepted(result.out.partition(".")[0].strip() or "?")

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        ours = f'regexp("^{names_of(site)}", {NAME})'
        words = ["condor_q", "-json", "-attributes", f"{NAME},ClusterId,JobStatus,HoldReason", "-constraint", ours]
        text = await output_of(site, words)
        try:
            rows = msgspec.json.decode(text, type=list[_Row]) if text.strip() else []
        except msgspec.DecodeError as error:
            raise BatchSystemUnavailable(f"the answer of condor_q cannot be parsed: {error}") from error
        return select_own(site, [(row.MendflowName, row.found()) for row in rows])

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        for name in names:
            words = ["condor_rm", "-constraint", f'{NAME} == "{name}"']
            await output_of(site, words, well={1: "find"})  # "Couldn't find/remove all jobs", if there are none


def description(site: Site, launch: Launch) -> str:
    """The submit file of a pilot."""
    batch, pilot = site.batch, site.pilots
    handed_on = {name: text for name, text in environment_for(site).items() if name in batch.environment}
    lines = {
        "universe": "vanilla",
        "executable": "/bin/sh",
        "transfer_executable": "False",
        "arguments": f"\"'{launch.script}'\"",
        "initialdir": str(launch.folder),
        "log": str(launch.folder / "condor.log"),
        "batch_name": launch.name,
        f"+{NAME}": f'"{launch.name}"',
        "request_cpus": str(pilot.cpus),
        "request_memory": f"{-(-pilot.memory_bytes // (1 << 20))}" if pilot.memory_bytes else "",
        "request_disk": f"{-(-pilot.disk_bytes // 1024)}" if pilot.disk_bytes else "",
        "request_gpus": str(pilot.gpus) if pilot.gpus else "",
        "accounting_group": batch.account,
        "allowed_job_duration": str(batch.wall_ms // 1000) if batch.wall_ms else "",
        "environment": _environment({"PATH": os.environ.get("PATH", os.defpath), **handed_on}),
        **batch.options,
    }
    return "".join(f"{name} = {text}\n" for name, text in lines.items() if text) + "queue 1\n"


def _environment(values: dict[str, str]) -> str:
    """In HTCondor's syntax: pairs in single quotes, all in double ones, each quote doubled."""
    pairs = " ".join(f"{name}='{text.replace(chr(39), chr(39) * 2)}'" for name, text in values.items())
    return '"' + pairs.replace('"', '""') + '"'
