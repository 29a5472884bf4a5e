"""Figure 12: the part of the reads that caches serve, by scheme and workflow.

The storage element is at its best here, so that no job runs twice and each file is read as often as its workflow
says. What the paper says of C1 and C2 on W2 and W3 it explains by jobs that are given to a pilot with one of their
files. That is what waitForData does: so where it says how much they differ, they are compared with it."""

from typing import Final

from experiments.paper.claims.judging import SEVERAL, ClaimFinding, SampleSet, claim_test, percent
from experiments.paper.settings import Setup
from experiments.paper.workflows import WORKFLOWS

SCHEMES: Final = ("C1", "C2", "C2w", "C3")
NAMES: Final = {
    "C1": "C1, shared on the host",
    "C2": "C2, each pilot's own",
    "C2w": "C2 with waitForData",
    "C3": "C3, shared with waitForData",
}
SETUPS: Final = {(workflow, scheme): Setup(workflow, "d1f1", scheme) for workflow in WORKFLOWS for scheme in SCHEMES}
ALL: Final = tuple(SETUPS.values())

SLIGHTLY: Final = 0.10
"""What is "marginally" or "only slightly" better is so by less than this part of all reads."""
SEVERELY: Final = 0.25
"""What is severely reduced is so by more than this part of all reads."""
NEARLY: Final = 0.05
"""What is equal differs by less than this part of all reads: by fewer than four files of W1."""


def _hits(results: SampleSet, workflow: str, scheme: str) -> float:
    return results.mean(SETUPS[workflow, scheme], "hit_ratio")


def _shares_text(results: SampleSet, workflow: str, *schemes: str) -> str:
    return ", ".join(f"{percent(_hits(results, workflow, each))} ({NAMES[each]})" for each in schemes)


@claim_test(
    "12.1",
    "For the serial chain workflow (W1), the single pilot cache and the share cache with the waitForData"
    " policy, as explained in Section IV-E, yield equal hit rates because the jobs have a one-to-one data"
    " dependency and they are scheduled to those pilot jobs that are holding the required files in their caches.",
    needs=ALL,
    holds_if=f"less than {percent(NEARLY)} of the reads apart, and more than {percent(1 - NEARLY)} each",
)
def equal_for_chains(results: SampleSet) -> ClaimFinding:
    own, shared = _hits(results, "W1", "C2w"), _hits(results, "W1", "C3")
    return ClaimFinding(
        abs(own - shared) < NEARLY and min(own, shared) > 1 - NEARLY, f"W1: {_shares_text(results, 'W1', 'C2w', 'C3')}"
    )


@claim_test(
    "12.2",
    "When the waitForData policy is not in use, the cache hit rate is severally reduced because the TaskQueue"
    " does not wait for the pilot jobs with the required data to request the real job.",
    needs=ALL,
    holds_if=f"less by more than {percent(SEVERELY)} of the reads, of either kind",
)
def reduced_without_waiting(results: SampleSet) -> ClaimFinding:
    own = _hits(results, "W1", "C2w") - _hits(results, "W1", "C2")
    shared = _hits(results, "W1", "C3") - _hits(results, "W1", "C1")
    return ClaimFinding(min(own, shared) > SEVERELY, f"W1: {_shares_text(results, 'W1', *SCHEMES)}")


@claim_test(
    "12.3",
    "In the absence of a global cache, the waitForData approach appears to be fundamental to achieve a good"
    " cache hit ratio because it emphasises more on data availability in the job scheduling process to increase"
    " the probability of cache hit.",
    needs=ALL,
    holds_if=f"more by more than {percent(SLIGHTLY)} of the reads, of either kind, for each workflow",
)
def waiting_is_fundamental(results: SampleSet) -> ClaimFinding:
    more = [
        _hits(results, workflow, patient) - _hits(results, workflow, hasty)
        for workflow in WORKFLOWS
        for hasty, patient in (("C1", "C3"), ("C2", "C2w"))
    ]
    seen = "; ".join(f"{workflow}: {_shares_text(results, workflow, *SCHEMES)}" for workflow in WORKFLOWS)
    return ClaimFinding(min(more) > SLIGHTLY, seen)


