"""What files are called in a folder of a job's inputs, where a whole list of them stands."""

from mendflow.core.model.values import Value, file_of


def files_in(given: Value) -> list[Value]:
    """The files of what is given for a folder: one, a list of them, or lists of lists, which a loop over a job gives
    that leaves lists."""
    listed = given if isinstance(given, list) else [given]
    return [one for each in listed for one in (each if isinstance(each, list) else [each])]


def names_in_folder(files: list[Value]) -> list[str]:
    """What files are called in a folder: their own names if these differ, so that they can be told apart by them; else
    each has its number in the list before its name, with as many digits as the last, so that they sort as the list. A
    file that comes from a folder has that folder's folders in its name."""
    names = [_inner_name(kept.name) if (kept := file_of(each)) else str(each).rpartition("/")[2] for each in files]
    given = [name for name, each in zip(names, files, strict=True) if each is not None]
    if len(set(given)) == len(given) and not {"", ".", ".."} & set(given):
        return names
    digits = len(str(len(files) - 1))
    return [f"{number:0{digits}}-{name}" for number, name in enumerate(names)]


def _inner_name(name: str) -> str:
    """A name that may have folders. If these lead elsewhere, its last part alone."""
    *folders, last = name.split("/")
    return last if {"", ".", ".."} & {*folders} else name
