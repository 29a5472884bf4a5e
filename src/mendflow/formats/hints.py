"""Words that people bring from other tools, and how the same is said in a flow file."""

from typing import Final

STEP_HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("resources", "requirements"),
        "what a job needs stands beside `run`: `memory: 2 GB`, `cpus: 4`, `time: 1 h`",
    ),
    "outputs": "lines `key=value` that a job writes to the file $MENDFLOW_OUTPUT are its outputs, and `files:` names "
    "the files that it leaves",
    **dict.fromkeys(
        ("approval", "approve", "human", "manual"),
        "a person's work is a user task: `user-task: Publish?` with `role:`, and `deadline:` if you like",
    ),
    "input": "what a job takes stands under `inputs:`, such as `inputs: {in.txt: data/a.txt}`",
    "output": "the files that a job leaves stand under `files:`, such as `files: {table: out.tsv}`",
    **dict.fromkeys(
        ("finally", "cleanup", "clean-up", "ensure", "onerror", "on-error", "on_error"),
        "what is done when a job has failed is `on-failure: COMMAND` at the job; what is done in any case is a job "
        "that `needs` it, with `if: always()`",
    ),
    **dict.fromkeys(("args", "arguments", "params", "parameters", "kwargs"), "arguments stand under `with:`"),
    **dict.fromkeys(("threads", "cores", "ncpus", "cpu"), "how many CPUs a job needs is `cpus: 4`"),
    **dict.fromkeys(("mem", "mem_mb", "ram"), "how much memory a job needs is `memory: 2 GB`"),
    **dict.fromkeys(
        ("container", "image", "docker", "singularity", "apptainer", "conda", "environment-file"),
        "a job runs in the environment of its pilot; start the container or the environment in `run:`",
    ),
    **dict.fromkeys(
        ("max-parallel", "max_parallel", "concurrency", "parallelism"),
        "how many iterations run at a time is said inside the loop: `for-each: {sample: [...], max-parallel: 4}`; "
        "`mendflow run -j 4` limits all jobs",
    ),
    "tolerate": "how many iterations may fail is said inside the loop: `for-each: {sample: [...], tolerate: 10 %}`",
    **dict.fromkeys(
        ("continue-on-error", "continue_on_error", "ignore-errors", "allow-failure", "allow_failure", "errorStrategy"),
        "what is to run although this job failed has `after:` in place of `needs:`; a loop has `tolerate: 10 %`",
    ),
    **dict.fromkeys(
        ("on", "trigger", "triggers"), "which failures are tried again is said as `retries: {times: 4, on: [75]}`"
    ),
    **dict.fromkeys(
        (
            "retry",
            "attempts",
            "max-retries",
            "max_retries",
            "maxRetries",
            "backoff",
            "retry-on",
            "retry_on",
            "exit-codes",
        ),
        "how often a failed job is tried again is `retries: 4`, or `retries: {times: 4, wait: 1 s, on: [75]}`",
    ),
    **dict.fromkeys(
        ("matrix", "strategy", "foreach", "loop", "with-items", "with_items", "map", "scatter", "expand"),
        "a loop is `for-each: {sample: [a, b]}`; two names are all combinations",
    ),
    "zip": "lists go side by side with `zip: true` inside the loop: `for-each: {x: [...], y: [...], zip: true}`",
    **dict.fromkeys(("uses", "include", "subworkflow", "workflow"), "another flow is run with `call: other.yaml`"),
    **dict.fromkeys(("runs-on", "queue", "partition", "node"), "where a job runs is said by `site:` or `hosts:`"),
}
"""For keys of jobs and steps."""

STARTING: Final = (
    "what starts cases by itself, and who is told of their ends, stands under `on:`, such as `on: {files: {in: "
    'drop:incoming, match: "*.csv"}, failure: {notify: https://example.org/hook}}`'
)
FLOW_HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(("trigger", "triggers", "watch", "notify", "notifications"), STARTING),
    **dict.fromkeys(
        ("schedule", "cron"), "no flow starts by the clock yet; have cron start a case by `mendflow start FLOW`"
    ),
    **dict.fromkeys(("params", "parameters", "config"), "what a flow is given stands under `inputs:`"),
    **dict.fromkeys(
        ("tasks", "rules", "processes", "stages", "workflow"), "what a flow does stands under `jobs:` or `steps:`"
    ),
    **dict.fromkeys(
        ("resources", "container", "image", "threads", "retry", "retries", "memory", "cpus", "time"),
        "what holds for every job stands under `defaults:`, such as `defaults: {memory: 2 GB, retries: 2}`",
    ),
    "matrix": STEP_HINTS["matrix"],
    **dict.fromkeys(("flow", "title", "id"), "a flow's name is `name:`"),
}
"""For keys of the flow itself."""

ON_HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("file", "arrival", "watch", "path"), 'files that arrive are `files: {in: FOLDER, match: "*.csv"}`'
    ),
    **dict.fromkeys(("error", "failed", "fail", "on-failure"), "who is told of failures is `failure: {notify: URL}`"),
    **dict.fromkeys(("completed", "complete", "done"), "who is told of good ends is `success: {notify: URL}`"),
    **dict.fromkeys(("end", "ended", "always", "cancelled"), "who is told of every end is `finished: {notify: URL}`"),
    **dict.fromkeys(
        ("notify", "webhook", "email"), "say after which end, such as `failure: {notify: https://example.org/hook}`"
    ),
    **dict.fromkeys(
        ("push", "pull_request", "workflow_dispatch", "workflow_call", "manual"),
        "`mendflow start FLOW` starts a case, from wherever that happens",
    ),
}
"""For keys below `on` of a flow."""


def told_with_hint(message: str, word: str, hints: dict[str, str]) -> str:
    """The message, and how it is said here, if that is known."""
    hint = hints.get(word) or hints.get(word.lower())
    return f"{message}; {hint}" if hint else message
