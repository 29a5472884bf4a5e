"""Grid Engine (Son of Grid Engine, Open, Univa, Altair), through its own commands. Everything uses the jobs' names."""

import os
from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from mendflow.batch.command_submission import submit_by_command, submit_in_order
from mendflow.batch.commands import CommandResult, environment_for, output_of
from mendflow.batch.contract import Launch
from mendflow.batch.queue_commands import select_own
from mendflow.core.model.sites import BatchJobStatus, BatchSystemUnavailable, Site, SubmitResult
from mendflow.core.xml import BadXml, ParsedElement, parse

PARALLEL: Final = "smp"
"""The usual name of the parallel environment for the processors of one machine."""


class GridEngineBatchSystem:
    async def submit(self, site: Site, launches: Sequence[Launch]) -> dict[str, SubmitResult]:
        return await submit_in_order(launches, partial(self._submit, site))

    async def _submit(self, site: Site, launch: Launch) -> SubmitResult:
        words = ["qsub", *options(site, launch), "/bin/sh", str(launch.script)]
        return await submit_by_command(site, words, native_id=_native_id, reason=_reason)

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        text = await output_of(site, ["qstat", "-xml", "-s", "prsz", "-u", "*"])
        try:
            root = parse(text, "the answer of qstat")
        except BadXml as error:
            raise BatchSystemUnavailable(f"the answer of qstat cannot be parsed: {error}") from error
        return select_own(site, [_found(each) for each in root.iter("job_list")])

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        for name in names:
            await output_of(site, ["qdel", name], well={1: "does not exist"})


def options(site: Site, launch: Launch) -> list[str]:
    """The options of qsub for a pilot. Its script is run where it is, and not from a copy; it is not started again by
    itself, and gets little of our environment. A value that is empty leaves an option of ours out. Ours have one word
    each, such as a folder with a blank in its name, except `pe`; those that only the site has may have several."""
    batch, pilot = site.batch, site.pilots
    passed = ",".join(["PATH", *(name for name in environment_for(site) if name in batch.environment)])
    words = {
        "N": launch.name,
        "wd": str(launch.folder),
        "o": os.devnull,
        "j": "y",
        "b": "y",
        "shell": "n",
        "r": "n",
        "v": passed,
        "q": batch.queue,
        "ar": batch.reservation,
        "A": batch.account,
        "pe": f"{PARALLEL} {pilot.cpus}" if pilot.cpus > 1 else "",
        "l": ",".join(_needs(site)),
    }
    several = {"pe", *(batch.options.keys() - words.keys())}
    words |= {name: f"{words['l']},{text}".strip(",") if name == "l" else text for name, text in batch.options.items()}
    given = {name: text.split() if name in several else [text] for name, text in words.items() if text}
    return ["-terse", *(part for name, parts in given.items() for part in (f"-{name}", *parts))]


def _needs(site: Site) -> list[str]:
    """What is requested by names that every Grid Engine has. Of disks and gpus they have none."""
    needs = [f"h_rt={site.batch.wall_ms // 1000}"] if site.batch.wall_ms else []
    return needs + ([f"mem_free={site.pilots.memory_bytes}"] if site.pilots.memory_bytes else [])


def _found(job: ParsedElement) -> tuple[str, BatchJobStatus]:
    """Letters of a state: q waits, h is held, E had an error, d is being deleted, z has ended; all others run."""
    name, native, state = (job.findtext(part) or "" for part in ("JB_name", "JB_job_number", "state"))
    if "z" in state:
        return name, BatchJobStatus("ended", native)
    if "q" in state:
        failed = (
            f"Grid Engine could not start it (state {state}): qstat -j {native} says why, qmod -cj {native} clears it"
        )
        return name, BatchJobStatus("queued", native, failed if "E" in state else f"state {state}")
    return name, BatchJobStatus("running", native, f"state {state}")


def _native_id(printed: str) -> str:
    lines = printed.strip().splitlines()
    return lines[-1] if lines else ""


def _reason(result: CommandResult) -> str:
    """The line that says why; the last one says only that qsub ends."""
    text = result.err or result.out
    lines = [line.strip() for line in text.splitlines() if line.strip() and line.strip() != "Exiting."]
    return lines[-1][:500] if lines else "it said nothing"
