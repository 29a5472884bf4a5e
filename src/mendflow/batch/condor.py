"""HTCondor, through its own commands. Each pilot has its name in a custom attribute, and all queries use it."""

import os
from collections.abc import Collection, Sequence
from functools import partial

import msgspec

from mendflow.batch.command_submission import submit_by_command, submit_in_order
from mendflow.batch.commands import environment_for, output_of
from mendflow.batch.contract import Launch, names_of
from mendflow.batch.queue_commands import select_own
from mendflow.core.model.sites import BatchJobStatus, BatchSystemUnavailable, Site, SubmitResult

NAME = "MendflowName"
QUEUED, RUNNING = frozenset({1, 5}), frozenset({2, 6, 7})
"""The numbers of states: 1 idle, 5 held; 2 running, 6 transferring output, 7 suspended."""


class _Row(msgspec.Struct):
    MendflowName: str
    ClusterId: int
    JobStatus: int
    HoldReason: str = ""

    def status(self) -> BatchJobStatus:
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
        return await submit_in_order(launches, partial(self._submit, site))

    async def _submit(self, site: Site, launch: Launch) -> SubmitResult:
        return await submit_by_command(
            site,
            ["condor_submit", "-terse", "-"],
            given=description(site, launch).encode(),
            native_id=lambda printed: printed.partition(".")[0].strip(),
            reason=lambda result: result.last_line,
        )

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        ours = f'regexp("^{names_of(site)}", {NAME})'
        words = ["condor_q", "-json", "-attributes", f"{NAME},ClusterId,JobStatus,HoldReason", "-constraint", ours]
        text = await output_of(site, words)
        try:
            rows = msgspec.json.decode(text, type=list[_Row]) if text.strip() else []
        except msgspec.DecodeError as error:
            raise BatchSystemUnavailable(f"the answer of condor_q cannot be parsed: {error}") from error
        return select_own(site, [(row.MendflowName, row.status()) for row in rows])

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
