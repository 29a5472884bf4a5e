"""All batch systems as one: whichever a site has, it is spoken to in the same way, and never for longer than it may."""

import asyncio
import socket
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from typing import Final

import msgspec

from mendflow.batch.commands import missing, unset_in
from mendflow.batch.condor import Condor
from mendflow.batch.contract import Batch, Launch
from mendflow.batch.grounds import Grounds
from mendflow.batch.local import LocalProcesses
from mendflow.batch.psij import NO_PSIJ, PsijBatch
from mendflow.core.model.sites import Answer, Found, PilotSubmission, Rejected, Site, Untried

PSIJ_KINDS: Final = ("slurm", "lsf", "pbs")
COMMANDS: Final = {
    "local": (),
    "slurm": ("sbatch", "squeue", "scancel"),
    "lsf": ("bsub", "bjobs", "bkill"),
    "pbs": ("qsub", "qstat", "qdel"),
    "htcondor": ("condor_submit", "condor_q", "condor_rm"),
}
"""What each kind is spoken to by: to submit, to ask, to take back."""

NOT_SET: Final = "its `environment` takes {} from the server's, where there is no such variable"


class BatchSystems:
    def __init__(self, grounds: Grounds) -> None:
        self._grounds = grounds
        self.host = socket.gethostname()
        psij = PsijBatch()
        self._kinds: dict[str, Batch] = {
            "local": LocalProcesses(grounds.folder),
            "htcondor": Condor(),
            **dict.fromkeys(PSIJ_KINDS, psij),
        }

    @property
    def ready(self) -> bool:
        """Whether pilots would know where to go."""
        return self._grounds.ready

    async def submit(self, site: Site, submissions: Sequence[PilotSubmission]) -> dict[str, Answer]:
        """Each gets an answer. Never raises."""
        launches: list[Launch] = []
        failed: dict[str, Answer] = {}
        if submissions and (unset := unset_in(site)):
            failed[submissions[0].name] = Rejected(NOT_SET.format(", ".join(unset)))
            submissions = submissions[1:]
        for each in submissions:
            if failed:
                failed[each.name] = Untried()
                continue
            try:
                launches.append(await asyncio.to_thread(self._grounds.prepare, site, each))
            except OSError as error:
                folder = self._grounds.folder(site)
                failed[each.name] = Rejected(f"nothing can be written to the site's folder {folder}: {error.strerror}")
        answers = await self._kinds[site.batch.kind].submit(site, launches) if launches else {}
        return {**answers, **failed}

    async def find(self, site: Site) -> dict[str, Found]:
        """What it has by names of this site. Of what has ended it tells the last words. Raises BatchAway."""
        found = await self._kinds[site.batch.kind].find(site)
        for name, each in found.items():
            if each.state == "ended":
                words = await asyncio.to_thread(self._grounds.last_words, site, name)
                told = "; ".join(part for part in (each.why, words) if part)
                found[name] = msgspec.structs.replace(each, why=told)
        return found

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        """Raises BatchAway."""
        await self._kinds[site.batch.kind].cancel(site, names)

    async def tidy(self, site: Site, *, keep: Collection[str], left: Collection[str]) -> None:
        """Remove what is left of pilots that are over."""
        await asyncio.to_thread(self._grounds.tidy, site, keep=keep, left=left)

    async def sweep(self, sites: Collection[str]) -> None:
        """Remove what is left of sites other than these, where no pilot uses it any more."""
        await asyncio.to_thread(self._grounds.sweep, sites)

    async def lacks(self, site: Site) -> list[str]:
        """What is missing where batch systems are spoken to, in sentences. Of another host nothing is known here."""
        if site.batch.host not in ("", self.host):
            return []
        return await asyncio.to_thread(_lacks, site)


def _lacks(site: Site) -> list[str]:
    sentences = []
    if absent := missing(site, COMMANDS[site.batch.kind]):
        where = f"{site.batch.commands} or on the PATH" if site.batch.commands else "the PATH"
        sentences.append(
            f"{', '.join(absent)} of {site.batch.kind} cannot be found on {where} where the server runs: install the"
            " commands there, or say with `commands` where they are"
        )
    if site.batch.kind in PSIJ_KINDS and find_spec("psij") is None:
        sentences.append(NO_PSIJ)
    if unset := unset_in(site):
        sentences.append(NOT_SET.format(", ".join(unset)))
    return sentences
