"""Where the flow and the inputs of a case came from on this machine, and which of these files were changed since.

A case works on stored copies. Who corrects a file and runs the case again means the corrected one, so a rerun looks at
the files again."""

import asyncio
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from mendflow.cli.deployment import local_files, replace_files
from mendflow.cli.flow_files import load_one
from mendflow.cli.inputs import input_value, upload_inputs
from mendflow.cli.printing import say
from mendflow.cli.summary import relative
from mendflow.client import Client
from mendflow.client.files import reference_of
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import Conflict, RequestError
from mendflow.core.model.flow import FILES, TABLE, Flow, Input
from mendflow.core.model.values import Value, file_of
from mendflow.core.model.views import CaseOrigin, CaseView
from mendflow.formats import PYTHON, YAML
from mendflow.formats.python.sources import code_files, functions_of, with_code

NAMES_SHOWN: Final = 5
_CONTENTS: Final = frozenset({"$file", "sha256", "bytes", "executable", "imports", "modules"})
"""What a flow has of the content of other files."""


def origin_of(file: str, flow: Flow, pairs: list[str]) -> CaseOrigin:
    """What `run FILE --input NAME=TEXT ...` names on this machine; `file` is empty for a deployed flow."""
    given = {name: text for name, _, text in (pair.partition("=") for pair in pairs)}
    inputs = {name: path for name, text in given.items() if (path := _path_text(text, flow.inputs.get(name, Input())))}
    for name, declared in flow.inputs.items():
        if declared.type == FILES and name not in given and declared.default is not None and flow.folder:
            parts = declared.default if isinstance(declared.default, list) else [declared.default]
            inputs[name] = _pattern_text([str(part) for part in parts], flow.folder)
    return CaseOrigin(flow=str(Path(file).absolute()) if file else "", inputs=inputs)


def _path_text(text: str, declared: Input) -> str:
    """The text of an input with its path made absolute; empty if it names no file."""
    if declared.type == FILES:
        patterns = msgspec.json.decode(text, type=list[str]) if text.startswith("[") else [text]
        return _pattern_text(patterns, ".")
    if declared.type == "file":
        return "" if text.startswith(LOGICAL_PREFIX) else str(Path(text.removeprefix("@")).absolute())
    if declared.type == TABLE:
        return "" if text.lstrip().startswith("[") else f"@{Path(text.removeprefix('@')).absolute()}"
    return f"@{Path(text[1:]).absolute()}" if text.startswith("@") and not text.startswith("@@") else ""


def _pattern_text(patterns: list[str], folder: str) -> str:
    named = [each if each.startswith(LOGICAL_PREFIX) else str(Path(folder, each).absolute()) for each in patterns]
    return named[0] if len(named) == 1 and not named[0].startswith("[") else msgspec.json.encode(named).decode()


async def changed_inputs(client: Client, earlier: CaseView, flow: Flow) -> dict[str, Value]:
    """The inputs whose files were changed since the case was started, stored anew; each is told of. A file that is not
    here any more is taken as it was."""
    changed: dict[str, Value] = {}
    for name, text in earlier.origin.inputs.items() if earlier.origin is not None else ():
        declared = flow.inputs.get(name)
        if declared is None:
            continue
        try:
            value = input_value(name, text, declared)
        except RequestError as error:
            say(f"{error.message}; {earlier.id} had it, and it is taken as it was", err=True)
            continue
        if not await asyncio.to_thread(_is_same, value, earlier.inputs.get(name)):
            say(
                f"input {name} has changed since {earlier.id}: it is taken anew from {text.removeprefix('@')}", err=True
            )
            changed[name] = value
    return await upload_inputs(client, flow, changed)


def _is_same(now: Value, before: Value) -> bool:
    """Whether a path, or a list of paths, has what was stored."""
    if isinstance(now, list) and isinstance(before, list):
        return len(now) == len(before) and all(map(_is_same, now, before))
    if isinstance(now, dict) and isinstance(before, dict) and file_of(before) is None:
        return now.keys() == before.keys() and all(_is_same(now[name], before[name]) for name in now)
    ref = file_of(before)
    if ref is None or not isinstance(now, str):
        return bool(now == before)
    return now.startswith(LOGICAL_PREFIX) or reference_of(Path(now)).sha256 == ref.sha256


