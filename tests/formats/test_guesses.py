"""What people guess from other tools is refused with how it is said here, one row a guess."""

import pytest

from tests.formats.conftest import Complaints, Reader

OF_JOBS = """
# resources, as Snakemake, Nextflow, Slurm, Kubernetes and CWL call them
resources: 2 GB | what a job needs stands beside `run`: `memory: 2 GB`
requests: {memory: 2 GB} | what a job needs stands beside `run`
threads: 4 | how many CPUs a job needs is `cpus: 4`
cpus-per-task: 4 | how many CPUs a job needs is `cpus: 4`
coresMin: 4 | how many CPUs a job needs is `cpus: 4`
ntasks: 4 | a job runs on one machine, and how many CPUs it needs is `cpus: 4`
nodes: 2 | a job runs on one machine
mem: 2G | how much memory a job needs is `memory: 2 GB`
mem_mb: 2000 | how much memory a job needs is `memory: 2 GB`
mem-per-cpu: 2G | how much memory a job needs is `memory: 2 GB`
gres: gpu:1 | how many GPUs a job needs is `gpus: 1`
scratch: 2 GB | how much disk it needs is `disk: 10 GB`
timeout: 1h | how long a job may take is `time: 1 h`
timeout-minutes: 5 | how long a job may take is `time: 1 h`
walltime: 01:00:00 | how long a job may take is `time: 1 h`
runtime: 60 | how long a job may take is `time: 1 h`
execution_timeout: 1h | how long a job may take is `time: 1 h`
queue: long | where a job runs is said by `site:` or `hosts:`
partition: long | queue, account and reservation are settings of a site
runs-on: big | where a job runs is said by `site:` or `hosts:`
executor: slurm | where a job runs is said by `site:` or `hosts:`
clusterOptions: -p long | where a job runs is said by `site:` or `hosts:`
os: linux | the system is `system: linux`
image: busybox | the image that a job runs in is `container: ubuntu:24.04`
singularity: busybox | the image that a job runs in is `container: ubuntu:24.04`
conda: env.yaml | `environment: requirements.txt`
envmodules: [gcc] | modules of a cluster are `modules: [gcc/12.2]`
nice: 3 | which of the waiting jobs runs first is said by `priority: 5`
# what it takes and leaves
input: a.txt | what a job takes stands under `inputs:`
volumes: [a] | what a job takes stands under `inputs:`
stdin: a.txt | a command reads a file with `< in.txt` in `run:`
output: a.txt | the files that a job leaves stand under `files:`
artifacts: {paths: [a]} | the files that a job leaves stand under `files:`
results: a.txt | the files that a job leaves stand under `files:`
outputs: {n: 3} | lines `key=value` that a job writes to the file $MENDFLOW_OUTPUT are its outputs
publishDir: out | files that the flow gives are its `outputs:`
stdout: a.txt | what a job prints is kept, and `mendflow logs` shows it
log: a.log | what a job prints is kept, and `mendflow logs` shows it
params: {x: 1} | those of a command in `run:` itself, as `${{ inputs.NAME }}`
args: [1] | arguments of a function stand under `with:`
working-directory: src | each job runs in a folder of its own
workdir: src | each job runs in a folder of its own
# order and conditions
depends: b | what a job waits for is `needs: NAME`
upstream: b | what a job waits for is `needs: NAME`
afterok: b | what a job waits for is `needs: NAME`
afterany: b | has `after: NAME`, or `if: always()`
afternotok: b | has `if: failed(jobs.NAME)`
trigger_rule: all_done | has `after: NAME`, or `if: always()`
downstream: b | each job says what it waits for itself
on-success: y | what is done after a job is another job, with `needs: NAME`
skip-if: x | a job runs only if its condition holds: `if: inputs.size > 10`
enabled: false | a job runs only if its condition holds
approve: x | a person's work is a user task
# loops
matrix: {x: [1]} | a loop is `for-each: {sample: [a, b]}`; two names are all combinations
strategy: {x: [1]} | a loop is `for-each: {sample: [a, b]}`
with_items: [a] | a loop is `for-each: {sample: [a, b]}`
withItems: [a] | a loop is `for-each: {sample: [a, b]}`
scatter: a | a loop is `for-each: {sample: [a, b]}`
expand: {a: [1]} | a loop is `for-each: {sample: [a, b]}`
array: 1-10 | a loop over numbers is `for-each: {from: 1, to: 10}`
repeat: 3 | several times is a loop, `for-each: {from: 1, to: 3}`; again after a failure is `retries: 3`
max-parallel: 4 | is said inside the loop: `for-each: {sample: [...], max-parallel: 4}`
maxForks: 4 | is said inside the loop: `for-each: {sample: [...], max-parallel: 4}`
tolerate: 10 % | is said inside the loop: `for-each: {sample: [...], tolerate: 10 %}`
max-failures: 10% | is said inside the loop: `for-each: {sample: [...], tolerate: 10 %}`
allow-failures: 3 | is said inside the loop: `for-each: {sample: [...], tolerate: 10 %}`
failure-threshold: 3 | is said inside the loop
success-rate: 90% | is said inside the loop
optional: true | is said inside the loop
notify: https://x | `on: {failure: {notify: https://example.org/hook}}`
zip: true | `for-each: {x: [...], y: [...], zip: true}`
fail-fast: true | `on-failure: stop` at the top of the flow
# failures
retry: 3 | is `retries: 4`, or `retries: {times: 4, wait: 1 s, on: [75]}`
maxRetries: 3 | is `retries: 4`
retryStrategy: {limit: 3} | is `retries: 4`
retry-on: 75 | `retries: {times: 4, wait: 1 s, on: [75]}`
retry_delay: 5 | the wait before a retry is `retries: {times: 4, wait: 1 s}`
restart_times: 5 | is `retries: 4`
on: [75] | `retries: {times: 4, on: [75]}`
continue-on-error: true | has `after:` in place of `needs:`; a loop has `tolerate: 10 %`
ignore_errors: true | has `after:` in place of `needs:`
errorStrategy: ignore | has `after:` in place of `needs:`
finally: y | `on-failure: COMMAND` at the job
after_script: y | `on-failure: COMMAND` at the job
onError: y | `on-failure: COMMAND` at the job
rollback: y | how a completed job is undone is `compensation: COMMAND`
# the rest
id: x | a job's name stands before the colon
tags: [x] | for people there are comments
email: me | `mendflow run --notify URL`
cached: true | whether an earlier result may be used is `cache: true`
type: shell | a job needs no type
extends: b | what holds for every job stands under `defaults:`
interpreter: python | what runs the command is said by `shell:`
before_script: y | what comes before the command stands in `run:` too
env_file: a.env | `env:` is a map
uses: other | another flow is run with `call: other.yaml`
schedule: daily | at which times a flow starts by itself is `on: {schedule:
"""
"""A guess and what answers it, one a line."""


