"""What a job that was submitted again has otherwise than at first, in words: people who use its result have to know."""

from collections.abc import Callable, Mapping
from typing import Final

from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.values import Value
from mendflow.core.recovery.redaction import REDACTED, redact
from mendflow.core.scheduling.amounts import duration, size

VALUE_CHARS_SHOWN: Final = 60

Mask = Callable[[str], str]


def changes_of(first: JobSpec, last: JobSpec, *, mask: Mask, shows_env: bool = True) -> list[str]:
    """`DT=0.1`, `128 MB of memory (64 MB at first)`; nothing if it was submitted again as it was. Who may not see the
    values of environments sees their names alone, and of arguments none whose name says that it is a secret. What is
    secret is masked before anything is cut: nobody would know a part of it."""
    before, after = first.resources, last.resources
    amounts = (
        ("memory", before.memory_bytes, after.memory_bytes, size),
        ("time", before.wall_ms, after.wall_ms, duration),
        ("disk", before.disk_bytes, after.disk_bytes, size),
    )
    told = [
        f"{text(is_now)} of {word}" + (f" ({text(was)} at first)" if was else "")
        for word, was, is_now, text in amounts
        if is_now and was != is_now
    ]
    told += [
        f"{is_now:g} {word} ({was:g} at first)"
        for word, was, is_now in (("cpus", before.cpus, after.cpus), ("gpus", before.gpus, after.gpus))
        if was != is_now
    ]
    told += [
        f"{word} {_short(mask(is_now))}"
        for word, was, is_now in (
            ("the site", before.site, after.site),
            ("the machine", before.machine, after.machine),
            ("the command", first.command or "", last.command or ""),
            ("the image", _image(first), _image(last)),
        )
        if is_now and was != is_now
    ]
    changed = _set(first.env, last.env)
    told += _assigned(changed if shows_env else dict.fromkeys(changed, REDACTED), mask)
    changed = _set(_arguments(first), _arguments(last))
    told += _assigned(changed if shows_env else redact(changed), mask)
    avoided = [host for host in after.avoid_hosts if host not in before.avoid_hosts]
    moved = [path for path, sources in last.replicas.items() if sources[:1] != first.replicas.get(path, ())[:1]]
    replaced = [path for path in first.inputs if _content(last, path) != _content(first, path)]
    told += [f"another file as {path}" for path in replaced]
    told += [f"{path} from another place" for path in moved if path not in replaced]
    return [*told, *(f"not on {host}" for host in avoided)]


def _content(spec: JobSpec, path: str) -> str:
    ref = spec.inputs.get(path)
    return ref.sha256 if ref is not None else ""


def _image(spec: JobSpec) -> str:
    return spec.container.image if spec.container is not None else ""


def _arguments(spec: JobSpec) -> dict[str, Value]:
    return {**{f"argument {at + 1}": value for at, value in enumerate(spec.args)}, **spec.kwargs}


def _set(before: Mapping[str, Value], after: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in after.items() if name not in before or before[name] != value}


def _assigned(values: Mapping[str, Value], mask: Mask) -> list[str]:
    return [f"{name}={_short(mask(str(value)))}" for name, value in values.items()]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= VALUE_CHARS_SHOWN else f"{text[:VALUE_CHARS_SHOWN]}..."
