"""Every promise that the product makes by now is named by a test that proves it."""

import re

import pytest

from tests.shape.source import python_files

PROMISES: dict[str, str] = {
    "FM-1": "control flow: sequence, parallel, loops, choice, nested to any depth",
    "FM-3": "the flow manager sequences, the meta-scheduler executes, one narrow interface between them",
    "FM-5": "four ways to submit a job",
    "FM-6": "files are staged in sequence or in parallel, and a job is submitted when all its data is there",
    "FM-7": "the states of a job, from staging to its end",
    "FM-8": "fault-tolerant patterns: re-stage, re-submit, re-poll, re-register, force-fail, force-complete",
    "FM-8a": "re-stage: the same again",
    "FM-8b": "re-stage: other transfer parameters",
    "FM-8c": "re-stage: another replica",
    "FM-8d": "re-stage: another target",
    "FM-10": "a transparent proxy: monitor, correlator, recovery, neither neighbour changed",
    "FM-11": "an extensible repository of job-flow patterns and fault patterns",
    "FM-12": "failures told apart: submission and execution",
    "AD-2": "a failure waits in a durable queue, or in memory where that was asked for",
    "AD-3": "a dispatcher classifies: recovery or compensation",
    "AD-4": "recovery goes through levels, each with its own wait",
    "EX-6": "conditions see case, item, job, fault, history and more, and what decided is told",
    "EX-7": "rules are added while cases run, at the right place, with the case at hand as cornerstone",
    "EX-8": "worklets are chosen by rules; a wrong choice is rejected, corrected and replaced",
    "EX-9": "external exceptions are raised from what the rules know; an unexpected one suspends and is mended",
    "EX-10": "one exception service serves several engines at once, remotely",
    "EX-11": "the engine's events and the service's decisions are one history, exported for process mining",
    "AD-6": "a person's work is an item like any other",
    "JS-1": "a job is acquired by compare-and-set; the loser is told that it is taken",
    "JS-2": "available, running, completed, failed, each transition recorded",
    "JS-3": "the same behaviour on Elasticsearch, OpenSearch, PostgreSQL and SQLite, by the same tests",
    "JS-4": "several servers on one store, with no leader and no duplicate execution",
    "JS-5": "heartbeats, orphans, alerts on over-long jobs, a manual release",
    "JS-6": "metadata of jobs is kept and searchable",
    "JS-7": "locks are leases; a holder that lost its lease can change nothing",
    "JS-8": "metrics, alerts, and notifications to clients",
    "JS-9": "no duplicates under faults; recovery within one lease plus seconds; more servers, more jobs",
    "PJ-1": "a central queue; pilots pull and need no open port",
}


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_is_named_by_a_test(promise: str) -> None:
    named = re.compile(rf"{promise}(?!\d)")
    naming = [path for path in python_files("tests") if path.name != "test_ids.py" and named.search(path.read_text())]
    assert naming, f"no test names {promise}: {PROMISES[promise]}"