def table(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(guess, hint) for guess, _, hint in (line.partition(" | ") for line in lines)]


@pytest.mark.parametrize(("key", "hint"), table(OF_JOBS))
def test_a_key_of_another_tool_is_answered_with_ours(complaints: Complaints, key: str, hint: str) -> None:
    found = complaints(f"jobs:\n  a:\n    run: x\n    {key}\n")
    assert len(found) == 1 and found[0].startswith("4:5: a `run` step has no key") and hint in found[0], found


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        (
            "catch: {do: y}",
            "`catch` goes with `scope`, not with `run`; what is done when a job has failed is `on-failure",
        ),
        ("undo: y", "not with `run`; how a completed job is undone is `compensation: COMMAND`"),
        ("deadline: 3 h", "not with `run`; how long a job may take is `time: 1 h`"),
        ("variables: {A: b}", "not with `run`; variables that a command sees are `env: {NAME: value}`"),
        ("with: {x: 1}", "not with `run`; a command takes values as `${{ inputs.NAME }}` in `run:`"),
        ("description: x", "not with `run`; for people there are comments"),
        ("while: 'true'", "this has `run` and `while`; a loop with a condition has what it repeats under `do:`"),
        ("parallel: 4", "this has `run` and `parallel`; how many iterations run at a time is said inside the loop"),
        ("wait: 5 s", "this has `run` and `wait`; a wait is a step of its own"),
        ("on-failure: finish", "here stands what to do when `a` has failed"),
        ("depends_on: b", "(did you mean `needs`?)"),
        ("dependsOn: b", "(did you mean `needs`?)"),
        ("when: 'true'", "(did you mean `if`?)"),
        ("environment: {A: b}", "environment variables are given under `env:`"),
        ("env: A=b", "a map of texts is expected here, such as {NAME: value} (did you mean `{A: b}`?)"),
        ("env: [A=b, C=d]", "(did you mean `{A: b, C: d}`?)"),
        ("env: [{name: A, value: b}]", "(did you mean `{A: b}`?)"),
        ("env: {A: }", '`A` has no value; a job has the variables of its pilot anyway (did you mean `A: ""`'),
        ("limits: {memory: 2 GB}", "`memory`, `cpus`, `time` and `disk` stand at the job itself"),
        ("foreach: [a]", "(did you mean `for-each`?)"),
        ("for_each: [a]", "(did you mean `for-each`?)"),
    ],
)
def test_a_key_in_the_wrong_place_or_form_is_answered_too(complaints: Complaints, key: str, hint: str) -> None:
    [said] = complaints(f"jobs:\n  a:\n    run: x\n    {key}\n")
    assert hint in said


