"""Figures 8 and 9: what the condition of the storage element does to jobs of W1, and to W1 as a whole, with caches and
without."""

from itertools import pairwise
from typing import Final

from experiments.paper.claims.judging import SEVERAL, ClaimFinding, SampleSet, claim_test, minutes, percent
from experiments.paper.settings import CONDITIONS, Setup

CACHED: Final = {condition: Setup("W1", condition, "C3") for condition in CONDITIONS}
PLAIN: Final = {condition: Setup("W1", condition, "none") for condition in CONDITIONS}
ALL: Final = (*CACHED.values(), *PLAIN.values())

MUCH: Final = 2.0
"""What is "much better" is so by this factor at least."""
NOT_MUCH: Final = 0.05
"""What is no significant advantage is less than this part of what a job takes, and of the advantage at its largest."""
NOISE: Final = 0.01
"""Under d1f1, where caches offer no significant advantage, a hundredth more or less is nothing."""
MOSTLY: Final = 0.5
"""What mostly happens does so in more than half of the cases."""
MINIMAL: Final = 0.20
"""What is a minimal effect is less than this part of the same effect without caches."""


def _gains(results: SampleSet, what: str) -> dict[str, float]:
    """How much less it is with caches, under each condition."""
    return {each: results.mean(PLAIN[each], what) - results.mean(CACHED[each], what) for each in CONDITIONS}


def _listed(results: SampleSet, setups: dict[str, Setup], what: str) -> str:
    return ", ".join(f"{minutes(results.mean(setup, what))} ({name})" for name, setup in setups.items())


@claim_test(
    "8.1",
    "The plot shows that the system with the pilot cache provides much better data access times especially"
    " under worse SE conditions (d3f3) as a smaller number of requests are sent to the SE, with an increasing"
    " number of datasets being available in the local caches.",
    needs=ALL,
    holds_if=f"less under each condition, by most under d3f3, where it is more than {MUCH:.0f} times as long without;"
    " fewer files are asked for",
)
def much_better_stage_in(results: SampleSet) -> ClaimFinding:
    gains = _gains(results, "stage_in_s")
    factor = results.mean(PLAIN["d3f3"], "stage_in_s") / results.mean(CACHED["d3f3"], "stage_in_s")
    reads = results.mean(CACHED["d3f3"], "element_reads"), results.mean(PLAIN["d3f3"], "element_reads")
    seen = (
        f"under d3f3 reading takes {minutes(results.mean(CACHED['d3f3'], 'stage_in_s'))} with caches and"
        f" {minutes(results.mean(PLAIN['d3f3'], 'stage_in_s'))} without, {factor:.0f} times as long; the storage"
        f" element is asked for {reads[0]:.1f} files instead of {reads[1]:.1f}"
    )
    largest = max(gains, key=lambda each: gains[each])
    return ClaimFinding(min(gains.values()) > 0 and largest == "d3f3" and factor > MUCH and reads[0] < reads[1], seen)


@claim_test(
    "8.2",
    "In the normal SE condition (d1f1), the cache does not offer significant advantage over the no-cache"
    " approach as the SE has low latencies and can serve the data requests almost as fast as is expected from"
    " the pilot cache.",
    needs=ALL,
    holds_if=f"less than {percent(NOT_MUCH)} of what a job takes, and of what caches save under d3f3",
)
def little_at_d1f1(results: SampleSet) -> ClaimFinding:
    gain, worst = _gains(results, "stage_in_s")["d1f1"], _gains(results, "stage_in_s")["d3f3"]
    part = gain / results.mean(PLAIN["d1f1"], "execution_s")
    seen = (
        f"under d1f1 caches save {minutes(gain)} of reading a job, {percent(part)} of what it takes;"
        f" under d3f3 {minutes(worst)}"
    )
    return ClaimFinding(part < NOT_MUCH and gain < NOT_MUCH * worst, seen)


