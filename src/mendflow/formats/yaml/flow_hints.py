"""How keys of the flow itself, of its inputs and of what starts it are said here, by the words that people bring from
other tools."""

from typing import Final

from mendflow.formats.hints import Hints, hints
from mendflow.formats.yaml.job_hints import (
    CLOCK,
    CONTAINERS,
    LOOP,
    NEEDED,
    PACKAGES,
    PARALLEL,
    TOLERANCE_WORDS,
    TOLERATED,
    WHERE,
)

TOLD: Final = "who is told how a case ended is said by `mendflow run --notify URL` or `mendflow admin webhooks add`"
STARTING: Final = (
    "what starts cases by itself, and who is told of their ends, stands under `on:`, such as `on: {files: {in: "
    'drop:incoming, match: "*.csv"}, failure: {notify: https://example.org/hook}}`'
)
FOR_EVERY_JOB: Final = (
    "what holds for every job stands under `defaults:`, such as `defaults: {memory: 2 GB, retries: 2}`"
)
FOR_ALL_FAILURES: Final = (
    "what is done when a job has failed is `on-failure: COMMAND` at that job; for several it is a job with "
    "`if: failed(jobs.a) || failed(jobs.b)`, and in any case one that `needs` them, with `if: always()`; who is told "
    "of a failed case is `on: {failure: {notify: https://example.org/hook}}`"
)
WHAT_IT_DOES: Final = "what a flow does stands under `jobs:` or `steps:`"
FLOW_HINTS: Final[Hints] = hints(
    ("trigger triggers watch notify notifications", STARTING),
    ("schedule cron schedule-interval start-date catchup", CLOCK),
    ("params parameters config configfile args arguments input", "what a flow is given stands under `inputs:`"),
    (
        "samples sample sheet samplesheet sample-sheet sample-table units lanes table csv pep pepfile",
        "what a flow is given stands under `inputs:`, as a list, `inputs: {samples: [a, b]}`, or as a table, "
        "`inputs: {samples: {type: table, default: samples.csv}}`",
    ),
    ("tasks rules rule processes process stages workflow pipeline dag templates spec all", WHAT_IT_DOES),
    (
        "resources threads retry retries memory cpus time mem cores cpu timeout walltime attempts max-retries site "
        "hosts disk gpus priority cache default-args default-resources",
        FOR_EVERY_JOB,
    ),
    ("conda environment modules venv requirements packages", f"{PACKAGES}; for all jobs it stands under `defaults:`"),
    ("image docker singularity apptainer podman", CONTAINERS),
    ("runs-on queue partition account executor cluster profile qos", WHERE),
    ("matrix strategy foreach for-each loop", LOOP),
    ("flow title id dag-id metadata", "a flow's name is `name:`"),
    ("doc docs comment author tags labels version", "what a flow is for is said by `description:`, and in comments"),
    ("cwl-version class api-version kind", "a flow file needs no version and no kind: `jobs:` or `steps:` make it one"),
    (
        "on-error onerror on-fail finally cleanup on-exit catch handlers teardown on-success onsuccess after",
        FOR_ALL_FAILURES,
    ),
    ("onstart setup", "what is done first is a job that the others `needs`"),
    ("max-parallel concurrency parallelism max-active-tasks", PARALLEL),
    (
        "limits limit",
        "a named limit is set by `mendflow limits set NAME COUNT`, and jobs use it by `limits: [NAME]`, all of them by"
        " `defaults: {limits: [NAME]}`",
    ),
    ("max-active-runs", "how many cases run at a time is not bounded; `mendflow run -j 4` limits the jobs of one"),
    ("fail-fast", "`on-failure: stop` ends all at once when a job has failed"),
    (TOLERANCE_WORDS, TOLERATED),
    ("include import imports uses call", "another flow is run by a job with `call: other.yaml`"),
    ("globals set secrets", "variables that all commands see are `env: {NAME: value}`; values given are `inputs:`"),
    ("cached", "`mendflow run --cached` uses earlier results of all jobs; `cache: true` says it of one"),
    ("logs log report", "`mendflow logs` shows what jobs printed, and `mendflow report` writes a page of the case"),
    ("workdir", "each job runs in a folder of its own, which has what stands under its `inputs:`"),
    ("deadline", "how long a job may take is `time: 1 h`, for every job `defaults: {time: 1 h}`"),
    ("email mail", TOLD),
    ("if when", "a condition stands at a job, as `if: inputs.size > 10`"),
    ("needs depends-on", NEEDED),
    ("run command cmd script", "a command stands at a job: `jobs: {build: make}`, or `steps: [make]`"),
    ("results", "what a flow returns is `outputs:`"),
    ("rules-file", "rules for a flow stand beside it in FLOW.rules.yaml"),
)
"""For keys of the flow itself."""

ON_HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("file", "arrival", "watch", "path"), 'files that arrive are `files: {in: FOLDER, match: "*.csv"}`'
    ),
    **dict.fromkeys(("error", "failed", "fail", "on-failure"), "who is told of failures is `failure: {notify: URL}`"),
    **dict.fromkeys(("completed", "complete", "done"), "who is told of good ends is `success: {notify: URL}`"),
    **dict.fromkeys(("end", "ended", "always", "cancelled"), "who is told of every end is `finished: {notify: URL}`"),
    **dict.fromkeys(
        ("cron", "every", "interval", "daily", "timer"),
        'times that are due are `schedule: "30 2 * * *"`, or a map with `cron`',
    ),
    **dict.fromkeys(
        ("notify", "webhook", "email"), "say after which end, such as `failure: {notify: https://example.org/hook}`"
    ),
    **dict.fromkeys(
        ("push", "pull_request", "workflow_dispatch", "workflow_call", "manual"),
        "`mendflow start FLOW` starts a case, from wherever that happens",
    ),
}
"""For keys below `on` of a flow."""

INPUT_HINTS: Final[Hints] = hints(
    ("value", "its value unless one is given is `default:`"),
    ("help doc docs label about", "what it is for is said by `description:`"),
    ("required optional nullable", "an input without `default:` is required, and one with it is not"),
    (
        "choices options enum allowed values min max minimum maximum validate regex",
        "which values are allowed is not said here; let the first job check it",
    ),
    ("glob pattern path paths files", "files are `{type: files, default: samples/*.txt}`"),
    ("items", "a list is `{type: list, default: [...]}`"),
)
TYPES_ELSEWHERE: Final[Hints] = hints(
    ("str text date datetime enum choice char secret url", "string"),
    ("int integer float double long real", "number"),
    ("bool flag", "boolean"),
    ("array sequence tuple set vector strings", "list"),
    ("dict object record mapping hash", "map"),
    ("path filename filepath", "file"),
    ("dir directory folder filelist paths glob", "files"),
    ("csv tsv sheet samplesheet dataframe df rows records samples", "table"),
)
"""Names of types in other tools, and ours."""
