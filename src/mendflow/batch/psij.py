"""Slurm, LSF and PBS, through PSI/J.

PSI/J writes the submit script of each batch system and submits it. That happens in a separate process, for two reasons:
a hang is ended by a timeout, and nothing of it stays in the server. Jobs are then queried by name (queue_commands.py),
because PSI/J knows only job ids, and those are reused."""

import sys
from collections.abc import Collection, Mapping, Sequence

import msgspec

from mendflow.batch.command_submission import refused
from mendflow.batch.commands import run_command
from mendflow.batch.contract import Launch
from mendflow.batch.queue_commands import QUEUES
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

NO_PSIJ = "PSI/J is not installed where the server runs: pip install 'mendflow[batch]'"
START_MS = 20_000
"""How long the process may take in addition to the batch system's commands."""


class SubmissionRequest(msgspec.Struct, frozen=True):
    """The input of the process: everything that PSI/J needs to know of the submissions."""

    site: Site
    folder: str
    scripts: dict[str, str]  # by the names of the pilots


class SubmissionResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Its answer for each, one line, as soon as it is known."""

    name: str
    native: str = ""
    why: str = ""


class PsijBatchSystem:
    async def submit(self, site: Site, launches: Sequence[Launch]) -> dict[str, SubmitResult]:
        folder = launches[0].folder.parent / "psij"
        wish = SubmissionRequest(site, str(folder), {each.name: str(each.script) for each in launches})
        words = [sys.executable, "-P", "-m", "mendflow.batch.psij_submission"]
        timeout_ms = START_MS + site.batch.timeout_ms
        try:
            result = await run_command(site, words, given=msgspec.json.encode(wish), timeout_ms=timeout_ms)
        except BatchSystemUnavailable as error:
            return {
                each.name: SubmitSkipped() if place else SubmitRejected(str(error))
                for place, each in enumerate(launches)
            }
        results = {each.name: each for each in _results(result.out)}
        why = "it did not answer in time" if result.code is None else result.last_line
        if "No module named 'psij" in why:
            why = NO_PSIJ
        return _answers([each.name for each in launches], results, why, ended=result.code is not None)

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        return await QUEUES[site.batch.kind].list_jobs(site)

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        await QUEUES[site.batch.kind].cancel_jobs(site, list(names))


def _results(text: str) -> list[SubmissionResult]:
    found = []
    for line in text.splitlines():
        try:
            found.append(msgspec.json.decode(line, type=SubmissionResult))
        except msgspec.DecodeError:
            continue  # something that PSI/J printed, or an incomplete line
    return found


def _answers(
    names: Sequence[str], results: Mapping[str, SubmissionResult], why: str, *, ended: bool
) -> dict[str, SubmitResult]:
    """The first without an answer may have been submitted; those after it were not."""
    answers: dict[str, SubmitResult] = {}
    stopped = False
    for name in names:
        each = results.get(name)
        if each is not None and each.native:
            answers[name] = SubmitAccepted(each.native)
        elif stopped:
            answers[name] = SubmitSkipped()
        elif each is not None:
            answers[name] = refused(each.why)
        else:
            answers[name] = SubmitRejected(why) if ended and not results else SubmitUncertain(why)
        stopped = stopped or not isinstance(answers[name], SubmitAccepted)
    return answers