@pytest.mark.parametrize(
    ("retries", "hint"),
    [
        ("{max: 3}", "has no key `max` (did you mean `times`?)"),
        ("{count: 3}", "(did you mean `times`?)"),
        ("{limit: 3}", "(did you mean `times`?)"),
        ("{attempts: 3}", "`times` counts the attempts after the first (did you mean `times: 2`?)"),
        ("{maxAttempts: 3}", "(did you mean `times: 2`?)"),
        ("{times: 3, exit-codes: [75]}", "has no key `exit-codes` (did you mean `on`?)"),
        ("{times: 3, if: memory}", "has no key `if` (did you mean `on`?)"),
        ("{times: 3, delay: 1 s}", "has no key `delay` (did you mean `wait`?)"),
        ("{times: 3, backoff: 2}", "the first wait is `wait: 1 s`, and each further one `factor: 2` times as long"),
        ("{times: 3, max-wait: 1 h}", "waits have no bound"),
        ("{times: 3, on: oom}", "`oom` is no cause of failures (did you mean `memory`?)"),
        ("{times: 3, on: timeout}", "(did you mean `time`?)"),
        ("{times: 3, on: any}", "without `on` all of the job's own are tried again"),
        ("{times: 3, on: exit 75}", "(did you mean `75`?)"),
        ("{times: 3, on: 130-145}", "exit codes stand in a list, one by one, as `on: [75, 76]`"),
        ("'3'", "(did you mean `3`?)"),
        ("always", "write `retries: 4`, or `retries: {times: 4, wait: 1 s, on: [75]}`"),
        ("[10 s, 20 s]", "a list has rules, such as `[{on: [75], times: 4, wait: 1 s}, {times: 1}]`"),
    ],
)
def test_what_retries_are_in_other_tools_is_answered_with_ours(complaints: Complaints, retries: str, hint: str) -> None:
    [said] = complaints(f"jobs:\n  a:\n    run: x\n    retries: {retries}\n")
    assert hint in said


FILES_HINT = "`inputs: {samples: {type: files, default: samples/*.txt}}`, and then `for-each: {sample:"


@pytest.mark.parametrize(
    ("loop", "hint"),
    [
        ("samples/*.txt", FILES_HINT),
        ("glob('samples/*.txt')", FILES_HINT),
        ("{sample: samples/*.txt}", FILES_HINT),
        ("{glob: samples/*.txt}", FILES_HINT),
        ("${{ glob('samples/*.txt') }}", "files are an input, `inputs: {samples: {type: files"),
        ("a b c", "(did you mean `[a, b, c]`?)"),
        ("trim", 'over what a job gives `"${{ jobs.trim.outputs }}"`, and over its files'),
        ("{sample: a}", "(did you mean `[a]`?)"),
        ("inputs.samples", '(did you mean `"${{ inputs.samples }}"`?)'),
        ("range(10)", "(did you mean `for-each: {from: 0, to: 9}`?)"),
        ("{i: range(10)}", "(did you mean `for-each: {from: 0, to: 9, as: i}`?)"),
        ("1..10", "(did you mean `for-each: {from: 1, to: 10}`?)"),
        ("10", "(did you mean `for-each: {from: 1, to: 10}`?)"),
        ("{from: 0, to: 10, step: 2}", "`for-each: {n: {from: 0, to: 10, step: 2}}`"),
        ("{n: {from: 0, to: 10, step: 0}}", "`step` is a whole number, and not 0"),
        ("{n: {from: a, to: 10}}", "`from` and `to` are whole numbers, or expressions that give them"),
        ("{n: {from: 0, to: 1000000}}", "these are 1,000,001 numbers"),
        ("{sample: [a], max-failures: 10%}", "how many may fail is `tolerate: 10 %`, or `tolerate: 3`"),
        ("sample in [a, b]", "(did you mean `{sample: [a, b]}`?)"),
        ("{sample: [a], parallel: 2}", "how many run at a time is `max-parallel: 4`"),
        ("{sample: [a], max_parallel: 2}", "(did you mean `max-parallel`?)"),
        ("{sample: [a], fail-fast: true}", "`on-failure: stop` ends the others when one has failed"),
        ("{sample: [a, b], exclude: [b]}", "an element is left out by a condition of the job"),
        ("{items: [a], var: s}", "the name of the element stands before the list"),
        ("{in: [a]}", "the list has the element's name before it, as `for-each: {sample: [...]}`"),
        ("{matrix: {x: [1], y: [2]}}", "lists stand in `for-each` itself"),
        ("{sample: {a: 1, b: 2}}", "a loop goes over a list"),
    ],
)
def test_what_loops_are_in_other_tools_is_answered_with_ours(complaints: Complaints, loop: str, hint: str) -> None:
    [said] = complaints(f"jobs:\n  a:\n    run: x\n    for-each: {loop}\n")
    assert hint in said


