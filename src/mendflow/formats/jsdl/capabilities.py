"""What JSDL cannot express of a job. Everything else is written, and read back as a check."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import asdict

from mendflow.core.expressions import is_template, plain_text
from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Activity, Flow, JobActivity, Parallel, Sequence
from mendflow.core.model.units import is_auto
from mendflow.formats.jsdl.program import SHELL_WORDS
from mendflow.formats.jsdl.vocabulary import MACHINES, SYSTEMS

NOT_EXPRESSIBLE: Final = {
    "function": "a Python function",
    "args": "arguments of a function",
    "kwargs": "arguments of a function",
    "replicas": "several places of one input",
    "link_inputs": "inputs that are links",
    "priority": "a priority",
    "owner": "an owner",
    "expected_ms": "how long it usually takes",
    "retries": "how often it is tried again",
    "retry": "how often it is tried again",
    "retry_wait_ms": "when it is tried again",
    "submission": "how it is submitted",
    "stage_in": "in which order inputs come",
    "software": "an environment, or modules",
    "domain": "a domain",
    "when": "a condition",
    "container": "a container",
    "targets": "what it waits for",
    "sources": "what waits for it",
}


def only_job(flow: Flow) -> JobActivity:
    """The job of a flow that has nothing else. Raises BadFlow."""
    activity: Activity = flow.body
    while isinstance(activity, Parallel | Sequence):
        inner = activity.branches if isinstance(activity, Parallel) else activity.body
        if len(inner) != 1 or activity.when is not None:
            break
        activity = inner[0]
    if not isinstance(activity, JobActivity):
        raise BadFlow(problems=[Problem(message=f"{flow.name} is more than one job; JSDL describes one")])
    problems = [
        Problem(message=f"{activity.name}: JSDL cannot say {each}") for each in _not_expressible(flow, activity)
    ]
    if problems:
        raise BadFlow(problems=problems)
    return activity


def _not_expressible(flow: Flow, job: JobActivity) -> Iterator[str]:
    usual = JobActivity(name=job.name)
    for field, words in NOT_EXPRESSIBLE.items():
        if getattr(job, field) != getattr(usual, field):
            yield words
    for field in ("inputs", "calls", "variables", "results", "exlet", "triggers"):
        if getattr(flow, field):
            yield f"the flow's {field}"
    yield from _expressions(job)
    yield from _resources(job)
    yield from _times(job)
    yield from _shell(job)
    for name in job.files:
        if name not in job.publish and name not in ("output", "error"):
            yield f"that {name} is kept by the server: publish it to a URL"
    for name, given in job.publish.items():
        if not given.url and (given.element or given.data_set or not given.logical):
            yield f"on which storage element, and in which set, {name} goes"
    kept = {stream for stream in ("output", "error") if stream in job.files and stream not in job.publish}
    if any(name not in kept for name in flow.outputs):
        yield "the flow's outputs"


def _expressions(job: JobActivity) -> Iterator[str]:
    published = [part for each in job.publish.values() for part in (each.url, each.logical)]
    texts = [job.command, *job.env, *job.env.values(), *job.inputs.values(), *job.files.values(), *published]
    for text in [*texts, *asdict(job.resources).values(), *job.resources.hosts]:
        if isinstance(text, str):
            if is_template(text) and plain_text(text) is None:
                yield f"the expression in `{text:.80}`"
        elif isinstance(text, dict | list):
            yield "what is no text"


def _resources(job: JobActivity) -> Iterator[str]:
    needs = job.resources
    if needs.gpus:
        yield "gpus"
    if is_auto(needs.memory_bytes):
        yield "memory that is learned"
    if is_auto(needs.wall_ms):
        yield "a time that is learned"
    if needs.site:
        yield "a site"
    if isinstance(needs.cpus, int | float) and (needs.cpus != int(needs.cpus) or needs.cpus < 1):
        yield f"{needs.cpus:g} cpus, which is no whole number of them"
    if needs.system and needs.system not in SYSTEMS.values():
        yield f"the system {needs.system}"
    if needs.machine and needs.machine not in MACHINES:
        yield f"the machine {needs.machine}"


def _shell(job: JobActivity) -> Iterator[str]:
    if job.shell and job.shell not in SHELL_WORDS:
        yield f"the shell `{job.shell}`"


def _times(job: JobActivity) -> Iterator[str]:
    for what, time_ms in (("a time limit", job.resources.wall_ms), ("a limit of cpu time", job.limits.cpu_ms)):
        if isinstance(time_ms, int | float) and time_ms % 1000:
            yield f"{what} of {time_ms} ms, which is no whole number of seconds"
