"""What a repair was decided about: one submission of a job, and the event that reported it.

Two events may report the same submission, and each gets a decision and an exlet. Both may conclude to resubmit the job;
one new submission serves both. So a resubmission names the submission that it was decided about, and if that one
already has a successor caused by another event, the successor is used."""

import msgspec

from mendflow.core.model.ids import JobId
from mendflow.core.model.repair import Decision

REPLACEMENT_MARK = "!"
"""Suffix in the id of a decision that replaced a rejected one."""


class DecisionSubject(msgspec.Struct, frozen=True):
    generation: int  # number of the submission, from 1
    event: str


def event_of_decision(decision: str) -> str:
    """The event's id, from the id of a decision or of its replacement."""
    return decision.partition(REPLACEMENT_MARK)[0]


def subject_of_decision(decision: Decision | None, id: JobId) -> DecisionSubject | None:
    """Which submission of the job a decision is about. None if it is about none in particular: it concerns another job,
    or a person ordered the repair, meaning the job as it is now."""
    if decision is None or decision.job != id:
        return None
    if decision.conclusion is not None and decision.conclusion.ordered_by:
        return None
    job = decision.context.get("job")
    generation = job.get("generation") if isinstance(job, dict) else None
    return DecisionSubject(generation, event_of_decision(decision.id)) if isinstance(generation, int) else None
