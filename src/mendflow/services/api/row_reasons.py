"""Why each row of a list is as it is, in a few words: what a job or an item waits for, or why it failed.

Jobs of like needs wait for the same: so a list asks once for each kind of needs, however many rows it has."""

from typing import Final

from mendflow.core.model.faults import reason_in
from mendflow.core.model.jobs import Job, JobState, Resources
from mendflow.core.model.views import ITEM_END_STATES, ItemView
from mendflow.core.scheduling import data_explanations, explanations
from mendflow.core.scheduling.jobs import effective_needs
from mendflow.services.api.reasons import item_reason
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.messaging.waits import waits_for
from mendflow.services.runtime.server import Server

ELSEWHERE: Final = "it waits at another server, or in another domain"
WAITS_FOR_A_PERSON: Final = "it failed, and waits for a person"
STOPPED: Final = "it waits until somebody resumes its case"


class RowReasons:
    """For one list: what is found out once is used for its other rows."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._by_needs: dict[Resources, str] = {}

    def of_job(self, job: Job) -> str:
        """Empty of a job that has completed, and of one that runs and never failed."""
        if job.state is JobState.COMPLETED:
            return ""
        if job.state is JobState.FAILED:
            return reason_in(job.outcome.fault.message) if job.outcome is not None and job.outcome.fault else ""
        return self._of_granted(job) if job.state is JobState.RUNNING else self._of_waiting(job)

    def of_item(self, view: ItemView, job: Job | None, live: LiveCase | None) -> str:
        """`job` is the newest submission of the item's job, `live` its case while that is not over."""
        said = reason_in(view.fault.message) if view.fault is not None else ""
        if view.held and said:
            return f"{WAITS_FOR_A_PERSON}: {said}"
        if view.state in ITEM_END_STATES:
            return said or view.reason
        if view.reason:
            return f"{view.reason}: {said}" if said else view.reason
        if job is not None:
            return self.of_job(job)
        if view.why:
            return view.why
        told = item_reason(view, waits_for(live, view.item, self._server.url) if live is not None else "")
        return told.sentence.removeprefix(f"{view.shown} ").removesuffix(".")

    def _of_granted(self, job: Job) -> str:
        """A pilot has it."""
        if job.requeued is not None:
            return f"it was {job.requeued.sentence()}, and waits for its attempt to end"
        if job.suspended:
            return explanations.SUSPENDED
        if not self._server.runtime.meta.runs(job):
            return f"pilot {job.pilot} has fetched it ahead, and begins it when a slot is free"
        failed = _failed_before(job)
        return f"attempt {job.tries}{failed}" if failed else ""

    def _of_waiting(self, job: Job) -> str:
        runtime, now = self._server.runtime, self._server.clock.now()
        if self._server.stopped.holds(job.id):
            return STOPPED
        if job.suspended or job.available_at > now:
            return explanations.why_waiting(job, (), None, now).sentence.removeprefix(f"{job.spec.shown}: ")
        if job.id not in runtime.meta.jobs:
            return ELSEWHERE
        if outside := runtime.projects.why_not_queued(job):
            return outside
        if (kept := runtime.meta.queue.kept_back(job.id, now)) is not None:
            return data_explanations.explain_deferral(job.spec, kept, now)
        needs = effective_needs(job)
        if needs not in self._by_needs:
            told = runtime.waiting_reasons.of(job.id, is_of_many=True)
            self._by_needs[needs] = told.sentence if told is not None else ""
        return f"{self._by_needs[needs]}{_failed_before(job)}"


def _failed_before(job: Job) -> str:
    """How its last attempt that is over has failed, if it has."""
    ended = [attempt for attempt in job.history if attempt.end and attempt.end != "returned"]
    fault = ended[-1].fault if ended else None
    return f"; attempt {ended[-1].shown} failed: {fault.message}" if fault is not None else ""
