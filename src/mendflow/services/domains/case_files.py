"""Which files a case that another domain has sent may refer to: stored ones that came with it, or that its jobs have
made here; and files with logical names, as our catalogue knows them. A digest alone opens no file: whoever writes one
into an expression, or into what a job tells, gets nothing by it, neither for a job here nor in what its origin is
given."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Final

import msgspec

from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import NO_FOLDER
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job, JobSpec, Outcome
from mendflow.core.model.principals import NO_PROJECT
from mendflow.core.model.values import FileRef
from mendflow.services.base.cluster import JOB_KIND, root_of
from mendflow.services.base.hub import Hub
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.staging import Resolve
from mendflow.services.domains.spilled_values import SpilledValues
from mendflow.services.domains.work_documents import DOMAIN_PORT
from mendflow.services.domains.work_files import (
    files_in_flow,
    files_in_job,
    files_in_outcome,
    logical_files_in_flow,
    logical_files_in_job,
    logical_sources_in_job,
    once,
    spilled_in_value,
)
from mendflow.services.scheduling.facts import JobEnded
from mendflow.stores.contract import Store

FORBIDDEN_HERE: Final = "forbiddenHere"
"""The fault of work that the domain which has sent it has no right to."""

SentFiles = Callable[[str], Awaitable[Collection[str]]]
"""The digests of the files that came with a piece of work, by the key of its case."""

_decode_job: Final = msgspec.json.Decoder(Job).decode


class CaseFiles:
    """`sent` gives the files that came with a piece of work, `resolve` those with logical names, `spilled` what stored
    values refer to."""

    def __init__(
        self,
        store: Store,
        manager: FlowManager,
        hub: Hub,
        sent: SentFiles,
        resolve: Resolve,
        spilled: SpilledValues,
    ) -> None:
        self._resolve = resolve
        self._spilled = spilled
        self._store = store
        self._manager = manager
        self._sent = sent
        self._made: dict[CaseId, set[str]] = {}  # by root: what jobs have made since this server began, or read before
        hub.subscribe(JobEnded, self._job_ended)
        hub.subscribe(CaseEnded, self._case_ended)

    def _case_ended(self, fact: CaseEnded) -> None:
        self._made.pop(fact.document.id, None)

    def _job_ended(self, fact: JobEnded) -> None:
        if fact.job.outcome is not None and self.is_hosted(fact.job.case):
            self._made.setdefault(root_of(fact.job.case), set()).update(_made_by(fact.job))

    async def demand_job(self, case: CaseId, spec: JobSpec) -> None:
        """Refuse a job of such a case if it would read what the case may not. What one of our own flows names is ours
        to give; what it was called with is not."""
        value = self._given_from_outside(case)
        if value is not None:
            await self._demand_given(case, value)
            return
        project = self._project_of(case)
        await self.demand_logical(logical_files_in_job(spec), project)
        for name in logical_sources_in_job(spec):
            await self._known_as(name, project)
        await self._demand(root_of(case), (each.sha256 for each in files_in_job(spec)))
        if spec.args or spec.kwargs:
            await self._demand_inside(case, [spec.args, spec.kwargs])

    async def demand_value(self, case: CaseId, value: Any) -> None:
        """Refuse what such a case would send on."""
        if self.is_hosted(case):
            await self._demand_given(case, value)

    async def _demand_given(self, case: CaseId, value: Any) -> None:
        await self.demand_logical(logical_files_in_flow(value), self._project_of(case))
        await self._demand(root_of(case), (each.sha256 for each in files_in_flow(value)))
        await self._demand_inside(case, value)

    async def _demand_inside(self, case: CaseId, value: Any) -> None:
        """Refuse what is in stored values. They themselves may be read."""
        async for files in self._spilled.files_by_depth(spilled_in_value(value)):
            await self.demand_logical([each for each in files if each.logical], self._project_of(case))
            await self._demand(root_of(case), (each.sha256 for each in once(files)))

    def _project_of(self, case: CaseId) -> str:
        live = self._manager.live.get(case) or self._manager.live.get(root_of(case))
        return live.document.project if live is not None else NO_PROJECT

    def is_hosted(self, case: CaseId) -> bool:
        root = self._manager.live.get(root_of(case))
        return root is not None and root.document.port == DOMAIN_PORT

    async def checked(self, case: CaseId, sent: Collection[str], outcome: Outcome) -> Outcome:
        """The outcome of such a case, as its origin is told: one that refers to other files is a failure."""
        try:
            await self._demand(case, (each.sha256 for each in files_in_outcome(outcome) if each.sha256 not in sent))
        except Forbidden as error:
            return Outcome(fault=Fault(name=FORBIDDEN_HERE, category=Category.REFUSED, message=error.message))
        return outcome

    def _given_from_outside(self, case: CaseId) -> Any:
        """None if the case runs a flow that was sent; otherwise what our own flow was given by one that was."""
        given: Any = None
        while (live := self._manager.live.get(case)) is not None:
            if live.flow.folder == NO_FOLDER:
                return given
            given, case = live.document.inputs, CaseId(case.rpartition(".")[0])
        return {} if given is not None else None

    async def _demand(self, root: CaseId, digests: Iterable[str]) -> None:
        foreign = set(digests)
        if foreign:
            live = self._manager.live.get(root)
            foreign.difference_update(await self._sent(live.document.key) if live is not None else ())
        if foreign:
            foreign -= self._made.get(root, set())
        if foreign:
            foreign -= await self._read_made(root)
        if foreign:
            raise Forbidden(
                "it refers to a stored file which neither came with the work of your domain nor was made by it here;"
                " give it to the flow as an input"
            )

    async def demand_logical(self, refs: Iterable[FileRef], project: str) -> None:
        """Refuse logical names with other contents than our catalogue has in the project: pilots look for the digest in
        their caches, and find whatever file has it."""
        for ref in dict.fromkeys(refs):
            known = await self._known_as(ref.logical, project)
            if ref.sha256 != known.sha256 or ref.bytes not in (0, known.bytes):
                raise Forbidden(
                    f"it refers to the logical file {ref.logical[:200]!r} with the digest {ref.sha256[:12]}... and"
                    f" {ref.bytes} bytes, which is not what has that name in this domain; give the name alone, as"
                    f" lfn:{ref.logical[:200]}"
                )

    async def _known_as(self, name: str, project: str) -> FileRef:
        try:
            return await self._resolve(name, project)
        except (NotFound, InvalidRequest) as error:
            raise Forbidden(
                f"it refers to the logical file {name[:200]!r}, which this domain does not have: {error.message}"
            ) from None

    async def _read_made(self, root: CaseId) -> set[str]:
        """What jobs had made before this server began; what they have made since may not be on disk yet."""
        made = {digest async for found in self._store.scan(JOB_KIND, root) for digest in _made_in(found.body, root)}
        if root in self._manager.live:
            self._made.setdefault(root, set()).update(made)
        return made


def _made_in(body: bytes, root: CaseId) -> Iterable[str]:
    job = _decode_job(body)
    return _made_by(job) if root_of(job.case) == root else ()


def _made_by(job: Job) -> list[str]:
    """What a job has made. References in its outputs were checked when its outcome was accepted."""
    return [each.sha256 for each in files_in_outcome(job.outcome)]
