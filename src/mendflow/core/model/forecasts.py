"""What earlier results would be found for the jobs of a case that is not started yet."""

from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.views import View


class WantedResult(View, frozen=True):
    """A job as it would be submitted. `number` is its number among the jobs of its case that are made from
    the same; `undoable`, that something in its flow can undo it."""

    spec: JobSpec
    number: int = 1
    undoable: bool = False


class ResultForecast(View, frozen=True):
    """The outcome that would be used for a job, if there is one; and why, or why the job would run."""

    outcome: Outcome | None = None
    reason: str = ""
