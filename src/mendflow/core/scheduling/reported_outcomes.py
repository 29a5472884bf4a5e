"""What others report of an end, checked before anything follows from it: a pilot of a job, and a domain or an engine of
work of its own.

The job wrote its outputs, so they may be anything. What is wrong with an outcome is the fault of its own job: it is
never a reason to refuse the pilot's request, and it reaches no other service."""

from typing import Final

from msgspec.structs import replace

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.references import (
    foreign_reference,
    malformed_reference,
    named_file,
    ref_flaw,
    referenced_files,
    references_in,
)
from mendflow.core.model.values import FileRef, check_value, is_spilled
from mendflow.core.scheduling.report_bounds import bounded_fault, bounded_outcome

NOT_DATA: Final = "notData"
INTERNAL_ERROR: Final = "internalError"


def accepted_outcome(spec: JobSpec, outcome: Outcome) -> Outcome:
    """The outcome that is used: the reported one, or that of a job that failed because its own cannot be."""
    outcome = reported_outcome(_without_bad_details(outcome))
    problem = (
        check_value(outcome.outputs)
        or ((outcome.files or outcome.file_lists or outcome.contents) and _flaw_of_files(outcome))
        or (isinstance(outcome.outputs, dict | list) and _flaw_of_references(spec, outcome))
    )
    if not problem:
        return outcome
    fault = Fault(name=NOT_DATA, category=Category.OUTPUT, message=f"its outputs cannot be kept: {problem}")
    return replace(outcome, outputs=None, files={}, file_lists={}, contents=(), fault=outcome.fault or fault)


def reported_outcome(outcome: Outcome, domain: str = "") -> Outcome:
    """An outcome as others may report it: no more text than people read, and nothing that only we can know, as which
    job made it: that job is read when the result is used again."""
    outcome = bounded_outcome(outcome)
    if outcome.cached_from:
        outcome = replace(outcome, cached_from="")
    if outcome.fault is None or (fault := reported_fault(outcome.fault, domain)) is outcome.fault:
        return outcome
    return replace(outcome, fault=fault)


def reported_fault(fault: Fault, domain: str = "") -> Fault:
    """A fault as others may report it, no longer than people read. Only here it is known that a person has rejected
    something, and who. People of another domain may be called like those of this one, so what it says of them is told
    as its word."""
    fault = bounded_fault(fault)
    if not fault.rejected_by:
        return fault
    if not domain:
        return replace(fault, rejected_by="")
    data = {"by": f"{domain}/{fault.rejected_by}"}
    return replace(fault, rejected_by="", message=f"domain {domain} says: {fault.message}", data=data)


def unprocessed_outcome(outcome: Outcome, error: str) -> Outcome:
    """The outcome of a job whose own could not be processed because of an internal error."""
    message = f"internal error of mendflow while its outcome was processed: {error}; the server's log has the traceback"
    fault = Fault(name=INTERNAL_ERROR, category=Category.OUTPUT, message=message, log_tail=outcome.log_tail)
    return Outcome(fault=fault, exit_code=outcome.exit_code, log_tail=outcome.log_tail, measures=outcome.measures)


def unreadable_outcome(reason: str) -> Outcome:
    """The outcome of a job of which the pilot's report cannot be read."""
    message = f"what its pilot reports of it cannot be read: {reason:.300}"
    return Outcome(fault=Fault(name=NOT_DATA, category=Category.OUTPUT, message=message))


def _without_bad_details(outcome: Outcome) -> Outcome:
    """What only tells people more is left out if it cannot be kept."""
    if outcome.values and check_value(outcome.values):
        outcome = replace(outcome, values={})
    if outcome.fault is not None and check_value(outcome.fault.data):
        outcome = replace(outcome, fault=replace(outcome.fault, data=None))
    if outcome.log is not None and ref_flaw(outcome.log.file):
        outcome = replace(outcome, log=None)
    return outcome


def _files_of(outcome: Outcome) -> list[FileRef]:
    listed = (ref for refs in outcome.file_lists.values() for ref in refs)
    return [*outcome.files.values(), *listed, *outcome.contents]


def _flaw_of_files(outcome: Outcome) -> str:
    return next((flaw for ref in _files_of(outcome) if (flaw := ref_flaw(ref))), "")


def _flaw_of_references(spec: JobSpec, outcome: Outcome) -> str:
    found = [reference for _, reference in references_in(outcome.outputs)]
    if not found:
        return ""
    if flaw := malformed_reference(outcome.outputs, spilled=True):
        return flaw
    given = [*spec.args, *spec.kwargs.values()]
    may_name = {named_file(ref) for ref in (*spec.inputs.values(), *_files_of(outcome))} | set(referenced_files(*given))
    if any(is_spilled(reference) for _, reference in references_in(given)):
        # Only the pilot has seen what a spilled argument refers to, and has checked it.
        may_name |= set(referenced_files(found))
    return foreign_reference(outcome.outputs, may_name)
