"""Words that people bring from other tools, and how the same is said in a flow in Python."""

from collections.abc import Iterable
from typing import Final

from mendflow.formats.spelling import nearest_word

OPTION_HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("retry_delay", "retry_delay_seconds", "retry_exponential_backoff", "retry_backoff", "backoff", "max_retries"),
        'how often and when a failed job is tried again is retries=4, or retries=Retry(4, wait="1 s", on=75)',
    ),
    **dict.fromkeys(("retry", "attempts", "retry_condition_fn", "retry_on"), 'say retries=Retry(4, wait="1 s", on=75)'),
    **dict.fromkeys(
        ("timeout", "timeout_seconds", "execution_timeout", "walltime", "max_runtime"),
        'how long a job may take is time="10 min"',
    ),
    **dict.fromkeys(("cores", "ncpus", "cpu", "threads", "num_cpus", "n_cores"), "how many CPUs it needs is cpus=4"),
    **dict.fromkeys(("mem", "mem_mb", "ram", "memory_mb"), 'how much memory it needs is memory="2 GB"'),
    **dict.fromkeys(("gpu", "num_gpus"), "how many GPUs it needs is gpus=1"),
    **dict.fromkeys(("resources", "requirements", "executor_config"), 'say memory="2 GB", cpus=4, time="1 h"'),
    **dict.fromkeys(
        ("wait_for", "depends_on", "upstream", "upstream_tasks", "dependencies", "requires"),
        "a job waits for those whose results it gets, and for needs=[...] and after=[...]",
    ),
    "trigger_rule": "a job that runs however others ended has after=[x]; one that runs because x failed, when=x.failed",
    **dict.fromkeys(("if_", "condition", "only_if", "run_if"), "say when=value > 3"),
    **dict.fromkeys(("cache_key_fn", "cache_policy", "persist_result", "result_storage"), "say cache=True"),
    **dict.fromkeys(("task_id", "task_run_name", "flow_run_name", "id", "label"), 'its name is name="align"'),
    **dict.fromkeys(("log_prints", "tags", "version"), "leave it out: what a job prints is in its log"),
    **dict.fromkeys(("executor", "executors", "task_runner", "queue", "pool", "partition"), 'say site="cluster"'),
    **dict.fromkeys(
        ("outputs", "output", "output_files", "stdout", "stderr"), 'files that it leaves are files="out.txt"'
    ),
    **dict.fromkeys(("input", "input_files"), 'files that it takes are inputs={"in.txt": ...}, or Path parameters'),
    **dict.fromkeys(("concurrency", "max_active_tis_per_dag", "parallelism"), "for map and product say max_parallel=4"),
    **dict.fromkeys(
        [
            "continue_on_error",
            "allow_failure",
            "ignore_errors",
            "max_failures",
            "max_failed",
            "allow_failures",
            "failure_threshold",
            "success_rate",
            "max_fail",
            "failures",
            "optional",
            "min_success",
        ],
        "how many of map and product may fail is tolerate=0.1, one in ten, or tolerate=3",
    ),
    **dict.fromkeys(("on_failure_callback", "on_error"), 'say shell("...", when=x.failed)'),
    "image": 'the image that a job runs in is container="ubuntu:24.04"',
    **dict.fromkeys(
        ("conda", "requirements", "packages", "pip", "venv", "dependencies", "conda_env", "python_requirements"),
        'the packages of a job are environment="requirements.txt", or a list such as ["numpy==2.1"]',
    ),
}
"""For options of jobs."""

