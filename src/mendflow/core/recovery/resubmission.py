"""Resubmits a job with changes: what may be changed, and the resulting job.

Values come from expressions in rules, so each is validated before it becomes part of a job."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.containers import NO_CONTAINER, JobContainer, image_flaw
from mendflow.core.model.data import Publication
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.faults import AttemptStage
from mendflow.core.model.jobs import JobSpec, Limits, Outcome, Resources, from_source, sources_of
from mendflow.core.model.units import duration_ms, size_bytes
from mendflow.core.model.values import FileRef, Value

AMOUNT_MAX: Final = 2**53
AMOUNTS: Final = ("cpus", "memory_bytes", "disk_bytes", "gpus", "wall_ms")
NAMES: Final = ("site", "system", "machine")
HOSTS: Final = ("hosts", "avoid_hosts")
NO_FILES: Final[Mapping[str, FileRef]] = {}
SETTABLE: Final = (*AMOUNTS, *NAMES, *HOSTS)


def with_changes(
    spec: JobSpec,
    *,
    resources: Mapping[str, Value],
    env: Mapping[str, str],
    avoid_hosts: Sequence[str],
    sources: Mapping[str, str],
    transfer: Mapping[str, Value],
    image: str = "",
    files: Mapping[str, FileRef] = NO_FILES,
    same_content: bool = True,
) -> JobSpec:
    """The changed job. Hosts to avoid are added to those it avoids already, unless `resources` sets them. `files` take
    the place of inputs. So does what a new source has, unless the same content is to come from there. Raises
    InvalidRequest for an invalid change."""
    needs = _needs(spec.resources, resources)
    if added := [host for host in avoid_hosts if host and host not in needs.avoid_hosts]:
        needs = replace(needs, avoid_hosts=(*needs.avoid_hosts, *dict.fromkeys(added)))
    env, transfer = {**spec.env, **env}, {**spec.transfer, **transfer}
    spec = replace(spec, resources=needs, env=env, transfer=transfer)
    spec = _in_image(spec, image) if image else spec
    for path in (*sources, *files):
        if not sources_of(spec, path):
            known = ", ".join(sorted(spec.inputs.keys() | spec.replicas.keys())) or "none"
            raise InvalidRequest(f"{spec.item} has no input {path}; its inputs are: {known}", field=f"sources.{path}")
    for path, source in sources.items():
        if not same_content and path in spec.inputs and source not in sources_of(spec, path):
            spec = replace(_without_input(spec, path), replicas={**spec.replicas, path: (source,)})
        else:
            spec = from_source(spec, path, source)
    for path, file in files.items():
        before = spec.inputs.get(path)
        named = replace(file, name=file.name or (before.name if before is not None else path.rpartition("/")[2]))
        spec = _without_input(spec, path)
        spec = replace(spec, inputs={**spec.inputs, path: named})
    return spec


def _without_input(spec: JobSpec, path: str) -> JobSpec:
    """The job without what is known of an input: its digest would find the earlier content in a pilot's cache."""
    inputs = {each: ref for each, ref in spec.inputs.items() if each != path}
    replicas = {each: sources for each, sources in spec.replicas.items() if each != path}
    return replace(spec, inputs=inputs, replicas=replicas)


def _in_image(spec: JobSpec, image: str) -> JobSpec:
    """The job in another image, or in none; its mounts and options stay."""
    if image == NO_CONTAINER:
        return replace(spec, container=None)
    if flaw := image_flaw(image):
        raise InvalidRequest(f"{spec.item}: {flaw}", field="container")
    if spec.command is None:
        raise InvalidRequest(f"{spec.item} is no command, and only commands run in containers", field="container")
    before = spec.container
    return replace(spec, container=replace(before, image=image) if before is not None else JobContainer(image=image))


def publishing_alone(spec: JobSpec, made: Outcome, *, to: Mapping[str, str], on: str) -> JobSpec:
    """What remains of a job whose files could not be published: they are brought from the server and taken to where
    they belong, by whichever pilot comes first. `to` and `on` name other places, as in Change."""
    needs, fault = spec.resources, made.fault
    assert fault is not None, "otherwise nothing remains"
    files = {name: path for name, path in spec.files.items() if name not in spec.file_lists}  # lists are stored already
    for name in to.keys() - {""}:
        if name not in files:
            known = ", ".join(sorted(files)) or "none"
            raise InvalidRequest(f"{spec.item} has no output file {name}; it has: {known}", field=f"to.{name}")
    publish = dict(spec.publish)
    for name, path in files.items():
        url = to.get(name) or (to.get("", "") if path == fault.file else "")
        if url:
            place = url + path.rpartition("/")[2] if url.endswith("/") else url
            publish[name] = Publication(url=place, overwrite=publish[name].overwrite if name in publish else True)
        elif on and name in publish and publish[name].logical:
            publish[name] = replace(publish[name], element=on)
    return replace(
        spec,
        command=None,
        shell="",
        container=None,
        unstaged=(),
        function=None,
        args=[],
        kwargs={},
        inputs={path: made.files[name] for name, path in files.items()},
        files=files,
        file_lists=(),
        replicas={},
        publish=publish,
        link_inputs=False,
        resources=Resources(site=needs.site, hosts=needs.hosts, avoid_hosts=needs.avoid_hosts),
        limits=Limits(),
        software=None,
        expected_ms=0,
        retries=0,
        retry=(),
        spent=(),
    )


def published_result(made: Outcome, published: Outcome) -> Outcome:
    """How a job ended of which only the publishing was repeated: all that it made and said is that of the attempt which
    ran it."""
    fault, files = published.fault, published.files
    if fault is not None and fault.stage != AttemptStage.STAGE_OUT:
        files = made.files  # it did not come as far as that: they are where they were
    elif fault is not None:
        files = published.files or made.files
    return replace(made, fault=fault, files=files)


def _needs(before: Resources, wanted: Mapping[str, Value]) -> Resources:
    fields: dict[str, Value] = {}
    for name, value in wanted.items():
        if value is None:
            continue
        if name in AMOUNTS:
            fields[name] = _amount(name, value)
        elif name in NAMES and isinstance(value, str):
            fields[name] = value
        elif name in HOSTS and isinstance(value, list | tuple):
            fields[name] = tuple(str(host) for host in value)
        else:
            raise InvalidRequest(f"{name} cannot be {value!r:.80}; give one of {', '.join(SETTABLE)}", field=name)
    return replace(before, **fields)


def _amount(name: str, value: Value) -> float | int:
    if isinstance(value, str):
        found = size_bytes(value) if name.endswith("_bytes") else duration_ms(value) if name.endswith("_ms") else None
        value = value if found is None else found
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not 0 <= value <= AMOUNT_MAX:
        raise InvalidRequest(f"{name} is {value!r:.80}; it must be a number from 0 to 2^53", field=name)
    return float(value) if name == "cpus" else math.ceil(value)
