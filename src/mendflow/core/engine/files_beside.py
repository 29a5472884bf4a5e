"""Files beside a flow's file, as its model has them: stored ones that were sent with it, and paths of those that were
not."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeGuard

from mendflow.core.data.path_patterns import means_many
from mendflow.core.engine.plan import walk_activities
from mendflow.core.expressions import is_template
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.flow import FILE, FILES, UNSENT_FOLDER, Flow, JobActivity, Stage
from mendflow.core.model.flow_files import FileBeside
from mendflow.core.model.templates import Template
from mendflow.core.model.values import FileRef, Value, file_of

AT_START: Final = "leave the default out, and give the files when a case is started"


def stored_beside(flow: Flow) -> list[FileBeside]:
    """The stored files that stand in the flow, each once for each path that it was sent for. Of one that no path is
    known of, as in flows of before, it is the name."""
    found = [(each.read_from, source) for each in flow.inputs.values() for source in _parts(each.default)]
    found += [("", source) for _, source in _sources(flow)]
    stored = [
        (path, ref)
        for read_from, source in found
        if (ref := file_of(source)) is not None
        for path in ([read_from] if read_from else _paths_of(ref, flow))
    ]
    return [FileBeside(path=path, file=ref) for path, ref in dict.fromkeys(sorted(stored, key=lambda each: each[0]))]


def _paths_of(file: FileRef, flow: Flow) -> list[str]:
    """What it was sent for; files of other names may have the same content."""
    paths = [path for path, digest in flow.beside.items() if digest == file.sha256]
    return [path for path in paths if path.rpartition("/")[2] == file.name] or paths or [file.name]


def paths_beside(files: Mapping[str, FileRef]) -> dict[str, str]:
    """What a flow keeps of the paths that its files were sent for; nothing if names alone say it."""
    found = {_plain(path): ref.sha256 for path, ref in sorted(files.items()) if is_beside(path)}
    return found if any("/" in path for path in found) else {}


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def unsent_files(flow: Flow) -> list[str]:
    """A sentence for each path of a file beside a flow's text that came without its folder, and that nothing stands
    for."""
    if flow.folder != UNSENT_FOLDER:
        return []
    told = [
        f"job {step}: {source} is beside the flow's file, and was not sent: add it in the web app, or deploy with"
        " `mendflow flows deploy FILE`"
        for step, source in _sources(flow)
        if is_beside(source)
    ]
    for name, declared in flow.inputs.items():
        paths = _parts(declared.default) if declared.type in (FILE, FILES) else []
        for path in filter(is_beside, paths):
            how = "list the paths that it means, and add these files" if means_many(path) else "add it"
            told.append(
                f"input {name}: {path}, its default, is beside the flow's file, and was not sent: {how} in the web app,"
                f" or {AT_START}"
            )
    return list(dict.fromkeys(told))


def _parts(default: Value) -> list[Value]:
    return default if isinstance(default, list) else [default]


def _sources(flow: Flow) -> Iterator[tuple[str, Template]]:
    for step in walk_activities(flow):
        if isinstance(step, JobActivity):
            yield from ((step.label or step.name, source) for source in step.inputs.values())
        elif isinstance(step, Stage):
            yield from ((step.label or step.name, source) for source in step.files.values())


def is_beside(source: object) -> TypeGuard[str]:
    """Whether a source is a path from the folder of the flow's file: no expression, no URL, no logical name."""
    if not isinstance(source, str) or not source:
        return False
    return not (is_template(source) or "://" in source or source.startswith((LOGICAL_PREFIX, "/")))
