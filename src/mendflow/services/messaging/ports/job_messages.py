"""The messages of the job port: requests as they are parsed, and the state of a job as an element."""

from typing import Final

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.jobs import Submission
from mendflow.core.model.values import Value, file_of
from mendflow.core.model.xml import element_value
from mendflow.core.soap.references import headers_of
from mendflow.core.xml.tree import Element
from mendflow.core.xml.writer import write
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.messaging.ports.messages import (
    PortFault,
    address_in,
    child,
    new_element,
    refusal,
    text_element,
    text_in,
)

JOBS: Final = "urn:mendflow:jobs:1"
JSDL: Final = "http://schemas.ggf.org/jsdl/2005/11/jsdl"
KEY_CHARS_MAX: Final = 200
FORGET: Final = "submitAndForget"
SUBMISSIONS: Final = {"run": Submission.WAIT, "submit": Submission.NOTIFY, FORGET: Submission.NOTIFY}
"""The operations that submit a job, and how each hands it to the meta-scheduler. With `forget` only the requester
forgets it: its case records how it ends."""
OPERATIONS: Final = (*SUBMISSIONS, "status", "subscribe", "cancel")
FAILED: Final = "jobFailed"
UNKNOWN: Final = "unknownJob"
NOTIFY: Final = "notify"
NOTIFY_ACTION: Final = f"{JOBS}/{NOTIFY}"

_encode = msgspec.json.Encoder().encode


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A job request: its description as text. `callback` is the address that gets its end; empty text: the partner link
    that it came by; None: no callback."""

    operation: str
    description: str
    key: str = ""
    callback: str | None = None
    soap_headers: tuple[str, ...] = ()  # the headers to send with the callback


def job_request_in(element: Element) -> JobRequest:
    """Parse a request to submit a job. Raises PortFault."""
    described = [each for each in element.elements() if each.ns == JSDL]
    if len(described) != 1:
        raise refusal(JOBS, [f"<{element.local}> holds one <JobDefinition> of {JSDL}; this one has {len(described)}"])
    key = text_in(element, "key")
    if len(key) > KEY_CHARS_MAX:
        raise refusal(JOBS, [f"a key has at most {KEY_CHARS_MAX} characters; this one has {len(key)}"])
    reply_to = child(element, "callback")
    return JobRequest(
        operation=element.local,
        description=write(described[0]),
        key=key,
        callback=address_in(reply_to) if reply_to is not None else None,
        soap_headers=headers_in(element),
    )


def job_in(element: Element) -> str:
    """The job that a request is about. Raises PortFault."""
    job = text_in(element, "jobId")
    if not job:
        raise refusal(JOBS, [f"<{element.local}> has no <jobId>: say which job"])
    return job


def callback_in(element: Element) -> str:
    reply_to = child(element, "callback")
    return address_in(reply_to) if reply_to is not None else ""


def headers_in(element: Element) -> tuple[str, ...]:
    """The headers that the endpoint reference of a callback asks for."""
    reply_to = child(element, "callback")
    return tuple(headers_of(element_value(write(reply_to)))) if reply_to is not None else ()


def job_element(name: str, job: str) -> str:
    """An element that only names a job."""
    return write(new_element(JOBS, name, text_element(JOBS, "jobId", job)))


def unknown_job(job: str) -> PortFault:
    return PortFault(f"{{{JOBS}}}{UNKNOWN}", f"there is no job {job!r:.200} here", job_element(UNKNOWN, job))


def outcome_element(name: str, document: CaseDocument, *, own: bool = True) -> str:
    """The state of a job, or its outcome. Its key is shown only to the requester that gave it."""
    fault = document.fault
    inner = [text_element(JOBS, "jobId", document.id)]
    inner += [text_element(JOBS, "key", document.key.split(" ", 2)[-1])] if document.key and own else []
    inner.append(text_element(JOBS, "state", document.status))
    code = 0 if document.status == "completed" else fault.exit_code if fault is not None else None
    inner += [text_element(JOBS, "exitCode", str(code))] if code is not None else []
    if fault is not None:
        texts = {"name": fault.name, "category": fault.category.value, "message": fault.message}
        fault_element = Element(JOBS, "fault")
        for local, text in texts.items():
            fault_element.append(text_element(JOBS, local, text))
        inner.append(fault_element)
    inner += [_output(each, value) for each, given in document.outputs.items() for value in _each(given)]
    return write(new_element(JOBS, name, *inner))


def _each(given: Value) -> list[Value]:
    """The outputs of a name: each job of a sweep has left its own."""
    return given if isinstance(given, list) else [given]


def _output(name: str, value: Value) -> Element:
    file = file_of(value)
    if file is not None:
        return text_element(JOBS, "output", file.name, name=name, sha256=file.sha256, bytes=str(file.bytes))
    return text_element(JOBS, "output", value if isinstance(value, str) else _encode(value).decode(), name=name)


def job_failed(document: CaseDocument) -> PortFault:
    """The fault of a job that the caller waited for."""
    why = document.fault.message if document.fault is not None else f"job {document.id} was {document.status}"
    return PortFault(f"{{{JOBS}}}{FAILED}", why, outcome_element(FAILED, document))


def demand_address(address: str) -> None:
    """Raise for a callback without an address."""
    if not address:
        raise InvalidRequest(
            "<callback> is empty: give an address, or an endpoint reference that has one", field="callback"
        )
