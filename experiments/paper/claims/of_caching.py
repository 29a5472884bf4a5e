"""Figures 10 and 11: what caches do for the three workflows when the storage element is at its worst."""

from typing import Final

from experiments.paper.claims.judging import SEVERAL, ClaimFinding, SampleSet, claim_test, minutes, percent
from experiments.paper.settings import Setup
from experiments.paper.workflows import WORKFLOWS

CACHED: Final = {workflow: Setup(workflow, "d3f3", "C3") for workflow in WORKFLOWS}
PLAIN: Final = {workflow: Setup(workflow, "d3f3", "none") for workflow in WORKFLOWS}
GLOBAL: Final = {workflow: Setup(workflow, "d3f3", "global") for workflow in ("W2", "W3")}
ALL: Final = (*CACHED.values(), *PLAIN.values())
MUCH_MORE: Final = 0.20


def _saved(results: SampleSet) -> dict[str, float]:
    """The part of the time for reading that caches save."""
    return {
        each: 1 - results.mean(CACHED[each], "stage_in_s") / results.mean(PLAIN[each], "stage_in_s")
        for each in WORKFLOWS
    }


@claim_test(
    "10.1",
    "We can see that the cache mechanism performs much better for a workflow where the jobs show one-to-one"
    " dependency, i.e. the W1 workflow, because the jobs from step1 can be efficiently scheduled to the pilot"
    " jobs that hold the results of the jobs from step0.",
    needs=ALL,
    holds_if=f"more of W1 than of W2 and of W3, by more than {percent(MUCH_MORE)} of that time; weakly if by less",
    runs=SEVERAL,
)
def best_for_chains(results: SampleSet) -> ClaimFinding:
    saved = _saved(results)
    seen = "caches save of the time for reading " + ", ".join(
        f"{percent(part)} ({each})" for each, part in saved.items()
    )
    ahead = saved["W1"] - max(saved["W2"], saved["W3"])
    return ClaimFinding(ahead > 0, seen, weakly=ahead <= MUCH_MORE)


@claim_test(
    "10.2",
    "For the workflows W2 and W3, the cache hit rate is less than the one in W1 because the jobs from step1 may"
    " be forced to read from two different pilots (in case of W3) or two jobs in different pilots may read from"
    " a single pilot that is holding the data (in case of W2).",
    needs=tuple(CACHED.values()),
    holds_if="fewer of W2 and of W3 than of W1",
    runs=SEVERAL,
)
def fewer_hits(results: SampleSet) -> ClaimFinding:
    hits = {each: results.mean(setup, "hit_ratio") for each, setup in CACHED.items()}
    seen = "hits: " + ", ".join(f"{percent(part)} ({each})" for each, part in hits.items())
    return ClaimFinding(hits["W1"] > max(hits["W2"], hits["W3"]), seen)


@claim_test(
    "10.3",
    "On average, for all the three workflows, the system with the pilot cache behaves better than the one without it.",
    needs=ALL,
    holds_if="both reading and jobs as a whole take less, for each workflow",
)
def better_for_all(results: SampleSet) -> ClaimFinding:
    saved = _saved(results)
    gains = {
        each: results.mean(PLAIN[each], "execution_s") - results.mean(CACHED[each], "execution_s") for each in WORKFLOWS
    }
    seen = "a job takes less by " + ", ".join(f"{minutes(gain)} ({each})" for each, gain in gains.items())
    return ClaimFinding(min(saved.values()) > 0 and min(gains.values()) > 0, seen)


@claim_test(
    "10.4",
    "However, the cache hits can be further increased in case of W2 and W3 if a system with a global cache is used.",
    needs=(*GLOBAL.values(), CACHED["W2"], CACHED["W3"]),
    holds_if="more with those of the site, for W2 and W3",
)
def global_cache(results: SampleSet) -> ClaimFinding:
    told = {each: (results.mean(CACHED[each], "hit_ratio"), results.mean(GLOBAL[each], "hit_ratio")) for each in GLOBAL}
    seen = "; ".join(
        f"{each}: {percent(host)} with caches of hosts, {percent(site)} with those of the site"
        for each, (host, site) in told.items()
    )
    return ClaimFinding(all(site > host for host, site in told.values()), seen)


@claim_test(
    "11.1",
    "It is clear that the pilots with data cache help in improving the workflow execution time when the storage"
    " resources are in the stressed conditions.",
    needs=ALL,
    holds_if="shorter with caches, for each workflow",
    runs=SEVERAL,
)
def shorter_flows(results: SampleSet) -> ClaimFinding:
    told = {
        each: (results.mean(CACHED[each], "turnaround_s"), results.mean(PLAIN[each], "turnaround_s"))
        for each in WORKFLOWS
    }
    seen = "; ".join(
        f"{each}: {minutes(cached)} with caches, {minutes(plain)} without" for each, (cached, plain) in told.items()
    )
    return ClaimFinding(all(cached < plain for cached, plain in told.values()), seen)


CLAIMS: Final = (
    best_for_chains,
    fewer_hits,
    better_for_all,
    global_cache,
    shorter_flows,
)
