"""The ids of a resubmitted job: the flow knows `CASE/SERIAL`, and `CASE/SERIAL~2` is the second submission.

The real id contains the known one, so no mapping has to be stored."""

from mendflow.core.model.ids import JobId

GENERATION_MARK = "~"


def flow_job_id(real: JobId) -> JobId:
    """The id under which the flow knows the job."""
    return JobId(real.partition(GENERATION_MARK)[0])


def submission_job_id(known: JobId, generation: int) -> JobId:
    """The id of the job's submission of this number; the first has the known id itself."""
    assert generation >= 1 and GENERATION_MARK not in known, f"{known} cannot be submitted for the {generation}th time"
    return known if generation == 1 else JobId(f"{known}{GENERATION_MARK}{generation}")


def generation_of(real: JobId) -> int:
    number = real.partition(GENERATION_MARK)[2]
    return int(number) if number else 1


def serial_of(id: str) -> int:
    """The item's serial in a job's or a task's id."""
    return int(id.rpartition("/")[2].partition(GENERATION_MARK)[0])
