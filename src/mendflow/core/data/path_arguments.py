"""Files among the arguments of a function: an argument that stands for paths in the job's folder.

`{"$path": "sample/a.txt"}` is that path. `{"$path": "parts", "of": FILES}` is where the files stand that are known only
when the job starts, one or a list, by the names that they have in that folder."""

from typing import Final

from mendflow.core.data.folder_names import files_in, names_in_folder
from mendflow.core.model.values import Value, file_of

PLACED: Final = "$path"
CONTENT: Final = "of"
_PLAIN_FILE: Final = frozenset({"$file", "bytes", "name", "logical", "executable", "folder"})
"""What a file has to say of itself. With more beside it, it stands for something else, which is in the file."""


def paths_of_argument(argument: dict[str, Value]) -> str | list[str | None] | None:
    """The path that the argument stands for, or the paths of a list in its order; None where there is no file."""
    folder = str(argument[PLACED])
    if CONTENT not in argument:
        return folder
    files = files_in(argument[CONTENT])
    names = names_in_folder(files)
    paths = [None if each is None else f"{folder}/{name}" for name, each in zip(names, files, strict=True)]
    return paths if isinstance(argument[CONTENT], list) else paths[0]


def with_placed_files(argument: Value, folder: str) -> tuple[Value, dict[str, Value]]:
    """The argument with each file in it as its path in the job's folder, and the inputs that bring them there. A list
    of files is the list of their paths; of a map, or a list with other things, each member stands in a folder of its
    own."""
    if _is_file(argument) or _is_list_of_files(argument):
        return {PLACED: folder, CONTENT: argument}, {f"{folder}/": argument}
    inputs: dict[str, Value] = {}
    if isinstance(argument, dict) and not any(key.startswith("$") for key in argument):
        members = {}
        for number, (key, each) in enumerate(argument.items()):
            members[key], more = with_placed_files(each, f"{folder}/{number}")
            inputs |= more
        return members, inputs
    if isinstance(argument, list):
        elements = []
        for number, each in enumerate(argument):
            element, more = with_placed_files(each, f"{folder}/{number}")
            elements.append(element)
            inputs |= more
        return elements, inputs
    return argument, inputs


def _is_file(value: Value) -> bool:
    return isinstance(value, dict) and value.keys() <= _PLAIN_FILE and file_of(value) is not None


def _is_list_of_files(value: Value) -> bool:
    """Some may be missing: of iterations that failed and may fail."""
    return (
        isinstance(value, list) and any(map(_is_file, value)) and all(each is None or _is_file(each) for each in value)
    )
