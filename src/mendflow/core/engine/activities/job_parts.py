"""The parts of a job that expressions give: from the value of a template to what the job has."""

from typing import Any, Final

from mendflow.core.data.paths import name_flaw
from mendflow.core.data.protocols import target_flaw
from mendflow.core.engine import data
from mendflow.core.engine.activity_checks import NAME_HINT
from mendflow.core.engine.faults import INVALID_EXPRESSION_VALUE, flow_fault
from mendflow.core.expressions.text_values import as_text
from mendflow.core.model.containers import JobContainer, container_flaws
from mendflow.core.model.data import LOGICAL_PREFIX, Publication
from mendflow.core.model.jobs import Resources
from mendflow.core.model.units import auto_bound, duration_ms, is_auto, size_bytes
from mendflow.core.model.values import Value

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
            number = measured(key, given)
            if isinstance(number, bool) or not isinstance(number, (int, float)) or number < 0:
                raise flow_fault(
                    INVALID_EXPRESSION_VALUE, f"{name}: {key} is {number!r}; it must be a number, 0 or more"
                )
            if number > data.COUNT_VALUE_MAX:
                raise flow_fault(INVALID_EXPRESSION_VALUE, f"{name}: {key} is {number}, more than there is anywhere")
            numbers[key] = float(number) if key == "cpus" else int(number)
    hosts = tuple(as_text(each) for each in _as_list_of_values(value["hosts"]) if each)
    site, system, machine = (as_text(value[key]) for key in ("site", "system", "machine"))
    return Resources(site=site, hosts=hosts, system=system, machine=machine, **numbers)


def learned_amount(key: str, text: str, name: str) -> dict[str, Any]:
    """The fields of an amount that is learned, with its bound."""
    auto, bound, word = LEARNED[key]
    if not (limit := auto_bound(text)):
        return {auto: True}
    found = measured(key, limit)
    if not isinstance(found, int) or not 0 < found <= data.COUNT_VALUE_MAX:
        told = f"{name}: `{word}: {text}` is not understood; write `auto`, or a bound with its unit: `auto up to 16 GB`"
        raise flow_fault(INVALID_EXPRESSION_VALUE, told)
    return {auto: True, bound: found}


def measured(key: str, given: Value) -> Value:
    """A size or a duration that was put together as a text, such as `${{ n }} GB`, as its number."""
    if not isinstance(given, str):
        return given
    found = size_bytes(given) if key.endswith("_bytes") else duration_ms(given) if key.endswith("_ms") else None
    return given if found is None else found


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
