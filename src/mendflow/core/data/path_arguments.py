"""Files among the arguments of a function: an argument that stands for paths in the job's folder.

`{"$path": "sample/a.txt"}` is that path. `{"$path": "parts", "of": FILES}` is where the files stand that are known only
when the job starts, one or a list, by the names that they have in that folder."""

from typing import Final

from mendflow.core.data.folder_names import files_in, names_in_folder
from mendflow.core.model.values import Value

PLACED: Final = "$path"
CONTENT: Final = "of"


def paths_of_argument(argument: dict[str, Value]) -> str | list[str | None] | None:
    """The path that the argument stands for, or the paths of a list in its order; None where there is no file."""
    folder = str(argument[PLACED])
    if CONTENT not in argument:
        return folder
    files = files_in(argument[CONTENT])
    names = names_in_folder(files)
    paths = [None if each is None else f"{folder}/{name}" for name, each in zip(names, files, strict=True)]
    return paths if isinstance(argument[CONTENT], list) else paths[0]