def test_a_list_may_have_the_name_of_a_hint(read: Reader) -> None:
    read("inputs: {files: {type: list}}\njobs:\n  a: {run: x, for-each: {files: '${{ inputs.files }}', path: [1]}}\n")


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("list", "`list` is a type, and what stands here is the default; in quotes it is that text"),
        ("int", "(did you mean `{type: number}`?)"),
        ("{type: str}", "(did you mean `string`?)"),
        ("{type: integer}", "(did you mean `number`?)"),
        ("{type: array}", "(did you mean `list`?)"),
        ("{type: directory}", "(did you mean `files`?)"),
        ("{required: true}", "an input without `default:` is required"),
        ("{value: 3}", "its value unless one is given is `default:`"),
        ("{help: x}", "what it is for is said by `description:`"),
        ("{glob: x}", "files are `{type: files, default: samples/*.txt}`"),
        ("{choices: [a]}", "which values are allowed is not said here"),
    ],
)
def test_what_inputs_are_in_other_tools_is_answered_with_ours(complaints: Complaints, value: str, hint: str) -> None:
    [said] = complaints(f"inputs:\n  x: {value}\njobs: {{a: x}}\n")
    assert hint in said


def test_the_name_of_a_type_in_quotes_is_a_default(read: Reader) -> None:
    assert read("inputs: {kind: 'list'}\njobs: {a: x}\n").inputs["kind"].default == "list"


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("env.HOME", "a command reads its environment itself: `$NAME`"),
        ("params.x", "what the flow is given is `inputs.NAME`"),
        ("needs.b.outputs.n", "the result of a job is `jobs.NAME.outputs.KEY`"),
        ("matrix.x", "the element of a loop has its own name"),
        ("item", "`item` and `index` are there in a job with `for-each:`"),
        ("github.sha", "`$MENDFLOW_CASE`"),
        ("True", "(did you mean `true`?)"),
        ("None", "(did you mean `null`?)"),
        ("b.outputs.n", "(did you mean `jobs.b`?)"),
        ("x", "(did you mean `inputs.x`?)"),
        ("inputs.y", "the flow has no input `y`; declare it under `inputs:`"),
        ("len(inputs.samples)", "how long a list or a text is says size(x)"),
        ("join(inputs.samples, ' ')", "put together by x.join(' ')"),
        ("str(1)", "a value as a text is string(x)"),
        ("max(1, 2)", "math.greatest(a, b)"),
        ("inputs.x and true", "for `and` write `&&`"),
        ("not inputs.x", "for `not` write `!`"),
        ("inputs.x = 3", "`=` means nothing here; to compare write `==`"),
        ("'b' if inputs.x else 'c'", "for `if` write `condition ? one : other`"),
        ("inputs.x == 'a' && 'b' || 'c'", "to choose a value write `condition ? one : other`"),
        ("inputs.samples | length", "for `|` write a function behind the value"),
    ],
)
def test_what_expressions_are_in_other_tools_is_answered_with_ours(
    complaints: Complaints, expression: str, hint: str
) -> None:
    head = "inputs: {x: 1, samples: [a]}\njobs:\n  b: y\n"
    [said] = complaints(f"{head}  a:\n    run: echo ${{{{ {expression} }}}}\n")
    assert hint in said


