"""The parts of a job that expressions give: from the value of a template to what the job has.

A flow says `memory: ${{ inputs.size }}`, and a job has `memory_bytes`. Who is told that the value is wrong never wrote
the second word, so amounts are told in the words of the flow."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mendflow.core.data.paths import name_flaw
from mendflow.core.data.protocols import target_flaw
from mendflow.core.engine import data
from mendflow.core.engine.activity_checks import NAME_HINT
from mendflow.core.engine.faults import INVALID_EXPRESSION_VALUE, flow_fault
from mendflow.core.expressions import ExpressionError, is_template, resolve
from mendflow.core.expressions.templates import template_parts
from mendflow.core.expressions.text_values import as_text
from mendflow.core.model.containers import JobContainer, container_flaws
from mendflow.core.model.data import LOGICAL_PREFIX, Publication
from mendflow.core.model.flow import Activity, Flow, ForEach, JobActivity, Parallel, Scope, Sequence
from mendflow.core.model.jobs import Resources
from mendflow.core.model.units import auto_bound, duration_ms, is_auto, size_bytes
from mendflow.core.model.values import Value


class _Amount(NamedTuple):
    """`least` is what a number without a unit is at least: nothing runs in 2 bytes, or for 30 ms."""

    word: str
    example: str
    least: int = 0
    one: str = ""
    unit: str = ""


AMOUNTS: Final = {
    "memory_bytes": _Amount("memory", "a size such as 200 MB", 1_000_000, "bytes", "GB"),
    "disk_bytes": _Amount("disk", "a size such as 20 GB", 1_000_000, "bytes", "GB"),
    "wall_ms": _Amount("time", "a duration such as 10 min", 1_000, "milliseconds", "min"),
    "cpus": _Amount("cpus", "a number such as 2 or 0.5"),
    "gpus": _Amount("gpus", "a number such as 1"),
}
LEARNED: Final = {
    "memory_bytes": ("memory_auto", "memory_max_bytes", "memory"),
    "wall_ms": ("wall_auto", "wall_max_ms", "time"),
}
"""What may be `auto`: the fields that say so, and the word of the flow."""


def as_command(value: Value, name: str) -> str:
    command = as_text(value)
    if "\0" in command:
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"{name}: the command holds a NUL character, which no command can")
    return command


def as_container(value: Value, name: str) -> JobContainer:
    """The container with all its expressions evaluated."""
    image, network = as_text(value["image"]), as_text(value["network"])
    mounts, options = (tuple(as_text(each) for each in value[key]) for key in ("mounts", "options"))
    container = JobContainer(image=image, mounts=mounts, options=options, network=network)
    if flaw := next(container_flaws(container), ""):
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"{name}: {flaw}")
    return container


def as_list(value: Value, _name: str) -> list[Value]:
    return list(value)


def as_map(value: Value, _name: str) -> dict[str, Value]:
    return dict(value)


def as_texts(value: Value, name: str) -> dict[str, str]:
    texts = {key: as_text(each) for key, each in value.items()}
    for key, text in texts.items():
        if not key or "\0" in key or "\0" in text:
            raise flow_fault(INVALID_EXPRESSION_VALUE, f"{name}: {key!r:.80} is no name, or holds a NUL character")
    return texts


def as_env(value: Value, name: str) -> dict[str, str]:
    if bad := next((key for key in value if "=" in key), None):
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"{name}: {bad!r:.80} cannot be the name of an environment variable")
    return as_texts(value, name)


def as_resources(value: Value, name: str) -> Resources:
    numbers: dict[str, Any] = {}
    for key, given in value.items():
        if is_auto(given) and key in LEARNED:
            numbers |= learned_amount(key, given, name)
        elif key not in NAME_HINT:
            if flaw := amount_flaw(key, given):
                raise flow_fault(INVALID_EXPRESSION_VALUE, f"{name}: {flaw}")
            number = measured(key, given)
            numbers[key] = float(number) if key == "cpus" else int(number)
    hosts = tuple(as_text(each) for each in _as_list_of_values(value["hosts"]) if each)
    site, system, machine = (as_text(value[key]) for key in ("site", "system", "machine"))
    return Resources(site=site, hosts=hosts, system=system, machine=machine, **numbers)


def learned_amount(key: str, text: str, name: str) -> dict[str, Any]:
    """The fields of an amount that is learned, with its bound."""
    auto, bound, _ = LEARNED[key]
    if flaw := learned_flaw(key, text):
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"{name}: {flaw}")
    if not (limit := auto_bound(text)):
        return {auto: True}
    return {auto: True, bound: measured(key, limit)}


def as_places(value: Value, name: str) -> dict[str, tuple[str, ...]]:
    """The sources of each input: a list, or one."""
    places = {path: tuple(as_text(each) for each in _as_list_of_values(given)) for path, given in value.items()}
    for path, listed in places.items():
        if not listed or not all(listed) or any("\0" in each for each in listed):
            raise flow_fault(INVALID_EXPRESSION_VALUE, f"{name}: input {path} needs a list of sources, not {listed}")
    return places


def as_publications(value: Value, name: str) -> dict[str, Publication]:
    """Where each published file goes; its logical name may have the prefix `lfn:`. Without a name it keeps its own,
    which is known when the job is submitted."""
    found = {}
    for output, given in value.items():
        if url := as_text(given["url"]):
            if flaw := target_flaw(url):
                raise flow_fault(INVALID_EXPRESSION_VALUE, f"{name}: {output} cannot be written to its place: {flaw}")
            found[output] = Publication(url=url, overwrite=given["overwrite"])
            continue
        logical = as_text(given["logical"]).removeprefix(LOGICAL_PREFIX)
        if logical and (flaw := name_flaw(logical)):
            message = f"{name}: {output} cannot be published as {logical!r:.200}: {flaw}"
            raise flow_fault(INVALID_EXPRESSION_VALUE, message)
        element, data_set = as_text(given["element"]), as_text(given["data_set"])
        found[output] = Publication(logical=logical, element=element, data_set=data_set)
    return found


def _as_list_of_values(given: Value) -> list[Value]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def measured(key: str, given: Value) -> Value:
    """A size or a duration that was put together as a text, such as `${{ n }} GB`, as its number."""
    if not isinstance(given, str):
        return given
    found = size_bytes(given) if key.endswith("_bytes") else duration_ms(given) if key.endswith("_ms") else None
    return given if found is None else found


def amount_flaw(key: str, given: Value, template: Value = None) -> str:
    """Why this is no amount of it; empty if it is one. `template` is what the flow has there, if that is an
    expression."""
    amount, number = AMOUNTS[key], measured(key, given)
    origin = f" (from {_origin(template)})" if isinstance(template, str) else ""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or number < 0:
        return f"{amount.word} is {number!r:.80}{origin}; write {amount.example}"
    if number > data.COUNT_VALUE_MAX:
        return f"{amount.word} is {number}{origin}, more than there is anywhere"
    if isinstance(template, str) and number is given and 0 < number < amount.least:
        told = f"`{amount.word}: {template}` gives {number}, which is {number} {amount.one}"
        return f"{told}; write its unit behind it, as `{template} {amount.unit}`"
    return ""


def learned_flaw(key: str, text: str) -> str:
    """Why this is no bound of an amount that is learned; empty if it is one, or there is none."""
    limit = auto_bound(text)
    found = measured(key, limit)
    if not limit or (isinstance(found, int) and 0 < found <= data.COUNT_VALUE_MAX):
        return ""
    word = LEARNED[key][2]
    return f"`{word}: {text}` is not understood; write `auto`, or a bound with its unit: `auto up to 16 GB`"


def amount_flaws(templates: Mapping[str, Value], found: Mapping[str, Value]) -> Iterator[str]:
    """What is wrong with the amounts that expressions gave."""
    for key in AMOUNTS:
        template = templates.get(key)
        if not is_template(template):
            continue
        given = found[key]
        learned = is_auto(given) and key in LEARNED
        if flaw := learned_flaw(key, str(given)) if learned else amount_flaw(key, given, template):
            yield flaw


def amounts_at_start(flow: Flow, inputs: Mapping[str, Value], *, planned: bool = False) -> list[str]:
    """What is wrong with amounts that come from the inputs of a case alone, before any job has run. What stands behind
    a condition may never run, and is left alone. `planned`: the inputs are those of cases that begin later, as a
    schedule has them, and what is an expression in them has a value only then."""
    if flow.xml is not None:
        return []
    unless_given = {name: declared.default for name, declared in flow.inputs.items() if not declared.required}
    known = {**unless_given, **inputs}
    names = {"inputs": {name: each for name, each in known.items() if not (planned and is_template(each))}}
    return [f"job {job.label or job.name}: {flaw}" for job in _certain_jobs(flow.body) for flaw in _flaws(job, names)]


def _certain_jobs(activity: Activity) -> Iterator[JobActivity]:
    if activity.when is not None:
        return
    match activity:
        case JobActivity():
            yield activity
        case Scope(body=body) if "inputs" not in activity.variables:
            yield from _certain_jobs(body)
        case ForEach(body=body):
            yield from _certain_jobs(body)
        case Parallel(branches=branches):
            for branch in branches:
                yield from _certain_jobs(branch)
        case Sequence(body=steps):
            for step in steps:
                yield from _certain_jobs(step)
        case _:
            return


def _flaws(job: JobActivity, names: Mapping[str, Value]) -> Iterator[str]:
    for key in AMOUNTS:
        template = getattr(job.resources, key)
        if not is_template(template):
            continue
        try:
            given = resolve(template, names.__getitem__)
        except ExpressionError:  # it asks for more than the inputs
            continue
        yield from amount_flaws({key: template}, {key: given})


def _origin(template: str) -> str:
    """The expression, if the text is nothing else."""
    parts = template_parts(template)
    return parts[0].text.strip() if len(parts) == 1 and parts[0].is_expression else f"`{template}`"


CONVERTERS: Final = {
    "command": as_command,
    "container": as_container,
    "args": as_list,
    "kwargs": as_map,
    "env": as_env,
    "files": as_texts,
    "replicas": as_places,
    "publish": as_publications,
    "resources": as_resources,
}
