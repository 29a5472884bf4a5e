"""Submits pilots one by one through a command of the batch system, and judges what the command answers."""

from collections.abc import Awaitable, Callable, Sequence

from mendflow.batch.commands import CommandResult, run_command
from mendflow.batch.contract import Launch
from mendflow.batch.queue_commands import UNCERTAIN
from mendflow.core.model.sites import (
    BatchSystemUnavailable,
    Site,
    SubmitAccepted,
    SubmitRejected,
    SubmitResult,
    SubmitSkipped,
    SubmitUncertain,
)


async def submit_in_order(
    launches: Sequence[Launch], submit: Callable[[Launch], Awaitable[SubmitResult]]
) -> dict[str, SubmitResult]:
    """Submit each, until one is not accepted: the others are skipped."""
    answers: dict[str, SubmitResult] = {}
    for launch in launches:
        stopped = any(not isinstance(answer, SubmitAccepted) for answer in answers.values())
        answers[launch.name] = SubmitSkipped() if stopped else await submit(launch)
    return answers


async def submit_by_command(
    site: Site,
    words: Sequence[str],
    *,
    native_id: Callable[[str], str],
    reason: Callable[[CommandResult], str],
    given: bytes = b"",
) -> SubmitResult:
    """Run the command of one submission. `native_id` finds the batch system's id in what it printed, and `reason` the
    line that says why it refused."""
    try:
        result = await run_command(site, words, given=given)
    except BatchSystemUnavailable as error:
        return SubmitRejected(str(error))
    if result.code is None:
        return SubmitUncertain(f"{words[0]} did not answer in time")
    if result.code != 0:
        return refused(reason(result), result.err)
    return SubmitAccepted(native_id(result.out) or "?")


def refused(why: str, printed: str = "") -> SubmitResult:
    """A refusal, unless the batch system may have accepted the submission all the same."""
    return SubmitUncertain(why) if UNCERTAIN.search(why) or UNCERTAIN.search(printed) else SubmitRejected(why)
