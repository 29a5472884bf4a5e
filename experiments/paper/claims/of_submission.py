"""Figure 7: how jobs of W3 come to run: submitted directly, with pilots that already run, with pilots on demand."""

from typing import Final

from experiments.paper.claims.judging import ClaimFinding, SampleSet, claim_test, minutes
from experiments.paper.samples import Sample
from experiments.paper.settings import Setup

DIRECT: Final = Setup("W3", "d1f1", "none", "direct")
RUNNING: Final = Setup("W3", "d1f1", "C3", "running")
DEMAND: Final = Setup("W3", "d1f1", "C3", "demand")
ALL: Final = (DIRECT, RUNNING, DEMAND)

AT_ONCE_S: Final = 5.0
"""Beside jobs of ten minutes, what takes less than this takes no time."""
HUGE_S: Final = 120.0
KNEE: Final = 20
"""A knee goes down to half of the jobs of step1 at least."""


@claim_test(
    "7.1",
    "There is an initial job submission delay for the direct (without the pilot jobs and the TaskQueue) and"
    " PilotMonitor-based job submission.",
    needs=ALL,
    holds_if=f"within {AT_ONCE_S:.0f} s with running pilots, later with both others",
)
def initial_delay(results: SampleSet) -> ClaimFinding:
    direct, demand, running = (results.mean(each, "begun_s") for each in (DIRECT, DEMAND, RUNNING))
    seen = (
        f"the first job begins after {minutes(direct)} when submitted directly, after {minutes(demand)} with pilots on"
        f" demand, after {minutes(running)} with running pilots"
    )
    return ClaimFinding(running < AT_ONCE_S < min(direct, demand), seen)


@claim_test(
    "7.2",
    "However, this is not the case when the pilot jobs are already running, and thus there are no submission"
    " delays as the pilots are already waiting for the real jobs.",
    needs=(RUNNING,),
    holds_if=f"less than {AT_ONCE_S:.0f} s",
)
def no_initial_delay(results: SampleSet) -> ClaimFinding:
    ramp = results.mean(RUNNING, "ramp_s")
    return ClaimFinding(ramp < AT_ONCE_S, f"all 80 jobs of step0 have begun after {minutes(ramp)}")


@claim_test(
    "7.3",
    "There are no queuing delays for the real jobs since the pilots pull them as far as they can to meet the"
    " jobs' requirements.",
    needs=(RUNNING,),
    holds_if=f"less than {AT_ONCE_S:.0f} s",
)
def no_queuing(results: SampleSet) -> ClaimFinding:
    waited = results.mean(RUNNING, "waited_s")
    return ClaimFinding(waited < AT_ONCE_S, f"a job waits for {waited:.1f} s in the queue")


@claim_test(
    "7.4",
    "The results show a decrease in queuing times for the jobs and scheduling latencies when a pilot-based"
    " system is used in comparison to the direct submission.",
    needs=ALL,
    holds_if="less with running pilots than on demand, and less on demand than directly",
)
def less_queuing(results: SampleSet) -> ClaimFinding:
    direct, demand, running = (results.mean(each, "waited_s") for each in (DIRECT, DEMAND, RUNNING))
    seen = (
        f"from ready to running a job takes {minutes(direct)} when submitted directly, {minutes(demand)} with pilots on"
        f" demand, {minutes(running)} with running pilots"
    )
    return ClaimFinding(running < demand < direct, seen)


@claim_test(
    "7.5",
    "In the direct submission mechanism, there is also a huge delay between the time step0 jobs complete their"
    " execution and the jobs in step1 are submitted (group of running jobs as shown on the right side of the"
    " plot).",
    needs=(DIRECT,),
    holds_if=f"more than {minutes(HUGE_S)}",
)
def huge_gap(results: SampleSet) -> ClaimFinding:
    gap = results.mean(DIRECT, "idle_s")
    seen = f"between the last job of step0 and the first of step1 lie {minutes(gap)}"
    return ClaimFinding(gap > HUGE_S, seen)


@claim_test(
    "7.6",
    "On the contrary, there are almost no such delays between these steps with the pilot-based approach.",
    needs=(RUNNING, DEMAND),
    holds_if=f"less than {AT_ONCE_S:.0f} s with both",
)
def no_gap(results: SampleSet) -> ClaimFinding:
    running, demand = results.mean(RUNNING, "idle_s"), results.mean(DEMAND, "idle_s")
    seen = f"between the steps lie {running:.1f} s with running pilots, {demand:.1f} s with pilots on demand"
    return ClaimFinding(max(running, demand) < AT_ONCE_S, seen)


def low_between_steps(sample: Sample) -> int:
    """The fewest jobs that ran, at a tick between the most of step0 and the most of step1."""
    top = sample.running.index(max(sample.running))
    again = max(at for at, count in enumerate(sample.running) if count >= 36)
    return min(sample.running[top : again + 1])


@claim_test(
    "7.7",
    "The knees in Figure 7, for the pilot-based approach, are due to the delays in the submission of step1 jobs"
    " after the jobs in step0 have been completed.",
    needs=(RUNNING, DEMAND),
    holds_if=f"{KNEE} or fewer",
)
def knees(results: SampleSet) -> ClaimFinding:
    lows = {each: [low_between_steps(sample) for sample in results.of(each)] for each in (RUNNING, DEMAND)}
    highest = max(max(low) for low in lows.values())
    seen = f"with both kinds of pilots the 80 running jobs become {highest} or fewer before the 40 of step1 begin"
    return ClaimFinding(highest <= KNEE, seen)


@claim_test(
    "7.8",
    "Figure 7 shows how job submission, scheduling and job notification delays can be reduced using the"
    " pilot-based approach.",
    needs=ALL,
    holds_if="less with running pilots than on demand, and less on demand than directly",
)
def reduced(results: SampleSet) -> ClaimFinding:
    direct, demand, running = (results.mean(each, "turnaround_s") for each in (DIRECT, DEMAND, RUNNING))
    seen = (
        f"the workflow takes {minutes(direct)} directly, {minutes(demand)} with pilots on demand,"
        f" {minutes(running)} with running pilots"
    )
    return ClaimFinding(running < demand < direct, seen)


CLAIMS: Final = (
    initial_delay,
    no_initial_delay,
    no_queuing,
    less_queuing,
    huge_gap,
    no_gap,
    knees,
    reduced,
)
