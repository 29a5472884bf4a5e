"""The job port: SOAP clients, and cases of this server, submit jobs to the queue.

A job is a case of one job, made from its description; its id is that case's id. So the id stays the same however often
the job is mended, and rules, repairs and reports treat it like any other case. A client may ask about jobs that it
requested here, and about those that its roles would let it see through the API. To all others a case looks as if it did
not exist."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from mendflow.core.engine.messages import CallPartner
from mendflow.core.expressions.work_budget import LongWork
from mendflow.core.model.flow import Activity, Flow, ForEach, JobActivity, Parallel
from mendflow.core.model.jobs import Submission
from mendflow.core.model.principals import Sight
from mendflow.core.xml.tree import Element
from mendflow.lazy import LazyModule
from mendflow.services.base.long_reads import LONG_CHARS, SHORT_CHARS, LongReads
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.messaging.callbacks import ADMINISTRATOR, Callbacks, CallbackTarget
from mendflow.services.messaging.contracts import CaseAccess
from mendflow.services.messaging.ports import job_messages
from mendflow.services.messaging.ports.cases import PortCases, Requester
from mendflow.services.messaging.ports.job_messages import JOBS, OPERATIONS, SUBMISSIONS, JobRequest
from mendflow.services.messaging.ports.messages import raising_port_faults, request

if TYPE_CHECKING:
    from mendflow.services.base import reading_tasks
else:
    reading_tasks = LazyModule("mendflow.services.base.reading_tasks")

JobReader = Callable[[str, Path | None, int | None], Flow]
"""Makes a flow from a job description in JSDL, with its folder if it has one. Raises BadFlow, and LongWork if it has
more elements than the given number, those of each of its jobs written out."""

ELEMENTS_AT_ONCE: Final = 2_000
"""So many elements are read at once: that takes some 20 ms."""


class JobsPort:
    def __init__(self, cases: PortCases, callbacks: Callbacks, read: JobReader, long_reads: LongReads) -> None:
        self._cases = cases
        self._callbacks = callbacks
        self._read = read
        self._long_reads = long_reads

    async def handle_request(self, text: str, *, who: str, message_id: str = "", reach: CaseAccess) -> str | None:
        """Handle a request over the network, and answer. The `message_id` is used as key if the request has none."""
        return await self._handle(text, Requester(who=who, key=message_id, reach=reach))

    async def handle_call(self, text: str, live: LiveCase, order: CallPartner) -> str | None:
        """The same for an order of a case."""
        return await self._handle(text, Requester(live=live, serial=order.serial, link=order.partner))

    async def _handle(self, text: str, by: Requester) -> str | None:
        asked = request(JOBS, text, OPERATIONS)
        with raising_port_faults(JOBS):
            if asked.local in SUBMISSIONS:
                return await self._submit(job_messages.job_request_in(asked), by)
            return await self._answer_query(asked, by)

    async def _submit(self, wanted: JobRequest, by: Requester) -> str | None:
        target = self._target(wanted.callback, wanted.soap_headers, by) if wanted.callback is not None else None
        if wanted.operation == job_messages.FORGET:
            target = ADMINISTRATOR
        document = await self._cases.begin(await self._flow(wanted, by.folder), {}, by.with_key(JOBS, wanted.key))
        if target is not None:
            await self._callbacks.add(document, target)
        return await self._submit_response(wanted, document)

    async def _flow(self, wanted: JobRequest, folder: Path | None) -> Flow:
        """One of many jobs, or a large one, is read where nobody waits for it."""
        flow = await self._read_flow(wanted.description, folder)
        return replace(flow, body=_submitted(flow.body, SUBMISSIONS[wanted.operation]))

    async def _read_flow(self, text: str, folder: Path | None) -> Flow:
        chars = len(text)
        if chars <= SHORT_CHARS:
            try:
                return self._read(text, folder, ELEMENTS_AT_ONCE)
            except LongWork:
                chars = LONG_CHARS
        task = reading_tasks.JobText(text, str(folder) if folder is not None else None)
        return await self._long_reads.read(chars, task, Flow, lambda: self._read(text, folder, None))

    async def _submit_response(self, wanted: JobRequest, document: CaseDocument) -> str | None:
        if wanted.operation == job_messages.FORGET:
            return None
        if wanted.operation == "submit":
            return job_messages.job_element("submitResponse", document.id)
        document = await self._cases.wait_for_end(document)
        if document.status != "completed":
            raise job_messages.job_failed(document)
        return job_messages.outcome_element("runResponse", document)

    async def _answer_query(self, asked: Element, by: Requester) -> str:
        """Answer a query about an existing job."""
        allowed = by.reach.can_end if asked.local == "cancel" else by.reach.can_view
        document = await self._find_job(job_messages.job_in(asked), by, allowed=allowed)
        own = by.owns(document, JOBS)
        match asked.local:
            case "subscribe":
                target = self._target(job_messages.callback_in(asked), job_messages.headers_in(asked), by)
                await self._callbacks.add(document, replace(target, own=own))
                return job_messages.job_element("subscribeResponse", document.id)
            case "cancel":
                if document.live:
                    await self._cases.cancel(document.id, "cancelled over the port of jobs")
                    document = await self._find_job(document.id, by, allowed=allowed)
                return job_messages.outcome_element("cancelResponse", document, own=own)
        return job_messages.outcome_element("statusResponse", document, own=own)

    async def _find_job(self, job: str, by: Requester, *, allowed: Sight) -> CaseDocument:
        """A job that the requester may ask about: its own, or any case of the projects that it is `allowed` to."""
        document = await self._cases.find(job)
        if document is None or document.void or not (allowed.sees(document.project) or by.owns(document, JOBS)):
            raise job_messages.unknown_job(job)
        return document

    def _target(self, address: str, soap_headers: tuple[str, ...], by: Requester) -> CallbackTarget:
        """The target of a callback. A case that calls in process need not name it."""
        if not address and by.live is not None:
            own = by.live.document.project
            return CallbackTarget(flow=by.live.flow.name, channel=f"{by.link}.{job_messages.NOTIFY}", project=own)
        return self._callbacks.check(address, soap_headers, may_tell=by.may_tell)


def _submitted(activity: Activity, submission: Submission) -> Activity:
    """The job of a description, or the loops over the jobs of its sweep, submitted in this way."""
    match activity:
        case JobActivity():
            return replace(activity, submission=submission)
        case ForEach():
            return replace(activity, body=_submitted(activity.body, submission))
        case Parallel():
            return replace(activity, branches=tuple(_submitted(each, submission) for each in activity.branches))
    raise AssertionError("a job description is a job, or loops over jobs")
