"""Turns the values that exlets give to their primitives into changes of a job, a level, a fault.

Values come from expressions that somebody wrote, so each is checked, and an invalid one is refused with a message that
fails the exlet."""

import msgspec

from mendflow.core.engine.messages import RunPrimitive
from mendflow.core.model.errors import InvalidRequest, RequestError
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import Decision
from mendflow.core.model.units import duration_ms
from mendflow.core.model.values import Value, file_of
from mendflow.services.base.contracts import Change, SubmissionFailed
from mendflow.services.recovery.levels import Mode


def failed(order: RunPrimitive, problem: RequestError | SubmissionFailed) -> Outcome:
    reason = problem.message if isinstance(problem, RequestError) else problem.fault.message
    message = f"{order.do.value} could not be done: {reason}"
    return Outcome(fault=Fault(name="mendFailed", category=Category.FLOW, message=message))


def level_of(value: Value, decision: Decision | None, levels: int) -> int:
    """The level that an exlet names; none, or 0, is the one after the last that the job has been through. Raises
    InvalidRequest where there is no such level: a job that has waited in the last one cannot be recovered in this
    way."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidRequest(f"a level is a number from 1 on, or 0 for the next, not {value!r:.80}", field="level")
    job = decision.context.get("job") if decision is not None else None
    before = job.get("level", 0) if isinstance(job, dict) else 0
    if value > levels:
        raise InvalidRequest(f"there are {levels} levels to wait in, and no level {value}", field="level")
    if not value and before >= levels:
        raise InvalidRequest(f"it has waited in all of the {levels} levels", field="level")
    return value or int(before) + 1


def mode_of(value: Value) -> Mode:
    if value == "express" or value == "recoverable":
        return "express" if value == "express" else "recoverable"
    raise InvalidRequest(f"a level's mode is recoverable or express, not {value!r:.80}", field="mode")


def fault_for(decision: Decision | None, order: RunPrimitive) -> Fault:
    """The fault of the decision, or the one that the exlet names."""
    known = decision.fault if decision is not None else None
    message_given = order.settings.get("message")
    name = order.settings.get("fault")
    if known is None:
        message = str(message_given or "an exlet made it fail")
        return Fault(name=str(name or "failed"), category=Category.FLOW, message=message)
    return msgspec.structs.replace(known, name=str(name or known.name), message=str(message_given or known.message))


def change_of(settings: dict[str, Value]) -> Change:
    """The changes of a job that an exlet names. Raises InvalidRequest if they are invalid."""
    names = ("resources", "env", "container", "avoid_hosts", "sources", "domain", "wait_ms", "publish_to", "publish_on")
    given = {name: settings[name] for name in names if settings.get(name) is not None}
    if isinstance(given.get("avoid_hosts"), str):
        given["avoid_hosts"] = [given["avoid_hosts"]]
    if isinstance(given.get("publish_to"), str):
        given["publish_to"] = {"": given["publish_to"]}
    if isinstance(given.get("env"), dict):
        given["env"] = {key: value if isinstance(value, str) else str(value) for key, value in given["env"].items()}
    if isinstance(given.get("sources"), dict):
        files = {path: ref for path, value in given["sources"].items() if (ref := file_of(value)) is not None}
        given["files"] = files
        given["sources"] = {path: value for path, value in given["sources"].items() if path not in files}
    if isinstance(wait := given.get("wait_ms"), float):
        given["wait_ms"] = int(wait)
    elif isinstance(wait, str):
        given["wait_ms"] = wait_of(wait)
    try:
        return msgspec.convert(given, Change)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"a job cannot be changed so: {error}") from error


def wait_of(text: str) -> int:
    found = duration_ms(text)
    if found is None:
        raise InvalidRequest(
            f"it is to wait {text!r:.80}, which is no duration; write it as 90 s or 10 min", field="wait"
        )
    return found


def next_source(decision: Decision | None) -> dict[str, str]:
    """The next replica of the file that the fault is about."""
    file = decision.fault.file if decision is not None and decision.fault is not None else ""
    job = decision.context.get("job") if decision is not None else None
    sources = job.get("sources") if isinstance(job, dict) else None
    return {file: str(sources[1])} if file and isinstance(sources, list) and len(sources) > 1 else {}


def host_to_leave(decision: Decision | None) -> str:
    """The host where the job was last, if there is another to go to: who avoids all hosts would wait for ever."""
    context = decision.context if decision is not None else {}
    job, capacity = context.get("job"), context.get("capacity")
    if not isinstance(job, dict) or not isinstance(capacity, dict):
        return ""
    host, avoided, hosts = str(job.get("host", "")), job.get("avoid_hosts"), capacity.get("hosts")
    left = {host, *map(str, avoided if isinstance(avoided, list) else ())}
    return host if isinstance(hosts, int) and hosts > len(left) else ""