@claim_test(
    "8.3",
    "There is a minimal effect of higher delays and higher failure rates i.e. d2f2, d3f1, d3f3 on the stage-in"
    " time for the cache based system because only a few files are read from the SE.",
    needs=ALL,
    holds_if=f"from best to worst condition less than {percent(MINIMAL)} of what it is without caches",
)
def caches_even_out(results: SampleSet) -> ClaimFinding:
    cached = [results.mean(setup, "stage_in_s") for setup in CACHED.values()]
    plain = [results.mean(setup, "stage_in_s") for setup in PLAIN.values()]
    part = (max(cached) - min(cached)) / (max(plain) - min(plain))
    seen = f"with caches reading takes {_listed(results, CACHED, 'stage_in_s')}"
    return ClaimFinding(part < MINIMAL, seen)


@claim_test(
    "8.4",
    "On the contrary, with an increase in the delay and the failure rate, the stage-in time significantly"
    " increases for the no-cache approach because all the files are read from the SE.",
    needs=tuple(PLAIN.values()),
    holds_if=f"longer from each to the next, d1f1 to d2f2 and d2f2 to d3f1 more than {MUCH:.0f} times as long",
)
def grows_without(results: SampleSet) -> ClaimFinding:
    times = [results.mean(setup, "stage_in_s") for setup in PLAIN.values()]
    rising = all(one < other for one, other in pairwise(times))
    seen = f"without caches reading takes {_listed(results, PLAIN, 'stage_in_s')}"
    return ClaimFinding(rising and times[1] > MUCH * times[0] and times[2] > MUCH * times[1], seen)


@claim_test(
    "8.5",
    "It is important to note here that by using the cache, I/O requests to SE are decreased; therefore, its use"
    " may also minimize the deterioration of the SE conditions in the first place.",
    needs=ALL,
    holds_if=f"more than {MUCH:.0f} times fewer",
)
def fewer_requests(results: SampleSet) -> ClaimFinding:
    cached = sum(results.mean(setup, "element_reads") for setup in CACHED.values())
    plain = sum(results.mean(setup, "element_reads") for setup in PLAIN.values())
    seen = f"over the four conditions the storage element is asked for {cached:.1f} files instead of {plain:.1f}"
    return ClaimFinding(cached * MUCH < plain, seen)


@claim_test(
    "8.6",
    "From Figure 8, it is clear that the pilot cache mechanism positively affects the execution time of a real"
    " job by reducing the data access latencies.",
    needs=ALL,
    holds_if="less under each condition",
)
def shorter_jobs(results: SampleSet) -> ClaimFinding:
    gains = _gains(results, "execution_s")
    seen = "a job takes less by " + ", ".join(f"{minutes(gain)} ({name})" for name, gain in gains.items())
    return ClaimFinding(all(gain > 0 for gain in gains.values()), seen)


@claim_test(
    "9.1",
    "From this figure, it is clear that the cache approach provides better workflow turnaround time than the"
    " no-cache approach.",
    needs=ALL,
    holds_if=f"shorter under each condition; under d1f1 longer by less than {percent(NOISE)} will do",
    runs=SEVERAL,
)
def shorter_flows(results: SampleSet) -> ClaimFinding:
    gains = _gains(results, "turnaround_s")
    seen = (
        f"with caches the workflow takes {_listed(results, CACHED, 'turnaround_s')};"
        f" without {_listed(results, PLAIN, 'turnaround_s')}"
    )
    not_worse = gains.pop("d1f1") > -NOISE * results.mean(PLAIN["d1f1"], "turnaround_s")
    return ClaimFinding(not_worse and all(gain > 0 for gain in gains.values()), seen)


@claim_test(
    "9.2",
    "An interesting fact to note here is that an increase in the failure rate has a more prominent effect on"
    " the turnaround time compared to an increase in the delay factor.",
    needs=ALL,
    holds_if="failures cost more than the delay, with caches and without",
)
def failures_cost_more(results: SampleSet) -> ClaimFinding:
    holds, told = True, []
    for name, setups in (("with", CACHED), ("without", PLAIN)):
        best, slow, worst = (results.mean(setups[each], "turnaround_s") for each in ("d1f1", "d3f1", "d3f3"))
        holds = holds and worst - slow > slow - best
        told.append(
            f"{name} caches the delay (d1f1 to d3f1) costs {minutes(slow - best)}, failures on top of that (d3f1 to"
            f" d3f3) {minutes(worst - slow)}"
        )
    return ClaimFinding(holds, "; ".join(told))


