"""Words that people bring from other tools, and how the same is said in a flow file.

In a table the words of each hint stand side by side. Capitals, `-` and `_` do not matter: `maxRetries`, `max-retries`
and `max_retries` are one word."""

import re
from typing import Final

Hints = dict[str, str]


def plain(word: str) -> str:
    """The word without capitals, `-` and `_`."""
    return re.sub(r"[^a-z0-9]", "", word.lower())


def hints(*groups: tuple[str, str]) -> Hints:
    """A table of hints: the words of each group, and the sentence that answers them."""
    return {plain(word): sentence for words, sentence in groups for word in words.split()}


def hint_for(word: str, table: Hints) -> str:
    return table.get(plain(word), "")


def with_hint(message: str, word: str, table: Hints) -> str:
    """The message, and how it is said here, if that is known."""
    hint = hint_for(word, table)
    return f"{message}; {hint}" if hint else message


LEFT_FILES: Final = (
    "the files that a job leaves stand under `files:`, such as `files: {table: out.tsv}`; values are lines "
    '`key=value` that it writes to the file "$MENDFLOW_OUTPUT"'
)
FAILED_OR_ENDED: Final = (
    "what is done when a job has failed is `on-failure: COMMAND` at the job; what is done in any case is a job that "
    "`needs` it, with `if: always()`"
)
NEEDED: Final = "what a job waits for is `needs: NAME`; for jobs whose results it uses it waits by itself"
LOOP: Final = "a loop is `for-each: {sample: [a, b]}`; two names are all combinations"
PARALLEL: Final = (
    "how many iterations run at a time is said inside the loop: `for-each: {sample: [...], max-parallel: 4}`; "
    "`mendflow run -j 4` limits all jobs"
)
SURROUNDINGS: Final = "what a job needs beside it are jobs of its own, or programs that its command starts"
CONTAINERS: Final = (
    "the image that a job runs in is `container: ubuntu:24.04`, or `container: {image: ..., mounts: ...}`"
)
PACKAGES: Final = (
    "the packages of a job are `environment: requirements.txt`, or a conda file, or a list such as `[numpy==2.1]`; "
    "modules of a cluster are `modules: [gcc/12.2]`"
)
WHERE: Final = (
    "where a job runs is said by `site:` or `hosts:`; queue, account and reservation are settings of a site, which "
    "`mendflow admin sites add` takes"
)
TRIED_AGAIN: Final = (
    "how often a failed job is tried again is `retries: 4`, or `retries: {times: 4, wait: 1 s, on: [75]}`"
)
PRINTED: Final = (
    "what a job prints is kept, and `mendflow logs` shows it; to have it in a file write `> out.txt` in `run:`, and "
    "`files: out.txt`"
)
TOLD_IN_FLOW: Final = (
    "who is told of a failure stands at the top of the flow: `on: {failure: {notify: https://example.org/hook}}`, for "
    "where it is deployed; `mendflow run --notify URL` tells of the end of one case"
)
TOLD: Final = "who is told how a case ended is said by `mendflow run --notify URL` or `mendflow admin webhooks add`"
TABLES: Final = (
    "a table is an input, `inputs: {samples: {type: table, default: samples.csv}}`, and `inputs.samples` the list of "
    'its rows: `for-each: {s: "${{ inputs.samples }}"}`, and then `${{ s.COLUMN }}`'
)
TITLE_AND_REST: Final = (
    "the title stands here and the rest beside it: `user-task: Publish?`, `role: editor`, `fields: {approved: yes or "
    "no}`, `deadline: 2 h`"
)
TOLERATED: Final = (
    "how many iterations may fail is said inside the loop: `for-each: {sample: [...], tolerate: 10 %}`, or "
    "`tolerate: 3`; all run, and of failed ones the results are null"
)
TOLERANCE_WORDS: Final = (
    "tolerate max-failures max-failed max-fail failures allow-failures allowed-failures failure-threshold "
    "failure-rate success-rate min-success max-failure-percentage max-fail-percentage optional tolerance"
)
LISTS_OF_LOOPS: Final = "the list has the element's name before it, as `for-each: {sample: [...]}`"
FILES_OF_A_LOOP: Final = (
    "the files of a loop are an input: `inputs: {samples: {type: files, default: PATTERN}}`, and then "
    '`for-each: {sample: "${{ inputs.samples }}"}` with `inputs: {in.txt: "${{ sample }}"}`'
)

