"""Where the flow and the inputs of a case came from on this machine, and which of these files were changed since.

A case works on stored copies. Who corrects a file and runs the case again means the corrected one, so a rerun looks at
the files again."""

import asyncio
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from mendflow.cli.deployment import default_file, local_files, replace_files
from mendflow.cli.flow_arguments import load_one
from mendflow.cli.inputs import input_value, upload_inputs, values_in_file
from mendflow.cli.printing import say
from mendflow.cli.summary import relative
from mendflow.client import Client
from mendflow.client.files import reference_of
from mendflow.core.data.case_origins import bounded_origin, is_told_by
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import Conflict, RequestError
from mendflow.core.model.flow import FILE, FILES, TABLE, Flow, Input
from mendflow.core.model.values import Value, file_of
from mendflow.core.model.views import CaseOrigin, CaseView
from mendflow.formats import PYTHON, YAML
from mendflow.formats.python.sources import code_files, functions_of, with_code

NAMES_SHOWN: Final = 5
NO_VALUES: Final[Mapping[str, Value]] = {}
_CONTENTS: Final = frozenset({"$file", "sha256", "bytes", "executable", "imports", "modules", "bundle", "uses"})
"""What a flow has of the content of other files."""


def origin_of(
    file: str, flow: Flow, pairs: list[str], inputs_file: str = "", values: Mapping[str, Value] = NO_VALUES
) -> CaseOrigin:
    """What `run FILE --input NAME=TEXT ... --inputs FILE` names on this machine; `file` is empty for a deployed flow.
    `values` are all inputs that are given. What the file of inputs names is not repeated here: it may name others when
    it is looked at again."""
    given = {name: text for name, _, text in (pair.partition("=") for pair in pairs)}
    in_file = values_in_file(inputs_file, flow.inputs) if inputs_file else NO_VALUES
    for name, value in values.items():
        if name not in given and name not in in_file and flow.inputs[name].type == FILE and isinstance(value, str):
            given[name] = value
    inputs = {name: path for name, text in given.items() if (path := _path_text(text, flow.inputs.get(name, Input())))}
    for name, declared in flow.inputs.items():
        if declared.type == FILES and name not in {*given, *in_file} and declared.default is not None and flow.folder:
            parts = declared.default if isinstance(declared.default, list) else [declared.default]
            inputs[name] = _pattern_text([str(part) for part in parts], flow.folder)
        elif (
            name not in given
            and name not in in_file
            and flow.folder
            and (file_here := default_file(declared, flow.folder))
        ):
            inputs[name] = str(file_here.absolute())
    found = CaseOrigin(
        flow=str(Path(file).absolute()) if file else "",
        inputs=inputs,
        inputs_file=str(Path(inputs_file).absolute()) if inputs_file else "",
    )
    return bounded_origin(found)


def _path_text(text: str, declared: Input) -> str:
    """The text of an input with its path made absolute; empty if it names no file."""
    if declared.type == FILES:
        patterns = msgspec.json.decode(text, type=list[str]) if text.startswith("[") else [text]
        return _pattern_text(patterns, ".")
    if declared.type == "file":
        elsewhere = text.startswith(LOGICAL_PREFIX) or "://" in text
        return "" if elsewhere else str(Path(text.removeprefix("@")).absolute())
    if declared.type == TABLE:
        return "" if text.lstrip().startswith("[") else f"@{Path(text.removeprefix('@')).absolute()}"
    return f"@{Path(text[1:]).absolute()}" if text.startswith("@") and not text.startswith("@@") else ""


def _pattern_text(patterns: list[str], folder: str) -> str:
    named = [each if each.startswith(LOGICAL_PREFIX) else str(Path(folder, each).absolute()) for each in patterns]
    return named[0] if len(named) == 1 and not named[0].startswith("[") else msgspec.json.encode(named).decode()


