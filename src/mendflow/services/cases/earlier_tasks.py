"""Whether people have been asked the same before, in the case that is run again."""

from mendflow.core.model.ids import CaseId
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import LiveCase


async def case_that_asked_the_same(manager: FlowManager, live: LiveCase, serial: int) -> CaseId | None:
    """The earlier case, if a person who answered in it would be asked about the same again: the inputs are the same,
    nothing has run since that could have come out otherwise, and nobody wants the task to be done again."""
    document = live.document
    if document.rerun_of is None or document.cache == "none" or live.tally.has_run_jobs():
        return None
    if live.runs_again(serial):
        return None
    earlier = await manager.document(document.rerun_of)
    return earlier.id if earlier is not None and earlier.inputs == document.inputs else None