@claim_test(
    "9.3",
    "This is due to the fact that a failure in reading or writing data to an SE causes a job to fail which"
    " triggers the resubmission of a job, and causes an additional delay of resubmission and re-execution of a"
    " job.",
    needs=tuple(PLAIN.values()),
    holds_if="none where nothing fails, some under d2f2, more under d3f3",
)
def failures_repeat_jobs(results: SampleSet) -> ClaimFinding:
    again = {each: results.mean(PLAIN[each], "attempts") - 160 for each in CONDITIONS}
    seen = "without caches attempts beyond the 160 jobs: " + ", ".join(f"{n:.1f} ({each})" for each, n in again.items())
    return ClaimFinding(again["d1f1"] == again["d3f1"] == 0 < again["d2f2"] < again["d3f3"], seen)


@claim_test(
    "9.4",
    "In the case of the cache based approach for W1, jobs mostly read the required files from the cache which"
    " reduces the data access latencies and the failures during the stage-in time.",
    needs=ALL,
    holds_if=f"more than {percent(MOSTLY)} from caches, and more than {MUCH:.0f} times fewer reads fail",
)
def few_failed_reads(results: SampleSet) -> ClaimFinding:
    cached, plain = (results.mean(setups["d3f3"], "failed_reading") for setups in (CACHED, PLAIN))
    hits = results.mean(CACHED["d3f3"], "hit_ratio")
    seen = (
        f"under d3f3 {percent(hits)} of the files are read from caches; {cached:.1f} reads fail instead of {plain:.1f}"
    )
    return ClaimFinding(hits > MOSTLY and cached * MUCH < plain, seen)


@claim_test(
    "9.5",
    "However, the failures at stage-out (writing data back to an SE) can lead to long workflow turnaround times.",
    needs=ALL,
    holds_if=f"more than {percent(MOSTLY)} of the writes that fail without caches, and longer by more than a job takes",
)
def failed_writes_remain(results: SampleSet) -> ClaimFinding:
    cached, plain = (results.mean(setups["d3f3"], "failed_writing") for setups in (CACHED, PLAIN))
    longer = results.mean(CACHED["d3f3"], "turnaround_s") - results.mean(CACHED["d3f1"], "turnaround_s")
    once = results.mean(CACHED["d3f1"], "execution_s")
    seen = (
        f"under d3f3 {cached:.1f} writes fail with caches, {plain:.1f} without; with caches the workflow takes"
        f" {minutes(longer)} longer than where none fail; a job takes {minutes(once)}"
    )
    return ClaimFinding(cached > MOSTLY * plain and longer > once, seen)


@claim_test(
    "9.6",
    "As a result, the turnaround time of W1 under d3f1 (highest delay, low failure rate) condition for both the"
    " approaches, the cache and the no-cache, is less than d2f2 (high delay, high failure rate) and d3f3"
    " (highest delay, highest failure rate).",
    needs=ALL,
    holds_if="under d3f1 less than under d2f2 and d3f3, with caches and without",
    runs=SEVERAL,
)
def delay_before_failures(results: SampleSet) -> ClaimFinding:
    times = [
        [results.mean(each[name], "turnaround_s") for name in ("d3f1", "d2f2", "d3f3")] for each in (CACHED, PLAIN)
    ]
    told = [", ".join(map(minutes, each)) for each in times]
    seen = f"under d3f1, d2f2, d3f3 with caches {told[0]}; without {told[1]}"
    return ClaimFinding(all(slow < middle and slow < worst for slow, middle, worst in times), seen)


CLAIMS: Final = (
    much_better_stage_in,
    little_at_d1f1,
    caches_even_out,
    grows_without,
    fewer_requests,
    shorter_jobs,
    shorter_flows,
    failures_cost_more,
    failures_repeat_jobs,
    few_failed_reads,
    failed_writes_remain,
    delay_before_failures,
)