async def demand_same_flow(client: Client, earlier: CaseView) -> None:
    """Refuse to run a case again as it was if its flow file, or a file that the flow takes from its folder, is another
    now: who corrected it means that one."""
    if names := (await _changed_since(client, earlier)).names:
        file = earlier.origin.flow if earlier.origin is not None else ""
        raise Conflict(
            f"{_and(names)} changed since {earlier.id} was started: mendflow rerun {earlier.id} --flow {file} takes"
            f" {'it' if len(names) == 1 else 'them'} as now, and with --unchanged everything stays as it was"
        )


async def warn_of_changed_flow(client: Client, case: CaseView) -> None:
    """Before a case goes on: it does so as it was started, which who edited a file meanwhile may not expect."""
    changed = await _changed_since(client, case)
    if names := changed.names:
        now = f", but its jobs import {_listed(changed.modules)} as now" if changed.modules else ""
        path, colon, name = case.origin.flow.partition(":") if case.origin is not None else ("", "", "")
        say(
            f"{case.id} goes on as it was started{now}; since then {_and(names)} changed:"
            f" mendflow run {shlex.quote(relative(Path(path)) + colon + name)} starts a new case with"
            f" {'it' if len(names) == 1 else 'them'}",
            err=True,
        )


class _ChangedFiles(NamedTuple):
    """The paths of files that are others than when a case was started; `modules` are those that Python jobs import from
    beside their flow, of which no copy is kept."""

    files: list[str] = []
    modules: list[str] = []

    @property
    def names(self) -> list[str]:
        return sorted({*self.files, *self.modules})


async def _changed_since(client: Client, case: CaseView) -> _ChangedFiles:
    """The flow file of a case and the files that the flow takes from its folder, those that are others now."""
    file = case.origin.flow if case.origin is not None else ""
    if not file.partition(":")[0].endswith((*YAML, PYTHON)):
        return _ChangedFiles()
    return await asyncio.to_thread(_changed_files, file, await client.flow_of(case.id))


def _changed_files(file: str, before: Flow) -> _ChangedFiles:
    """The files that are others now; the flow's own if it is that one, or cannot be told."""
    try:
        flow = load_one(file)
        refs = {path: reference_of(path) for path in local_files(flow)}
        code = {path: reference_of(path) for path in set(code_files(flow).values())}
        deployed = replace_files(with_code(flow, code), refs)
    except (RequestError, OSError):
        return _ChangedFiles()  # it is not here any more, or not a flow: nothing can be taken from it
    now, known = _comparable(deployed), _comparable(before)
    if now == known:
        return _ChangedFiles()
    stored = msgspec.json.encode(known).decode()
    names = {str(path) for path, ref in {**refs, **code}.items() if ref.sha256 not in stored}
    modules = {path for mark, path in _modules_of(deployed) if msgspec.json.encode(mark).decode() not in stored}
    own = file.partition(":")[0]
    if Path(own).resolve() not in code and _comparable(deployed, _CONTENTS) != _comparable(before, _CONTENTS):
        names.add(own)
    return _ChangedFiles(sorted(names) if names or modules else [own], sorted(modules - names))


def _modules_of(flow: Flow) -> Iterator[tuple[str, str]]:
    """The modules beside its functions: what is known of each, and its path."""
    for function in functions_of(flow):
        for mark in function.modules:
            yield mark, str(Path(function.folder, mark.partition(" ")[2]))


def _comparable(flow: Flow, but: frozenset[str] = frozenset()) -> Any:
    """The flow as data, without what depends on other files beside it, and without the fields `but`."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: bare(each) for name, each in value.items() if name != "unstaged" and name not in but}
        return [bare(each) for each in value] if isinstance(value, list | tuple) else value

    return bare(msgspec.to_builtins(flow))


def _and(names: list[str]) -> str:
    return f"{_listed(names)} {'has' if len(names) == 1 else 'have'}"


def _listed(names: list[str]) -> str:
    shown = [relative(Path(each)) for each in names[:NAMES_SHOWN]]
    last = f"{len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last