async def changed_inputs(client: Client, earlier: CaseView, flow: Flow) -> dict[str, Value]:
    """The inputs whose files were changed since the case was started, stored anew; each is told of. A file that is not
    here any more is taken as it was."""
    found = await asyncio.to_thread(_changed_since_given, earlier, flow)
    for missing in found.missing:
        say(f"{missing}; {earlier.id} had it, and it is taken as it was", err=True)
    for name, source in found.sources.items():
        say(f"input {name} has changed since {earlier.id}: it is taken anew from {source}", err=True)
    return await upload_inputs(client, flow, found.values)


class _ChangedInputs(NamedTuple):
    """The inputs of a case that are others now, and the files that say so; and what cannot be looked at any more."""

    values: dict[str, Value]
    sources: dict[str, str]
    missing: list[str]


def _changed_since_given(earlier: CaseView, flow: Flow) -> _ChangedInputs:
    found = _ChangedInputs({}, {}, [])
    origin = earlier.origin or CaseOrigin()
    values: dict[str, Value] = {}
    sources = {name: text.removeprefix("@") for name, text in origin.inputs.items() if name in flow.inputs}
    for name in sources:
        try:
            values[name] = input_value(name, origin.inputs[name], flow.inputs[name])
        except RequestError as error:
            found.missing.append(error.message)
    if origin.inputs_file:
        try:
            in_file = values_in_file(origin.inputs_file, flow.inputs)
        except RequestError as error:
            found.missing.append(error.message)
            in_file = {}
        for name, value in in_file.items():
            if name in flow.inputs and name not in origin.inputs:
                values[name], sources[name] = value, origin.inputs_file
    for name, value in values.items():
        if not _is_same(value, earlier.inputs.get(name)):
            found.values[name], found.sources[name] = value, sources[name]
    return found


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


async def with_own_paths(client: Client, case: CaseView) -> CaseView:
    """The case without the paths that it came from, unless the caller has told them himself: whoever starts a case says
    what he likes, and they are read and written here."""
    if case.origin is None:
        return case
    return without_paths_of_others(case, (await client.me()).teller)


def without_paths_of_others(case: CaseView, teller: str) -> CaseView:
    """The same, for a caller whom the server knows by this name."""
    return case if is_told_by(case.origin, teller) else msgspec.structs.replace(case, origin=None)


def say_paths_of_others(before: CaseView, own: CaseView) -> None:
    """Tell that the files of a case are taken as they were, because the caller did not say where they came from."""
    origin = before.origin if own.origin is None else None
    if origin is not None and (origin.flow or origin.inputs or origin.inputs_file):
        teller = origin.told_by or "somebody else"
        say(f"{teller} said where the files of {before.id} came from: they are taken as they were", err=True)


async def demand_same_flow(client: Client, earlier: CaseView) -> None:
    """Refuse to let a case go on as it was if its flow file, or a file that the flow takes from its folder, is another
    now: who corrected it means that one."""
    if names := (await _changed_since(client, earlier)).names:
        raise Conflict(
            f"{_and(names)} changed since {earlier.id} was started: mendflow rerun {earlier.id} --from-failed takes"
            f" {'it' if len(names) == 1 else 'them'} as now, and with --unchanged everything stays as it was"
        )


async def corrected_flow(client: Client, earlier: CaseView) -> Flow | None:
    """The flow of a case as its file is now, if that file, or one that the flow takes from its folder, was changed
    since: who corrected it means that one. It is told. Raises BadFlow if the file has no flow any more."""
    names = (await _changed_since(client, earlier)).names
    file = earlier.origin.flow if earlier.origin is not None else ""
    if not names:
        await asyncio.to_thread(_demand_flow, file)
        return None
    say(
        f"{_and(names)} changed since {earlier.id} was started:"
        f" {'it is' if len(names) == 1 else 'they are'} taken as now; --unchanged takes everything as it was",
        err=True,
    )
    return await asyncio.to_thread(load_one, file)


def _demand_flow(file: str) -> None:
    """Raises BadFlow if there is a file that has no flow any more, and so was not compared."""
    if Path(file.partition(":")[0]).is_file():
        load_one(file)


