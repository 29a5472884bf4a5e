"""Deploys a flow with what it needs: the code of its Python functions, and the files that its jobs name by a plain
path.

So pilots and servers on other machines have them, and a rerun detects changes. A missing file is reported before
anything is uploaded."""

import asyncio
import os
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from mendflow.cli.traces import upload_generated
from mendflow.client import Client
from mendflow.client.files import reference_of
from mendflow.core.data.table_files import paths_in, with_files
from mendflow.core.engine.files_beside import paths_beside
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.flow import FILE, Flow, Input, JobActivity, Stage
from mendflow.core.model.flow_files import FlowSource
from mendflow.core.model.software import Software
from mendflow.core.model.templates import Template
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import FlowView
from mendflow.formats.python.sources import ModulesBeside, code_files, module_bundles, with_code
from mendflow.lazy import lazy_pattern

COMMAND_WORD: Final = lazy_pattern(r"""[^\s'"`;|&<>()$={}]+""")
UNSTAGED_MAX: Final = 10


def demand_project(flow: FlowView, project: str) -> None:
    """Refuse a project that is said of a flow which is in another: its cases and schedules are where it is."""
    if project and flow.project != project:
        raise InvalidRequest(
            f"flow {flow.name} belongs to project {flow.project}, and so does what it starts; leave --project {project}"
            " out, or name a flow of that project: mendflow flows lists them",
            field="project",
        )


async def deploy(
    client: Client, flow: Flow, *, triggers: bool = False, project: str = "", source: FlowSource | None = None
) -> FlowView:
    """Store code and files on the server, then the flow that refers to them, with its own file. With `triggers`, what
    it has under `on` takes effect; else it stays as it is there. A new flow belongs to the project."""
    made = replace(await with_stored_files(client, flow), source=source)
    give = client.deploy_with_triggers if triggers else client.deploy
    return await give(made, project=project)


async def with_stored_files(client: Client, flow: Flow) -> Flow:
    """Store code and files on the server; the flow that refers to them there."""
    check_files(flow)
    code = {path: await client.upload(path) for path in set(code_files(flow).values())}
    bundles = module_bundles(flow)
    await _upload_bundles(client, bundles)
    files = {path: await client.upload(path) for path in local_files(flow)}
    await upload_generated(client, flow)
    return _made(flow, code, files, bundles)


def with_references(flow: Flow) -> Flow:
    """The flow as it would be deployed, with files that are known by their content and not stored anywhere."""
    check_files(flow)
    code = {path: reference_of(path) for path in set(code_files(flow).values())}
    return _made(flow, code, {path: reference_of(path) for path in local_files(flow)}, module_bundles(flow))


def _made(
    flow: Flow, code: dict[Path, FileRef], files: dict[Path, FileRef], bundles: dict[Path, ModulesBeside]
) -> Flow:
    return name_unstaged_files(replace_files(with_code(flow, code, bundles), files))


async def _upload_bundles(client: Client, bundles: dict[Path, ModulesBeside]) -> None:
    """Store the modules beside the flow's functions, so that a case has them as they are now."""
    with tempfile.TemporaryDirectory(prefix="mendflow-modules-") as folder:
        for bundle in bundles.values():
            ref = bundle.ref
            if ref is not None and not await client.has(ref.sha256):
                path = Path(folder, "modules")
                await asyncio.to_thread(path.write_bytes, bundle.content)
                await client.upload(path, ref.name)


def check_files(flow: Flow) -> None:
    """Refuse the flow if a file that it names is missing."""
    missing = sorted({str(path) for path in local_files(flow) if not path.is_file()})
    if missing:
        raise NotFound(f"the flow {flow.name} names files that do not exist: {', '.join(missing)}; nothing was started")


class FlowFile(NamedTuple):
    """A file that a flow names: what it is there, and the input whose default it is, if it is one's."""

    path: Path
    flow: Flow
    what: str
    input: str = ""


def local_files(flow: Flow) -> set[Path]:
    """The files that jobs of the flow, and of the flows it calls, read by a plain path, and those that tables name."""
    return {each.path for each in named_files(flow)}


def named_files(flow: Flow) -> Iterator[FlowFile]:
    """The same files, with where they are named."""
    for each in flows_within(flow):
        for name, declared in each.inputs.items():
            paths = [path for path in paths_in(declared.default, declared.columns) if _is_plain(path, each.folder)]
            for path in paths:
                yield FlowFile(Path(each.folder, path), each, f"in the table that is the default of input {name}", name)
            if (file := default_file(declared, each.folder)) is not None:
                yield FlowFile(file, each, f"the default of input {name}", name)
        for step in _steps_of(each):
            yield from (FlowFile(path, each, what) for path, what in _sources_of(step, each.folder))


def flows_within(flow: Flow) -> Iterator[Flow]:
    """The flow, and all flows that came with it."""
    yield flow
    for each in _parts_of(flow):
        if isinstance(each, Flow):
            yield from flows_within(each)


def _steps_of(flow: Flow) -> Iterator[JobActivity | Stage]:
    return (each for each in _parts_of(flow) if isinstance(each, JobActivity | Stage))


def _parts_of(flow: Flow) -> Iterator[Any]:
    """All that stands in a flow, but not in the flows that came with it."""
    pending: list[Any] = [getattr(flow, name) for name in flow.__struct_fields__]
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending += value
        elif isinstance(value, msgspec.Struct):
            yield value
            if not isinstance(value, Flow):
                pending += [getattr(value, name) for name in value.__struct_fields__]


