"""Files as arguments of a job's function: each is brought into the job's folder, below the parameter's name, and the
function gets its Path there.

A file that is known while the flow is built stands in the flow by its path. What a handle gives is known only when the
job starts: then the argument names the folder, and what stands in it by the names that the engine gives."""

from pathlib import Path
from typing import Any, NamedTuple

from mendflow.core.data.folder_names import names_in_folder
from mendflow.core.data.path_arguments import CONTENT, PLACED
from mendflow.core.data.path_patterns import is_pattern
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.flow import FILE, FILES
from mendflow.core.model.values import Value
from mendflow.formats.input_files import NoSuchFiles, input_files_of, listed_files
from mendflow.formats.python.handles import Handle, template_of
from mendflow.formats.python.problems import bad_flow
from mendflow.formats.spelling import nearest_word


class FileArgument(NamedTuple):
    """The argument as the job gets it, and the inputs that bring its files."""

    argument: Value
    inputs: dict[str, Value]


def file_argument(name: str, value: Any, kind: str, owner: object, folder: Path) -> FileArgument | None:
    """The argument for a parameter if it is files; None if it is plain data. `kind` is what the annotation says, and
    `folder` is the flow's."""
    if isinstance(value, Handle):
        if not kind and value._holds not in (FILE, FILES, "path"):
            return None
        source = template_of(value, owner, f"`{name}`")
        return FileArgument({PLACED: name, CONTENT: source}, {f"{name}/": source})
    if isinstance(value, (Path, str)) and (kind or isinstance(value, Path)):
        text = text_beside(value, folder)
        if is_pattern(text) and not (folder / text).is_file():
            return listed(name, many(name, text, kind, folder))
        if (folder / text).is_dir():
            return FileArgument({PLACED: f"{name}/{Path(text).name}"}, folder_inputs(name, text, folder))
        require_file(text, folder)
        return FileArgument({PLACED: f"{name}/{Path(text).name}"}, {f"{name}/{Path(text).name}": text})
    if isinstance(value, (list, tuple)) and value and (kind == FILES or any(isinstance(each, Path) for each in value)):
        return file_list(name, value, owner, folder)
    return None


def file_list(name: str, values: list[Any] | tuple[Any, ...], owner: object, folder: Path) -> FileArgument:
    """A list of files; those of handles come one by one, each into a folder of its own."""
    if not any(isinstance(each, Handle) for each in values):
        return listed(name, sources_of(values, folder))
    parts = [file_argument(f"{name}/{number}", each, FILE, owner, folder) for number, each in enumerate(values)]
    arguments = [each.argument if each is not None else None for each in parts]
    return FileArgument(
        arguments, {path: source for each in parts if each is not None for path, source in each.inputs.items()}
    )


def folder_inputs(name: str, source: str, folder: Path) -> dict[str, Value]:
    """All files of a folder beside the flow."""
    try:
        return input_files_of({f"{name}/{Path(source).name}": f"{source}/"}, folder)
    except NoSuchFiles as missing:
        raise bad_flow(str(missing)) from None


def listed(name: str, sources: list[str]) -> FileArgument:
    paths = [f"{name}/{each}" for each in names_in_folder(list(sources))]
    return FileArgument([{PLACED: path} for path in paths], dict(zip(paths, sources, strict=True)))


def many(name: str, pattern: str, kind: str, folder: Path) -> list[str]:
    if kind == FILE:
        raise bad_flow(f"`{pattern}` may be several files, and `{name}` is one; annotate it as list[Path]")
    return matching(pattern, folder)


def sources_of(values: Any, folder: Path) -> list[str]:
    """The paths of files beside the flow, each checked, and patterns as what they match."""
    found: list[str] = []
    for each in values:
        if not isinstance(each, (Path, str)):
            raise bad_flow(f"a list of files has paths, not {each!r:.80}")
        text = text_beside(each, folder)
        if is_pattern(text) and not (folder / text).is_file():
            found += matching(text, folder)
            continue
        require_file(text, folder)
        found.append(text)
    return found


def matching(pattern: str, folder: Path) -> list[str]:
    try:
        return listed_files(pattern, folder)
    except NoSuchFiles as missing:
        raise bad_flow(str(missing)) from None


def require_file(text: str, folder: Path) -> None:
    """Refuse the path of a file that is not there; a URL or a logical file is looked for when the job runs."""
    path = folder / text
    if "://" in text or text.startswith(LOGICAL_PREFIX) or path.is_file():
        return
    others = (each.name for each in path.parent.iterdir()) if path.parent.is_dir() else ()
    raise bad_flow(f"there is no file `{text}` in {folder}", nearest_word(path.name, others))


def value_text(path: Path | str) -> str:
    return path.as_posix() if isinstance(path, Path) else path


def text_beside(path: Path | str, folder: Path) -> str:
    """The text of a path; of one below the flow's folder the part from there, which is stored with the flow."""
    inner = Path(path) if "://" not in str(path) else Path()
    return (
        inner.relative_to(folder).as_posix()
        if inner.is_absolute() and inner.is_relative_to(folder)
        else value_text(path)
    )


def as_paths(value: Any, kind: str) -> Any:
    """What is given for a parameter that is a file, as a Path, or as a list of them; anything else is left as it is."""
    if isinstance(value, (list, tuple)):
        return [as_paths(each, FILE) for each in value]
    path = Path(value) if isinstance(value, str) else value
    return [path] if kind == FILES and isinstance(path, Path) else path
