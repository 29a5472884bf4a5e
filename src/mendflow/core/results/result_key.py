"""The key of a job's result: a digest of all that the job declares to be made from, and of what it is to make.

Two jobs with the same key make the same, whatever they are called and wherever they stand: the item, the iteration of
a loop, the case and the flow are not in the key, and neither is what only says how a job is run (memory, retries,
owner). The project is: one project does not get what another has made. A field of a job that this module does not know
is in the key: forgetting one there gives a job that runs once more, forgetting one here would give a wrong result."""

import hashlib
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

import msgspec

from mendflow.core.model.jobs import FunctionRef, JobSpec, sources_of
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.values import Value

SHAPE: Final = 1
"""Raised when the same job gets another key than before: results with older keys are then not found."""

DIGEST_CHARS: Final = 40

_OF_RUNNING: Final = frozenset(
    {
        "item",
        "element",
        "transfer",
        "link_inputs",
        "resources",
        "limits",
        "priority",
        "owner",
        "account",
        "project",
        "expected_ms",
        "retries",
        "retry_wait_ms",
        "retry",
        "spent",
        "earlier_losses",
        "earlier_attempts",
        "submission",
        "stage_in",
        "cache",
        "domain",
        "unstaged",
    }
)
_COMPARED_BY_PART: Final = frozenset({"inputs", "replicas", "function", "args", "kwargs"})
_WHOLE: Final = tuple(
    name for name in JobSpec.__struct_fields__ if name not in _OF_RUNNING and name not in _COMPARED_BY_PART
)
_whole_of = attrgetter(*_WHOLE)
_WORDS: Final = {
    "command": "its command changed",
    "shell": "its shell changed",
    "container": "its container changed",
    "env": "its environment variables changed",
    "software": "its software environment changed",
    "files": "the files that it promises changed",
    "file_lists": "the files that it promises changed",
    "publish": "what it publishes changed",
}
_FILES_NAMED: Final = 3
_encode = msgspec.json.Encoder(order="deterministic").encode


def result_key(spec: JobSpec) -> str:
    """The same for two jobs that are made from the same: the result of one may stand for the other's."""
    resources, inputs, replicas, whole = spec.resources, spec.inputs, spec.replicas, _whole_of(spec)
    # what is empty is not gone through: most jobs of a long loop have little of this, and each gets a key
    content = [
        SHAPE,
        {name: value for name, value in zip(_WHOLE, whole, strict=True) if value} if any(whole) else {},
        _identity(spec.function),
        spec.args,
        spec.kwargs,
        {path: [ref.sha256, ref.executable] for path, ref in inputs.items()} if inputs else {},
        {path: sorted(set(sources_of(spec, path))) for path in replicas if path not in inputs} if replicas else {},
        resources.system,
        resources.machine,
    ]
    if spec.project != DEFAULT_PROJECT:
        content.append(spec.project)
    return hashlib.sha256(_encode(content)).hexdigest()[:DIGEST_CHARS]


def made_from(spec: JobSpec) -> dict[str, Value]:
    """The parts of the key, for people. Of the environment only the names: values may be secrets."""
    parts: dict[str, Value] = {name: value for name in _WHOLE if (value := getattr(spec, name))}
    if spec.env:
        parts["env"] = sorted(spec.env)
    if spec.container is not None:
        parts["container"] = msgspec.to_builtins(spec.container)
    if spec.function is not None:
        parts["function"] = f"{spec.function.module}:{spec.function.name}"
        parts["code"] = spec.function.uses or (spec.function.code.sha256 if spec.function.code else "")
    if spec.args or spec.kwargs:
        parts["arguments"] = [*spec.args, *([spec.kwargs] if spec.kwargs else [])]
    if spec.inputs:
        parts["inputs"] = {path: ref.sha256 for path, ref in sorted(spec.inputs.items())}
    return parts


def numbered(key: str, number: int) -> str:
    """The key of the second, third... job of one case that is made from the same. Each of them runs: whoever writes a
    loop over equal elements wants as many results, and they may differ, as random numbers do."""
    return key if number <= 1 else f"{key}-{number}"


def base_of(key: str) -> str:
    """The key without the number."""
    return key[:DIGEST_CHARS]


def number_in(key: str) -> int:
    return int(key[DIGEST_CHARS + 1 :] or 1)


def differences(before: JobSpec, after: JobSpec) -> list[str]:
    """What is other in the second job, so that the first one's result is not its result; one sentence for each."""
    return list(_differences(before, after))


def _differences(before: JobSpec, after: JobSpec) -> Iterator[str]:
    for name in _WHOLE:
        if getattr(before, name) != getattr(after, name):
            yield _WORDS.get(name, f"its {name.replace('_', ' ')} changed")
    if _identity(before.function) != _identity(after.function):
        yield _changed_function(before.function, after.function)
    yield from _changed_arguments(before, after)
    for path in sorted(before.inputs.keys() | after.inputs.keys()):
        old, new = before.inputs.get(path), after.inputs.get(path)
        if old is None or new is None:
            yield f"its inputs changed: {path} is {'new' if old is None else 'gone'}"
        elif old.sha256 != new.sha256:
            yield f"its input {path} has other content"
        elif old.executable != new.executable:
            yield f"its input {path} {'may be executed now' if new.executable else 'may not be executed any more'}"
    elsewhere = (before.replicas.keys() | after.replicas.keys()) - before.inputs.keys()
    for path in sorted(elsewhere):
        if set(sources_of(before, path)) != set(sources_of(after, path)):
            yield f"its input {path} comes from other places"
    if (before.resources.system, before.resources.machine) != (after.resources.system, after.resources.machine):
        yield "the system or machine that it needs changed"


def _changed_function(before: FunctionRef | None, after: FunctionRef | None) -> str:
    """Which of the files that the function's code is in has changed."""
    if before is None or after is None or (before.module, before.name) != (after.module, after.name):
        return "it calls another function"
    old, new = before.code, after.code
    files = (
        [new.name or f"{after.module}.py"] if old is not None and new is not None and old.sha256 != new.sha256 else []
    )
    modules = {mark.partition(" ")[2] for mark in {*before.modules} ^ {*after.modules}}
    files += sorted(modules)[:_FILES_NAMED]
    if not files:
        return "its function or the code around it changed"
    return f"{files[0]} changed" if len(files) == 1 else f"{', '.join(files[:-1])} and {files[-1]} changed"


def _changed_arguments(before: JobSpec, after: JobSpec) -> Iterator[str]:
    for number in range(max(len(before.args), len(after.args))):
        if before.args[number : number + 1] != after.args[number : number + 1]:
            yield f"its argument {number + 1} changed"
    for name in sorted(before.kwargs.keys() | after.kwargs.keys()):
        if _given(before.kwargs, name) != _given(after.kwargs, name):
            yield f"its argument {name} changed"


def _given(kwargs: dict[str, Value], name: str) -> tuple[Value, ...]:
    return (kwargs[name],) if name in kwargs else ()


def _identity(function: FunctionRef | None) -> list[str] | None:
    """A function by its name and what it uses, or all code around it if that cannot be told; where the code lies does
    not matter."""
    if function is None:
        return None
    if function.uses:
        return [function.module, function.name, function.uses]
    return [function.module, function.name, function.code.sha256 if function.code else "", function.imports]