def _sharing_gain(results: SampleSet, workflow: str) -> tuple[float, float]:
    """What sharing on a host adds: without waitForData, and with it."""
    return (
        _hits(results, workflow, "C1") - _hits(results, workflow, "C2"),
        _hits(results, workflow, "C3") - _hits(results, workflow, "C2w"),
    )


@claim_test(
    "12.4",
    "In Figure 12, we can see that the efficacy of the cache-per-host (C1) is more prominent for the splitting"
    " workflow (W2) and exhibits a marginally better cache hit ratio than the single pilot cache (C2) for the"
    " merging workflow (W3).",
    needs=ALL,
    holds_if=f"more in W2 than in W3, without waitForData and with it; in W3 by less than {percent(SLIGHTLY)}, but by"
    " something; weakly if so with waitForData only",
    runs=SEVERAL,
)
def sharing_helps_splits(results: SampleSet) -> ClaimFinding:
    split, merge = _sharing_gain(results, "W2"), _sharing_gain(results, "W3")
    seen = (
        f"sharing on the host adds {percent(split[0])} of the reads in W2 and {percent(merge[0])} in W3; with"
        f" waitForData {percent(split[1])} and {percent(merge[1])}"
    )
    more = split[0] > merge[0] and split[1] > merge[1]
    return ClaimFinding(more and 0 < merge[1] < SLIGHTLY, seen, weakly=not 0 < merge[0] < SLIGHTLY)


@claim_test(
    "12.5",
    "In case of the single-pilot-cache, we may achieve 50% cache hits at the most.",
    needs=ALL,
    holds_if="50 % or fewer, with waitForData too",
)
def half_at_most(results: SampleSet) -> ClaimFinding:
    hits = max(_hits(results, "W2", "C2"), _hits(results, "W2", "C2w"))
    return ClaimFinding(hits <= 0.5, f"W2: {_shares_text(results, 'W2', 'C2', 'C2w')}")


@claim_test(
    "12.6",
    "Due to the cache sharing, the jobs can discover files available in some other pilot's cache, thus"
    " increasing the cache hit ratio.",
    needs=ALL,
    holds_if="more if shared, without waitForData and with it",
)
def more_by_sharing(results: SampleSet) -> ClaimFinding:
    return ClaimFinding(min(_sharing_gain(results, "W2")) > 0, f"W2: {_shares_text(results, 'W2', *SCHEMES)}")


@claim_test(
    "12.7",
    "In any case, with the single-pilot-cache, 50% cache hits might be achievable.",
    needs=ALL,
    holds_if=f"with waitForData 50 %, give or take {percent(NEARLY)}",
)
def half_is_achievable(results: SampleSet) -> ClaimFinding:
    hits = _hits(results, "W3", "C2w")
    return ClaimFinding(0.5 - NEARLY <= hits <= 0.5 + NEARLY, f"W3: {_shares_text(results, 'W3', 'C2', 'C2w')}")


@claim_test(
    "12.8",
    "However, since the files produced by the step0 jobs are available randomly among the pilot jobs, the"
    " probability of finding two required files on the same WN is very low and therefore the cache hits ratio"
    " for the cache-per-host is only slightly higher than the single-pilot-cache for W3.",
    needs=ALL,
    holds_if=f"more if shared, by less than {percent(SLIGHTLY)} of the reads; weakly if so with waitForData only",
    runs=SEVERAL,
)
def slightly_more(results: SampleSet) -> ClaimFinding:
    plain, more = _sharing_gain(results, "W3")
    seen = f"W3: {_shares_text(results, 'W3', *SCHEMES)}"
    return ClaimFinding(0 < more < SLIGHTLY, seen, weakly=not 0 < plain < SLIGHTLY)


CLAIMS: Final = (
    equal_for_chains,
    reduced_without_waiting,
    waiting_is_fundamental,
    sharing_helps_splits,
    half_at_most,
    more_by_sharing,
    half_is_achievable,
    slightly_more,
)