@pytest.mark.parametrize(
    ("step", "hint"),
    [
        ("{approval: Publish?}", "a person's work is a user task: `user-task: Publish?` with `role:`"),
        ("{human: Publish?}", "a person's work is a user task"),
        ("{uses: other.yaml}", "another flow is run with `call: other.yaml`"),
        ("{rum: x}", "(did you mean `run`?)"),
        ("{script: x}", "(did you mean `run`?)"),
        ("{script: model.py}", "is run by `run: python3 model.py`, with `inputs: [model.py]`"),
        ("{cmd: x}", "(did you mean `run`?)"),
        ("{command: x}", "(did you mean `run`?)"),
        ("{shell: x}", "(did you mean `run`?)"),
        ("{bash: x}", "(did you mean `run`?)"),
        ("{baseCommand: x}", "(did you mean `run`?)"),
        ("{python_callable: f}", "a Python function is `python: file.py:function`"),
        ("{sleep: 5}", "`wait: 5 s` waits"),
        ("{try: x}", "`scope: ...` with `catch: {do: ...}`"),
        ("{switch: x}", "a choice is `choose:"),
        ("{if: 'true'}", "stand beside what is done, such as `run: COMMAND`"),
    ],
)
def test_a_step_of_another_tool_is_answered_with_ours(complaints: Complaints, step: str, hint: str) -> None:
    found = complaints(f"jobs:\n  a: {step}\n")
    assert len(found) == 1 and "nothing says what this step does" in found[0] and hint in found[0], found


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        (
            "trigger: {schedule: '0 2 * * *'}",
            "what starts cases by itself, and who is told of their ends, stands under",
        ),
        ("schedule: '0 2 * * *'", "at which times a flow starts by itself is `on: {schedule:"),
        ("flow: night", "a flow's name is `name:`"),
        ("dag_id: night", "a flow's name is `name:`"),
        ("config: x", "what a flow is given stands under `inputs:`"),
        ("configfile: x", "what a flow is given stands under `inputs:`"),
        ("tasks: [x]", "what a flow does stands under `jobs:` or `steps:`"),
        ("spec: {x: 1}", "what a flow does stands under `jobs:` or `steps:`"),
        ("cwlVersion: v1.2", "a flow file needs no version and no kind"),
        ("apiVersion: v1", "a flow file needs no version and no kind"),
        ("timeout: 1 h", "what holds for every job stands under `defaults:`"),
        ("default_args: {retries: 2}", "what holds for every job stands under `defaults:`"),
        ("image: busybox", "the image that a job runs in is `container: ubuntu:24.04`"),
        ("partition: long", "where a job runs is said by `site:` or `hosts:`"),
        ("max-parallel: 3", "`mendflow run -j 4` limits all jobs"),
        ("onerror: y", "is `on-failure: COMMAND` at that job; for several it is a job with `if: failed(jobs.a)"),
        ("finally: y", "in any case one that `needs` them, with `if: always()`"),
        ("include: x", "another flow is run by a job with `call: other.yaml`"),
        ("needs: x", "what a job waits for is `needs: NAME`"),
        ("env_vars: {A: b}", "(did you mean `env`?)"),
        ("params: {x: 1}", "what a flow is given stands under `inputs:`"),
        ("retries: 3", "what holds for every job stands under `defaults:`"),
        ("matrix: {x: [1]}", "a loop is `for-each: {sample: [a, b]}`"),
    ],
)
def test_a_key_of_the_flow_is_answered_with_ours(complaints: Complaints, key: str, hint: str) -> None:
    found = complaints(f"{key}\njobs: {{a: x}}\n")
    assert len(found) == 1 and found[0].startswith("1:1: a flow has no key") and hint in found[0], found


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("on-failure: notify.sh\njobs: {a: x}", "is `on-failure: COMMAND` at that job"),
        ("on-failure: {notify: x}\njobs: {a: x}", "is `on: {failure: {notify: https://example.org/hook}}`"),
        ("jobs: {a: {user-task: {title: Go?, deadline: 2 h}, role: x}}", "`user-task: Publish?`, `role: editor`"),
        ("env: [A=b]\njobs: {a: x}", "(did you mean `{A: b}`?)"),
        ("inputs: [a, b]\njobs: {a: x}", "(did you mean `inputs: {a: , b:}`?)"),
        ("name: my flow\njobs: {a: x}", "(did you mean `my-flow`?)"),
        ("defaults: {mem: 2G}\njobs: {a: x}", "how much memory a job needs is `memory: 2 GB`"),
        ("jobs: [{name: a, run: x}]", "a job's name stands before it, as `align: {run: ...}`, and a list is `steps:`"),
        ("steps: make", "(did you mean `[make]`?)"),
        ("jobs: {a: {run: [x, y]}}", "several commands are lines of one text, under `run: |`"),
        ("jobs: {a: {python: analyse.py}}", "a script is run by `run: python3 file.py` with `inputs: file.py`"),
    ],
)
def test_a_form_of_another_tool_is_answered_with_ours(complaints: Complaints, text: str, hint: str) -> None:
    [said] = complaints(f"{text}\n")
    assert hint in said


