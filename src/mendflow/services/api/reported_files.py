"""The files that a pilot reports of its jobs, if its token names projects.

Whoever reads a case may read what its jobs have left, and the next job of the case gets it. So the report of a pilot
could open any file of the store whose digest somebody has learned. A pilot that works for some projects is believed
only what it has sent itself, and what has come to the case by another way. One whose token names no project works for
all of them, and may be given any of their files anyway: it is believed without a look, at no cost."""

import asyncio
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Job, Outcome
from mendflow.core.model.sync import AttemptReport, SyncRequest
from mendflow.services.api.file_readers import FileReaders
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.domains.file_origins import FOREIGN_FILE, made_by_job
from mendflow.services.domains.work_files import files_given_by_outcome, may_give_files
from mendflow.services.runtime.server import Server

_CHARS_TOLD: Final = 12
_decode_job: Final = msgspec.json.Decoder(Job).decode


class ReportedFiles:
    def __init__(self, server: Server, readers: FileReaders) -> None:
        self._server = server
        self._readers = readers

    async def checked(self, request: SyncRequest, who: str) -> SyncRequest:
        """The exchange in which each job has failed that has left others' files, as its pilot says."""
        if not request.projects or not any(may_give_files(each.outcome) for each in request.reports):
            return request
        reports = await asyncio.gather(*(self._checked(each, who) for each in request.reports))
        return replace(request, reports=reports)

    async def _checked(self, report: AttemptReport, who: str) -> AttemptReport:
        if not may_give_files(report.outcome):
            return report
        _, stored = files_given_by_outcome(made_by_job(report.outcome))
        unsent = {each.sha256 for each in stored if not await self._readers.has_given(who, each.sha256)}
        if not unsent or not (foreign := await self._foreign(report.job, unsent)):
            return report
        return replace(report, outcome=_refused(report.outcome, min(foreign)))

    async def _foreign(self, id: JobId, digests: set[str]) -> set[str]:
        """Those that have not come to the case. To one that has no such job, nothing has."""
        job = self._server.runtime.meta.jobs.get(id)
        if job is None and (found := await self._server.store.get(JOB_KIND, id)) is not None:
            job = _decode_job(found.body)
        return await self._server.runtime.file_origins.foreign(job.case, digests) if job is not None else digests


def _refused(outcome: Outcome, sha256: str) -> Outcome:
    fault = Fault(
        name=FOREIGN_FILE,
        category=Category.OUTPUT,
        message=f"its pilot says that it left the file {sha256[:_CHARS_TOLD]}..., which that pilot has not sent",
        stage=AttemptStage.STAGE_OUT,
        log_tail=outcome.log_tail,
    )
    return replace(outcome, fault=fault, outputs=None, files={}, file_lists={}, contents=(), log=None)
