"""All batch systems as one: whichever a site has, it is spoken to in the same way, and never for longer than it may."""

import asyncio
import socket
from collections.abc import Collection, Sequence

import msgspec

from mendflow.batch.commands import unset_in
from mendflow.batch.condor import Condor
from mendflow.batch.contract import Batch, Launch
from mendflow.batch.grounds import Grounds
from mendflow.batch.local import LocalProcesses
from mendflow.batch.psij import PsijBatch
from mendflow.core.model.sites import Answer, Found, PilotSubmission, Rejected, Site, Untried


class BatchSystems:
    def __init__(self, grounds: Grounds) -> None:
        self._grounds = grounds
        self.host = socket.gethostname()
        psij = PsijBatch()
        self._kinds: dict[str, Batch] = {
            "local": LocalProcesses(grounds.folder),
            "slurm": psij,
            "lsf": psij,
            "pbs": psij,
            "htcondor": Condor(),
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
            why = f"its `environment` takes {', '.join(unset)} from the server's, where there is no such variable"
            failed[submissions[0].name] = Rejected(why)
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