STARTING: Final = (
    "what starts cases by itself, and who is told of their ends, stands under `on:`, such as `on: {files: {in: "
    'drop:incoming, match: "*.csv"}, failure: {notify: https://example.org/hook}}`'
)
CLOCK: Final = (
    'at which times a flow starts by itself is `on: {schedule: "30 2 * * *"}`, which counts once it is deployed'
)
STEP_HINTS: Final[Hints] = hints(
    ("schedule cron", CLOCK),
    (
        "resources requirements requests hints resource requirement",
        "what a job needs stands beside `run`: `memory: 2 GB`, `cpus: 4`, `time: 1 h`",
    ),
    (
        "outputs",
        "lines `key=value` that a job writes to the file $MENDFLOW_OUTPUT are its outputs, and `files:` names "
        "the files that it leaves",
    ),
    (
        "output out artifact artifacts artefacts produces creates products product targets target provides result "
        "results save emit emits return returns",
        LEFT_FILES,
    ),
    (
        "publish-dir store-dir archive upload store",
        "files that the flow gives are its `outputs:`, such as `outputs: {table: ${{ jobs.a.files.table }}}`, and "
        "`mendflow run` writes them to ./outputs; `publish:` of a job gives its files a logical name or takes them "
        "to a URL",
    ),
    (
        "approval approve human manual interactive",
        "a person's work is a user task: `user-task: Publish?` with `role:`, and `deadline:` if you like",
    ),
    (
        "input in source src path download volumes volume mounts mount copy",
        "what a job takes stands under `inputs:`, such as `inputs: {in.txt: data/a.txt}`",
    ),
    (
        "stdin",
        "a command reads a file with `< in.txt` in `run:`, and the file stands under `inputs:`, such as "
        "`inputs: {in.txt: data/a.txt}`",
    ),
    ("stdout stderr log logs error", PRINTED),
    (
        "finally cleanup ensure onerror teardown after-script post on-fail on-exit rescue except catch errback",
        FAILED_OR_ENDED,
    ),
    ("on-success then success next", "what is done after a job is another job, with `needs: NAME`"),
    ("before downstream", "each job says what it waits for itself: the later one has `needs: NAME`"),
    ("depends dependency upstream require wait-for follows previous parent parents afterok", NEEDED),
    ("afterany trigger-rule", "a job that runs however others ended has `after: NAME`, or `if: always()`"),
    ("afternotok", "a job that runs if another failed has `if: failed(jobs.NAME)`"),
    (
        "args arguments params parameters kwargs",
        "arguments of a function stand under `with:`, those of a command in `run:` itself, as `${{ inputs.NAME }}`",
    ),
    (
        "threads cores ncpus cpu nproc cores-min num-cpus cpus-per-task cpus-per-node ppn procs np slots "
        "processes pool-slots",
        "how many CPUs a job needs is `cpus: 4`",
    ),
    (
        "ntasks tasks-per-node ntasks-per-node nodes nnodes mpi num-nodes",
        "a job runs on one machine, and how many CPUs it needs is `cpus: 4`; many small ones are a loop, such as "
        "`for-each: {sample: [a, b]}`",
    ),
    ("tasks", "several jobs stand under `jobs:`, each with its name; how many CPUs one needs is `cpus: 4`"),
    (
        "mem mem-mb mem-mib mem-gb ram ram-min memory-mb memory-gb max-memory memory-limit vmem pmem mem-per-cpu",
        "how much memory a job needs is `memory: 2 GB`",
    ),
    ("gpu gres gpus-per-node gpus-per-task ngpus gpu-type accelerator", "how many GPUs a job needs is `gpus: 1`"),
    (
        "tmp tmpdir tmpdir-min disk-mb disk-gb storage scratch shadow",
        "each job has a folder of its own, and how much disk it needs is `disk: 10 GB`",
    ),
    (
        "timeout timeout-minutes timeout-seconds walltime wall-time runtime duration execution-timeout time-limit "
        "max-time max-runtime active-deadline-seconds deadline sla time-min",
        "how long a job may take is `time: 1 h`",
    ),
    ("services", SURROUNDINGS),
    (
        "conda mamba venv virtualenv environment-file module module-load envmodules load spack pip packages "
        "requirements conda-env conda-environment software dependencies-file",
        PACKAGES,
    ),
    ("image docker singularity apptainer podman", CONTAINERS),
    ("max-parallel max-forks concurrency parallelism maxforks", PARALLEL),
    (
        "fail-fast",
        "`on-failure: stop` at the top of the flow, or inside the loop, ends all at once when a job has failed",
    ),
    (TOLERANCE_WORDS, TOLERATED),
    (
        "continue-on-error ignore-errors ignore-error ignore-failure allow-failure error-strategy max-errors "
        "keep-going",
        "what is to run although this job failed has `after:` in place of `needs:`; a loop has `tolerate: 10 %`",
    ),
    ("on trigger triggers", "which failures are tried again is said as `retries: {times: 4, on: [75]}`"),
    (
        "retry attempts max-retries max-attempts max-tries backoff retry-on exit-codes retry-strategy retry-policy "
        "retry-exponential-backoff restart-times restart requeue",
        TRIED_AGAIN,
    ),
    ("retry-delay retry-interval retry-backoff", "the wait before a retry is `retries: {times: 4, wait: 1 s}`"),
    ("matrix strategy foreach for loop each items iterate with-items with-param scatter map expand wildcards", LOOP),
    (
        "array with-sequence range",
        "a loop over numbers is `for-each: {from: 1, to: 10}`, and `${{ item }}` is the number",
    ),
    (
        "repeat times",
        "several times is a loop, `for-each: {from: 1, to: 3}`; again after a failure is `retries: 3`",
    ),
    ("delay sleep begin", "a step `wait: 5 s` waits; before a retry it is `retries: {times: 3, wait: 5 s}`"),
    ("zip", "lists go side by side with `zip: true` inside the loop: `for-each: {x: [...], y: [...], zip: true}`"),
    ("uses include import subworkflow subflow workflow flow", "another flow is run with `call: other.yaml`"),
    (
        "runs-on queue partition node nodelist node-list node-selector cluster pool executor constraint qos account "
        "project reservation cluster-options sbatch exclude exclusive label",
        WHERE,
    ),
    ("arch architecture", "the kind of machine is `machine: x86_64`"),
    ("os platform", "the system is `system: linux`"),
    ("unless skip skip-if enabled disabled only", "a job runs only if its condition holds: `if: inputs.size > 10`"),
    ("user", "whose job it is, for fair shares, is said by `owner:`"),
    ("weight nice", "which of the waiting jobs runs first is said by `priority: 5`"),
    ("id job-name title", "a job's name stands before the colon, as in `jobs: {align: {run: ...}}`"),
    (
        "description doc docs help comment message labels tag tags",
        "for people there are comments, `# ...`; a flow has `description:`",
    ),
    (
        "chdir workdir work-dir working-directory cwd dir directory",
        "each job runs in a folder of its own, which has what stands under `inputs:`; write `cd` in `run:` to go on",
    ),
    ("mail mail-user mail-type email email-on-failure notify notifications alert webhook slack", TOLD_IN_FLOW),
    ("benchmark", "how long a job took, and what it used, is in the report of the case, and `mendflow items` says it"),
    ("cached memoize memoization cacheable cache-key ttl", "whether an earlier result may be used is `cache: true`"),
    ("type kind class operator template", "a job needs no type: it is one by `run:`, `python:`, `call:`, `user-task:`"),
    ("extends inherits defaults default", "what holds for every job stands under `defaults:` at the top of the flow"),
    ("interpreter lang language", "what runs the command is said by `shell:`, such as `shell: python`"),
    ("undo rollback", "how a completed job is undone is `compensation: COMMAND`"),
    (
        "pre setup before-script hooks init",
        "what comes before the command stands in `run:` too, which may have several lines",
    ),
    ("env-file env-from dotenv", "`env:` is a map, as `env: {NAME: value}`; a file of them is read by `run:`"),
    ("secrets secret", "a secret stays out of the flow: set it in the environment of the pilot, or read it in `run:`"),
    ("variables", "variables that a command sees are `env: {NAME: value}`"),
    ("with", "a command takes values as `${{ inputs.NAME }}` in `run:`, or by `env: {NAME: value}`"),
    ("data", "what a job takes are files under `inputs:`, and values as `${{ inputs.NAME }}` in `run:`"),
    ("role", "a person's work is a user task: `user-task: Publish?` with `role:`"),
    (
        "email-step http sql",
        "whatever a program can do is a command: `run: curl ...`",
    ),
)
"""For keys of jobs and steps."""

