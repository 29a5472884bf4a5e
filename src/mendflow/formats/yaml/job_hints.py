"""How keys of jobs and steps are said here, by the words that people bring from other tools."""

from typing import Final

from mendflow.formats.hints import Hints, hints

FILES_OF_JOB: Final = (
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
        FILES_OF_JOB,
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