def test_a_whole_rule_of_snakemake_is_answered_key_by_key(complaints: Complaints) -> None:
    found = complaints("jobs:\n  a:\n    input: a.txt\n    output: b.txt\n    shell: sort a.txt\n")
    assert len(found) == 3
    assert "stands under `inputs:`" in found[0] and "stand under `files:`" in found[1]
    assert found[2].startswith("5:5: nothing says what this step does") and "(did you mean `run`?)" in found[2]


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        ("samples: [a]\nsteps: [x]\n", "as a table, `inputs: {samples: {type: table, default: samples.csv}}`"),
        ("jobs: {x: {for-each: \"${{ csv('a.csv') }}\", run: y}}", "a table is an input"),
        ("jobs: {x: {for-each: splitCsv('a.csv'), run: y}}", "a table is an input"),
        ("jobs: {x: {for-each: {s: a.csv}, run: y}}", "{type: table, default: a.csv}"),
        ('jobs: {x: {for-each: "${{ [].groupTuple() }}", run: y}}', "rows are grouped by rows.group_by('sample')"),
        ("jobs: {x: {run: \"${{ expand('{s}.txt', s=[1]) }}\"}}", "inputs.samples.map(s, s + '.txt')"),
        ("jobs: {x: {run: y, env: {name: A, value: b}}}", "two variables; one has its name before the colon"),
    ],
)
def test_what_is_guessed_for_tables_and_groups_is_answered(complaints: Complaints, flow: str, told: str) -> None:
    found = complaints(flow)
    assert len(found) == 1 and told in found[0], found


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("echo $sample", "$sample"),
        ("echo ${sample}.txt", "${sample}"),
        ("echo ${sample%.txt}", "${sample%.txt}"),
        ("echo {sample}.txt", "{sample}"),
        ('echo "x $sample"', "$sample"),
        ("gzip -k {}", "{}"),
        ('cp "{}" out/', "{}"),
    ],
)
def test_a_loops_name_as_a_variable_of_the_shell_is_answered(
    complaints: Complaints, command: str, written: str
) -> None:
    found = complaints(f"jobs:\n  x:\n    for-each: {{sample: [a]}}\n    run: |\n      {command}\n")
    assert [each.partition(": ")[2] for each in found] == [
        f"the shell gets `{written}` as it stands: a value of the flow is `${{{{ sample }}}}`"
    ]


@pytest.mark.parametrize(
    "command",
    [
        "for sample in a b; do echo $sample; done",
        "sample=1; echo $sample",
        "ls | while read -r other sample; do echo $sample; done",
        "awk '{print $sample}' x.txt",
        "echo ${sample:-none} $samples ${sample_1} \\$sample",
        "find . -name '*.gz' -exec rm {} +",
        "ls | xargs -I{} cp {} out/",
        "echo {} > empty.json",
        "x=${y:-{}}",
    ],
)
def test_a_variable_that_the_script_sets_is_its_own(read: Reader, command: str) -> None:
    head = "jobs:\n  x:\n    for-each: {sample: [a]}\n    run: |\n"
    read(f"{head}      {command}\n")
    read(f"{head}      echo $sample\n    env: {{sample: x}}\n")
    read(f"{head}      print('$sample')\n    shell: python\n")


def test_a_job_without_a_command_has_all_its_wrong_keys_told(complaints: Complaints) -> None:
    found = complaints("jobs: {c: {memry: 2 GB, requires: [a], time: 5, cpus: 2}}\n")
    assert [each.partition(": ")[2].partition(" (")[0][:40] for each in found] == [
        "nothing says what this step does; give i",
        "a `run` step has no key `memry`",
        "a `run` step has no key `requires`",
        "a duration",
    ]