KIND_HINTS: Final[Hints] = hints(
    ("try", "a part of the flow whose faults are caught is `scope: ...` with `catch: {do: ...}`"),
    ("switch case branch", "a choice is `choose: [{when: CONDITION, do: ...}, {otherwise: ...}]`"),
    ("sleep delay pause sensor", "`wait: 5 s` waits"),
    ("sequence", "steps one after another are `steps: [...]`"),
    ("print echo log", "a command prints: `run: echo hello`"),
    ("http email notify sql rest", "whatever a program can do is a command: `run: curl ...`"),
    ("noop nothing dummy pass", "`empty:` does nothing"),
    ("notebook", "a notebook is run by a command: `run: jupyter execute analysis.ipynb`"),
    ("rscript r julia perl", "what runs a script is said by `shell: Rscript {0}`, beside `run:`"),
    (
        "python-callable function func callable py",
        "a Python function is `python: file.py:function`, with its arguments under `with:`",
    ),
    ("reduce gather", 'a job gets all files of a loop by `inputs: {parts/: "${{ jobs.NAME.files.FILE }}"}`'),
    ("if for-each needs", "`if`, `for-each` and `needs` stand beside what is done, such as `run: COMMAND`"),
)
"""For steps of which nothing says what they do."""

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


CONTAINER_HINTS: Final[Hints] = hints(
    ("name container docker uri url", "the image is `image: ubuntu:24.04`"),
    ("volumes volume mount binds bind", "what is mounted is `mounts: [/data:/in:ro]`"),
    ("args arguments flags run-options container-options", "options of the runtime are `options: [--shm-size=1g]`"),
    ("env environment", "variables are `env:` of the job, beside `container:`"),
    ("gpus cpus memory time", "what a job needs stands beside `container:`, not in it"),
    ("user uid", "a job runs as its pilot's user, in a container too"),
    ("engine runtime", "what runs images is a setting of the pilot: `mendflow pilot --container-runtime podman`"),
)
LIMIT_HINTS: Final[Hints] = hints(
    (
        "memory cpus cpu time timeout disk gpus mem",
        "`memory`, `cpus`, `time` and `disk` stand at the job itself, and bound it too",
    ),
    ("nofile open files file fds descriptors", "how many files it may have open is `open-files: 1024`"),
    ("nproc procs threads", "how many processes it may have is `processes: 100`"),
    ("fsize", "how large a file it may write is `file-size: 10 GB`"),
)
"""For keys of `limits`."""