async def given_inputs(client: Client, earlier: CaseView, flow: Flow) -> dict[str, Value]:
    """The inputs for a case of this flow: those of the earlier one that it was given, with files as they are now. A
    table that was a default then is the default of the flow now."""
    before = (await client.flow_of(earlier.id)).inputs
    kept = {
        name: value
        for name, value in earlier.inputs.items()
        if not (name in before and before[name].type == TABLE and value == before[name].default)
    }
    return {**kept, **await changed_inputs(client, earlier, flow)}


async def warn_of_changed_files(client: Client, case: CaseView) -> None:
    """Before a case goes on: it does so as it was started, which who edited a file meanwhile may not expect."""
    case = await with_own_paths(client, case)
    changed = await _changed_since(client, case)
    inputs = await _changed_input_files(client, case)
    if names := sorted({*changed.names, *inputs}):
        it = "it" if len(names) == 1 else "them"
        say(
            f"{case.id} goes on as it was started; since then {_and(names)} changed:"
            f" {_run_command(case)} starts a new case with {it}",
            err=True,
        )


async def has_changed_inputs(client: Client, case: CaseView) -> bool:
    """Whether a file that the case was given as an input is another now."""
    return bool(await _changed_input_files(client, case))


async def _changed_input_files(client: Client, case: CaseView) -> list[str]:
    if case.origin is None or not (case.origin.inputs or case.origin.inputs_file):
        return []
    found = await asyncio.to_thread(_changed_since_given, case, await client.flow_of(case.id))
    return sorted(set(found.sources.values()))


def _run_command(case: CaseView) -> str:
    """The command that starts another case like this one, from its files as they are now."""
    origin = case.origin or CaseOrigin()
    path, colon, name = origin.flow.partition(":")
    words = (
        ["mendflow", "run", relative(Path(path)) + colon + name] if origin.flow else ["mendflow", "start", case.flow]
    )
    words += [] if not origin.inputs_file else ["--inputs", relative(Path(origin.inputs_file))]
    for name, text in origin.inputs.items():
        words += ["--input", f"{name}={text}"]
    return shlex.join(words)


class _ChangedFiles(NamedTuple):
    """The paths of files that are others than when a case was started; `modules` are those that Python jobs import from
    beside their flow."""

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
    """The files that are others now; the flow's own if it is that one, or cannot be told. Files that are defaults are
    inputs of the case, and looked at with those that were given."""
    try:
        loaded = load_one(file)
        tables = _changed_tables(loaded, before)
        flow, before = _without_defaults(loaded, tables), _without_defaults(before, tables)
        refs = {path: reference_of(path) for path in local_files(flow)}
        code = {path: reference_of(path) for path in set(code_files(flow).values())}
        deployed = replace_files(with_code(flow, code), refs)
    except (RequestError, OSError):
        return _ChangedFiles()  # it is not here any more, or not a flow: nothing can be taken from it
    now, known = _comparable(deployed), _comparable(before)
    if now == known:
        return _ChangedFiles(sorted(tables.values()))
    stored = msgspec.json.encode(known).decode()
    names = {str(path) for path, ref in {**refs, **code}.items() if ref.sha256 not in stored}
    modules = {path for mark, path in _modules_of(deployed) if msgspec.json.encode(mark).decode() not in stored}
    own = file.partition(":")[0]
    if Path(own).resolve() not in code and _comparable(deployed, _CONTENTS) != _comparable(before, _CONTENTS):
        names.add(own)
    if not (names or modules):
        names.add(own)
    return _ChangedFiles(sorted({*names, *tables.values()}), sorted(modules - names))


def _without_defaults(flow: Flow, tables: Collection[str]) -> Flow:
    """The flow without the files that are defaults, and without the rows of these tables."""
    inputs = {
        name: replace(each, default=None, read_from="", read_digest="") if each.type == FILE or name in tables else each
        for name, each in flow.inputs.items()
    }
    return replace(flow, inputs=inputs)


def _changed_tables(now: Flow, before: Flow) -> dict[str, str]:
    """The tables beside the flow that its defaults were read from, and that are others now, by the inputs."""
    return {
        name: str(Path(now.folder, each.read_from))
        for name, each in now.inputs.items()
        if each.type == TABLE and each.read_from and each.read_digest != before.inputs.get(name, Input()).read_digest
    }


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