JOB_HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("submit", "delay", "remote", "apply_async", "s", "si", "bind"), "call it, {name}(...): that makes it a job"
    ),
    **dict.fromkeys(
        ("expand", "expand_kwargs", "starmap", "chunks", "group"),
        "{name}.map(xs) runs it for each element, {name}.map(xs, ys) side by side, {name}.product(x=xs, y=ys) for "
        "all combinations",
    ),
    "partial": "{name}.map(xs, factor=2) gives the same factor to each",
    **dict.fromkeys(("with_options", "override", "set"), "{name}.options(memory='2 GB') is the same job with others"),
    **dict.fromkeys(("result", "get", "wait"), "pass what {name}(...) gives to the next job, which waits for it"),
    **dict.fromkeys(("set_upstream", "set_downstream"), "say {name}.options(needs=[...]) or after=[...]"),
    **dict.fromkeys(
        ("serve", "deploy", "run"), "`mendflow run FILE.py` runs a flow, `mendflow flows deploy` deploys it"
    ),
}
"""For what is asked of a job or a flow as it was defined."""

CALL_HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("result", "get", "wait", "compute", "outputs", "output", "join"),
        "pass it on as it is: it stands for the result, and the job that gets it waits",
    ),
    **dict.fromkeys(("map", "submit", "then"), "job.map(value) runs a job for each element of it"),
    **dict.fromkeys(
        ("done", "is_completed", "exception"), "whether a job failed is x.failed, in a condition: when=x.failed"
    ),
    **dict.fromkeys(("expand", "set_upstream", "set_downstream"), "say needs=[...] or after=[...]"),
}
"""For methods that are asked of what a job gave."""

IMPORT_HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(("workflow", "dag", "DAG", "Flow", "pipeline", "subflow", "graph"), "a flow is made by @flow"),
    **dict.fromkeys(
        ("python_app", "Task", "op", "step", "Job", "delayed", "activity", "process", "rule"), "a job is made by @job"
    ),
    **dict.fromkeys(("bash_app", "bash", "BashOperator", "sh", "run", "subprocess"), "a shell job is shell(...)"),
    **dict.fromkeys(("unmapped", "allow_failure"), "job.map(xs, factor=2) gives the same factor to each element"),
    **dict.fromkeys(("approval", "pause", "pause_flow_run", "user_task", "human"), "a person's work is task(...)"),
    **dict.fromkeys(("retry", "Retries", "RetryPolicy"), "say retries=Retry(4)"),
    **dict.fromkeys(("wait", "gather", "as_completed"), "pass what jobs give to the next job, which waits for them"),
    **dict.fromkeys(("get_run_logger", "logger", "log"), "print(...) in a job writes to its log"),
    **dict.fromkeys(("map", "expand", "product", "zip"), "job.map(xs), job.map(xs, ys) and job.product(x=xs, y=ys)"),
    **dict.fromkeys(("table", "samples", "csv"), 'a table is Table("samples.csv")'),
    **dict.fromkeys(
        ("Files", "File", "Glob", "glob", "InputFiles"),
        'files are parameters of the flow: `samples: list[Path] = "samples/*.txt"`, or `sample: Path` for one',
    ),
    "inputs": "the parameters of the flow's function are its inputs",
    "files": "files that a job takes are Path parameters or inputs=, those that it leaves are files=",
}
"""For names that the package does not have."""


def option_error(name: str, what: str, known: Iterable[str]) -> tuple[str, str]:
    """What is said of an unknown option, and what it may have been meant to be."""
    hint = OPTION_HINTS.get(name, "")
    if hint:
        return f"{what} has no option `{name}`; {hint}", ""
    return f"{what} has no option `{name}`", nearest_word(name, known)


def call_error(expression: str) -> str:
    """What to do instead of calling a part of a value that is not known yet."""
    method = expression.rpartition(".")[2].rpartition("[")[2].strip('"]')
    return CALL_HINTS.get(method, "pass it to a job and do it there")


def argument_error(name: str, given: Iterable[str], options: Iterable[str], parameters: Iterable[str]) -> str:
    """What is said to somebody who gives an option of a job among its arguments."""
    for word in given:
        if word in parameters:
            continue
        if word in options:
            return f"; `{word}` is an option: {name}.options({word}=...)(...)"
        if word in OPTION_HINTS:
            return f"; {OPTION_HINTS[word]}, said as {name}.options(...)(...)"
    return ""
