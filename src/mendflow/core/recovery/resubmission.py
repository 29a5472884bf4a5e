"""Resubmits a job with changes: what may be changed, and the resulting job.

Values come from expressions in rules, so each is validated before it becomes part of a job."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.jobs import JobSpec, Resources, from_source, sources_of
from mendflow.core.model.values import Value

AMOUNT_MAX: Final = 2**53
AMOUNTS: Final = ("cpus", "memory_bytes", "disk_bytes", "gpus", "wall_ms")
NAMES: Final = ("site", "system", "machine")
HOSTS: Final = ("hosts", "avoid_hosts")
SETTABLE: Final = (*AMOUNTS, *NAMES, *HOSTS)


def with_changes(
    spec: JobSpec,
    *,
    resources: Mapping[str, Value],
    env: Mapping[str, str],
    avoid_hosts: Sequence[str],
    sources: Mapping[str, str],
    transfer: Mapping[str, Value],
) -> JobSpec:
    """The changed job. Hosts to avoid are added to those it avoids already, unless `resources` sets them. Raises
    InvalidRequest for an invalid change."""
    needs = _needs(spec.resources, resources)
    if added := [host for host in avoid_hosts if host and host not in needs.avoid_hosts]:
        needs = replace(needs, avoid_hosts=(*needs.avoid_hosts, *dict.fromkeys(added)))
    env, transfer = {**spec.env, **env}, {**spec.transfer, **transfer}
    spec = replace(spec, resources=needs, env=env, transfer=transfer)
    for path, source in sources.items():
        if not sources_of(spec, path):
            known = ", ".join(sorted(spec.inputs.keys() | spec.replicas.keys())) or "none"
            raise InvalidRequest(f"{spec.item} has no input {path}; its inputs are: {known}", field=f"sources.{path}")
        spec = from_source(spec, path, source)
    return spec


def next_source(spec: JobSpec, path: str) -> str:
    """The next source of an input; empty if there is only the one that was tried."""
    sources = sources_of(spec, path)
    return sources[1] if len(sources) > 1 else ""


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
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not 0 <= value <= AMOUNT_MAX:
        raise InvalidRequest(f"{name} is {value!r:.80}; it must be a number from 0 to 2^53", field=name)
    return float(value) if name == "cpus" else math.ceil(value)