def _sources_of(step: JobActivity | Stage, folder: str) -> Iterator[tuple[Path, str]]:
    sources = step.inputs if isinstance(step, JobActivity) else step.files
    for source in sources.values():
        if _is_plain(source, folder):
            yield Path(folder, str(source)), f"a file of {step.name}"
    if isinstance(step, JobActivity) and step.software is not None:
        for name in step.software.sources.values():
            yield Path(folder, name), f"the software of {step.name}"


def default_file(input: Input, folder: str) -> Path | None:
    """The file that is the default of an input. One that is not here may never be asked for: a case can be given
    another."""
    if input.type != FILE or not _is_path(input.default) or not folder:
        return None
    path = Path(folder, str(input.default))
    return path if path.is_file() else None


def changed_defaults(flow: Flow, given: Collection[str]) -> dict[str, Path]:
    """The files that defaults of a deployed flow were read from, and that are others here by now, by the inputs that
    are not given."""
    found: dict[str, Path] = {}
    for name, each in flow.inputs.items():
        path = Path(flow.folder, each.read_from)
        is_here = bool(each.read_from and flow.folder) and name not in given and path.is_file()
        if is_here and reference_of(path).sha256 != each.read_digest:
            found[name] = path
    return found


def replace_files(flow: Flow, kept: dict[Path, FileRef]) -> Flow:
    """The flow with each local file replaced by the stored one."""

    def taken(sources: dict[str, Template], folder: str) -> dict[str, Template]:
        return {
            path: kept[Path(folder, source)].as_value() if _is_plain(source, folder) else source
            for path, source in sources.items()
        }

    def with_files_of(software: Software | None, folder: str) -> Software | None:
        if software is None or not software.sources:
            return software
        files = {name: kept[Path(folder, source)] for name, source in software.sources.items()}
        return replace(software, sources={}, files=files)

    def with_stored(input: Input, folder: str) -> Input:
        if (path := default_file(input, folder)) is not None:
            ref = kept[path]
            return replace(input, default=ref.as_value(), read_from=str(input.default), read_digest=ref.sha256)
        paths = [path for path in paths_in(input.default, input.columns) if _is_plain(path, folder)]
        files = {path: kept[Path(folder, path)].as_value() for path in paths}
        return replace(input, default=with_files(input.default, input.columns, files)) if files else input

    def sent_paths(flow: Flow) -> dict[str, str]:
        steps = [each.inputs if isinstance(each, JobActivity) else each.files for each in _steps_of(flow)]
        sources = [source for step in steps for source in step.values() if _is_plain(source, flow.folder)]
        return paths_beside({str(source): kept[Path(flow.folder, str(source))] for source in sources})

    def changed(value: Any, folder: str) -> Any:
        if isinstance(value, Flow):
            folder = value.folder
            beside = sent_paths(value)
            inputs = {name: with_stored(each, folder) for name, each in value.inputs.items()}
            value = replace(value, inputs=inputs, beside=beside)
        if isinstance(value, JobActivity):
            return replace(value, inputs=taken(value.inputs, folder), software=with_files_of(value.software, folder))
        if isinstance(value, Stage):
            return replace(value, files=taken(value.files, folder))
        if isinstance(value, tuple):
            return tuple(changed(part, folder) for part in value)
        if isinstance(value, msgspec.Struct):
            fields = {name: changed(getattr(value, name), folder) for name in value.__struct_fields__}
            return replace(value, **fields)
        return value

    result: Flow = changed(flow, flow.folder) if kept else flow
    return result


def name_unstaged_files(flow: Flow) -> Flow:
    """The flow whose shell jobs know which files beside it their commands name without having them as inputs. A job
    runs in a folder of its own: should it fail, its author is told which file was left behind."""

    def changed(value: Any, beside: frozenset[str]) -> Any:
        if isinstance(value, Flow):
            beside = _names_in(value.folder)
        if isinstance(value, JobActivity):
            return replace(value, unstaged=found) if beside and (found := _unstaged(value, beside)) else value
        if isinstance(value, tuple):
            parts = tuple(changed(part, beside) for part in value)
            return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
        if isinstance(value, msgspec.Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            other = {name: new for name, old in fields.items() if (new := changed(old, beside)) is not old}
            return replace(value, **other) if other else value
        return value

    result: Flow = changed(flow, frozenset())
    return result


def _names_in(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder)) if folder else frozenset()
    except OSError:
        return frozenset()


def _unstaged(job: JobActivity, beside: frozenset[str]) -> tuple[str, ...]:
    """The words of the command that are names of files beside the flow, or begin with one, and no inputs."""
    words = (word.removeprefix("./") for word in COMMAND_WORD.findall(job.command or ""))
    named = dict.fromkeys(word for word in words if word.partition("/")[0] in beside)
    brought = {path.partition("/")[0] for path in (*job.inputs, *job.replicas)}
    return tuple(word for word in named if word.partition("/")[0] not in brought)[:UNSTAGED_MAX]


def _is_plain(source: object, folder: str) -> bool:
    """Whether it is a literal path below the flow's folder: no expression, no URL, no logical name."""
    return bool(folder) and _is_path(source) and not PurePosixPath(str(source)).is_absolute()


def _is_path(source: object) -> bool:
    if not isinstance(source, str) or not source or "${{" in source or "://" in source:
        return False
    return not source.startswith(LOGICAL_PREFIX)