LOOP_HINTS: Final[Hints] = hints(
    ("parallel max concurrency workers threads jobs limit batch", "how many run at a time is `max-parallel: 4`"),
    ("fail-fast failfast", "`on-failure: stop` ends the others when one has failed"),
    ("continue-on-error", "how many may fail is `tolerate: 10 %`"),
    ("include", "a further element stands in the list itself; `zip: true` takes lists side by side"),
    ("exclude except", "an element is left out by a condition of the job, such as `if: sample != 'a'`"),
    (
        "var variable loop-var name item-name iterator",
        "the name of the element stands before the list, as `for-each: {sample: [...]}`",
    ),
    ("range numbers count", "numbers are `for-each: {from: 1, to: 10}`"),
    ("matrix product", "lists stand in `for-each` itself, as `for-each: {x: [...], y: [...]}`"),
    ("list values each over", LISTS_OF_LOOPS),
    ("glob pattern files file path paths", FILES_OF_A_LOOP),
    (
        "min-failures max-failures max-failed max-fail failures allow-failures allowed-failures allow-failure "
        "failure-threshold failure-rate success-rate ignore-errors optional tolerance max-fail-percentage",
        "how many may fail is `tolerate: 10 %`, or `tolerate: 3`",
    ),
    (
        "step by increment stride",
        "numbers with a step are a list with a name: `for-each: {n: {from: 0, to: 10, step: 2}}`",
    ),
    ("order sequential serial", "one after another is `in: sequence`"),
)
"""For keys of `for-each` that are no lists."""

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

VARIABLE_HINTS: Final[Hints] = hints(
    ("env", "a command reads its environment itself: `$NAME`"),
    ("secrets vars", "set it in the environment of the pilot, and read it in the command as `$NAME`"),
    ("params param config args parameters workflow", "what the flow is given is `inputs.NAME`"),
    (
        "needs steps tasks task rules step",
        "the result of a job is `jobs.NAME.outputs.KEY`, and its files `jobs.NAME.files.FILE`",
    ),
    (
        "matrix wildcards each",
        "the element of a loop has its own name: `${{ sample }}` after `for-each: {sample: [...]}`",
    ),
    ("item index", "`item` and `index` are there in a job with `for-each:`"),
    (
        "case run github job runner context",
        "a command finds its case, its job and its attempt as `$MENDFLOW_CASE`, `$MENDFLOW_JOB` and "
        "`$MENDFLOW_ATTEMPT`",
    ),
    ("fault error exception", "`fault` is there in what `on-failure:` and `catch:` do"),
    (
        "input output threads resources log",
        "files stand under `inputs:` and `files:`, and the command names their paths",
    ),
)
"""For names in expressions that nothing has defined."""

WORDS_OF_PYTHON: Final = {"True": "true", "False": "false", "None": "null", "nil": "null", "NULL": "null"}
