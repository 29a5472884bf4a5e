"""Routes requests to the batch system of a site, with a timeout."""

import asyncio
import socket
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import msgspec

from mendflow.batch.commands import missing_commands, unset_variables
from mendflow.batch.contract import BatchSystem, Launch
from mendflow.batch.site_folders import SiteFolders
from mendflow.core.model.sites import (
    BatchJobStatus,
    BatchKind,
    PilotSubmission,
    Site,
    SubmitRejected,
    SubmitResult,
    SubmitSkipped,
)
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.batch import condor, gridengine, local, psij
else:
    condor = LazyModule("mendflow.batch.condor")
    gridengine = LazyModule("mendflow.batch.gridengine")
    local = LazyModule("mendflow.batch.local")
    psij = LazyModule("mendflow.batch.psij")

PSIJ_KINDS: Final = ("slurm", "lsf", "pbs")
COMMANDS: Final = {
    "local": (),
    "slurm": ("sbatch", "squeue", "scancel"),
    "lsf": ("bsub", "bjobs", "bkill"),
    "pbs": ("qsub", "qstat", "qdel"),
    "htcondor": ("condor_submit", "condor_q", "condor_rm"),
    "gridengine": ("qsub", "qstat", "qdel"),
}
"""The implementations of each kind: for submitting, listing, cancelling."""

NO_SECRETS: Final[Mapping[str, str]] = {}
NOT_SET: Final = "its `environment` takes {} from the server's, where there is no such variable"


class BatchSystemRouter:
    def __init__(self, site_folders: SiteFolders) -> None:
        self._site_folders = site_folders
        self.host = socket.gethostname()
        self._systems: dict[str, BatchSystem] = {}

    @property
    def ready(self) -> bool:
        """Whether pilots would have a server's address."""
        return self._site_folders.ready

    async def submit(
        self, site: Site, submissions: Sequence[PilotSubmission], secrets: Mapping[str, str] = NO_SECRETS
    ) -> dict[str, SubmitResult]:
        """Each gets an answer. Never raises."""
        launches: list[Launch] = []
        failed: dict[str, SubmitResult] = {}
        if submissions and (unset := unset_variables(site)):
            failed[submissions[0].name] = SubmitRejected(NOT_SET.format(", ".join(unset)))
            submissions = submissions[1:]
        for each in submissions:
            if failed:
                failed[each.name] = SubmitSkipped()
                continue
            try:
                secret = secrets.get(each.name, "")
                launches.append(await asyncio.to_thread(self._site_folders.prepare, site, each, secret))
            except OSError as error:
                folder = self._site_folders.folder(site)
                failed[each.name] = SubmitRejected(
                    f"nothing can be written to the site's folder {folder}: {error.strerror}"
                )
        answers = await self._system_of(site).submit(site, launches) if launches else {}
        return {**answers, **failed}

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        """What it has under names of this site; for ended ones with their last log line. Raises
        BatchSystemUnavailable."""
        found = await self._system_of(site).find(site)
        for name, each in found.items():
            if each.state == "ended":
                words = await asyncio.to_thread(self._site_folders.end_of_log, site, name)
                text = "; ".join(part for part in (each.why, words) if part)
                found[name] = msgspec.structs.replace(each, why=text)
        return found

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        """Raises BatchSystemUnavailable."""
        await self._system_of(site).cancel(site, names)

    def _system_of(self, site: Site) -> BatchSystem:
        """Made, and its module loaded, with the first site of its kind."""
        kind = site.batch.kind
        if kind not in self._systems:
            self._systems[kind] = self._make_system(kind)
        return self._systems[kind]

    def _make_system(self, kind: BatchKind) -> BatchSystem:
        if kind == "local":
            return local.LocalBatchSystem(self._site_folders.folder)
        if kind == "htcondor":
            return condor.CondorBatchSystem()
        if kind == "gridengine":
            return gridengine.GridEngineBatchSystem()
        assert kind in PSIJ_KINDS, kind
        return psij.PsijBatchSystem()

    async def tidy(self, site: Site, *, keep: Collection[str], left: Collection[str]) -> None:
        """Remove folders of ended pilots."""
        await asyncio.to_thread(self._site_folders.tidy, site, keep=keep, left=left)

    async def sweep(self, sites: Collection[str]) -> None:
        """Remove folders of other sites that no pilot uses any more."""
        await asyncio.to_thread(self._site_folders.sweep, sites)

    async def lacks(self, site: Site) -> list[str]:
        """What is missing on this machine for the batch system, in sentences. Other hosts are not checked."""
        if site.batch.host not in ("", self.host):
            return []
        return await asyncio.to_thread(_lacks, site)


def _lacks(site: Site) -> list[str]:
    sentences = []
    if absent := missing_commands(site, COMMANDS[site.batch.kind]):
        where = f"{site.batch.commands} or on the PATH" if site.batch.commands else "the PATH"
        sentences.append(
            f"{', '.join(absent)} of {site.batch.kind} cannot be found on {where} where the server runs: install the"
            " commands there, or say with `commands` where they are"
        )
    if site.batch.kind in PSIJ_KINDS and find_spec("psij") is None:
        sentences.append(psij.NO_PSIJ)
    if unset := unset_variables(site):
        sentences.append(NOT_SET.format(", ".join(unset)))
    return sentences
