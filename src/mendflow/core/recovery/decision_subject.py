"""What a repair was decided about: one submission of a job, and the event that told of it.

Two events may tell of the same submission, and each gets a decision and an exlet of its own. Both may conclude that the
job is submitted again; one new submission answers both. So whoever submits again says which submission he has seen, and
if that one has a successor by then which another event brought about, the successor is what he wanted."""

import msgspec

from mendflow.core.model.ids import JobId
from mendflow.core.model.repair import Decision

REPLACEMENT_MARK = "!"
"""Stands in the id of a decision that took the place of one that was rejected, after the event's own id."""


class DecisionSubject(msgspec.Struct, frozen=True):
    generation: int  # of the submission, counted from 1
    event: str


def event_of_decision(decision: str) -> str:
    """The event's id, from the id of a decision or of one that took its place."""
    return decision.partition(REPLACEMENT_MARK)[0]


def subject_of_decision(decision: Decision | None, id: JobId) -> DecisionSubject | None:
    """Which submission of the job a decision is about. None if it is about none in particular: it concerns another job,
    or a person ordered the repair, who means the job as it is now."""
    if decision is None or decision.job != id:
        return None
    if decision.conclusion is not None and decision.conclusion.ordered_by:
        return None
    job = decision.context.get("job")
    generation = job.get("generation") if isinstance(job, dict) else None
    return DecisionSubject(generation, event_of_decision(decision.id)) if isinstance(generation, int) else None
