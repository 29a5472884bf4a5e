"""What an expression reads of a file that its reference does not hold: the parts of its name, as pathlib has them.

They are added to references only for the evaluation, and taken off again from what it gives: so a file that is handed
on is the same file, and has the same digest among the inputs of a job."""

from typing import Final

from mendflow.core.model.values import Value, file_of

FILE_PARTS: Final = ("stem", "suffix")


def names_file_parts(text: str) -> bool:
    """Whether an expression may read such a part: others are evaluated on their data as it is."""
    return any(part in text for part in FILE_PARTS)


def file_part(value: Value, member: str) -> str | None:
    """The name of a file without its last ending, or that ending with its dot; None if it is no file, or says itself
    what that is."""
    if member not in FILE_PARTS or not isinstance(value, dict) or member in value:
        return None
    file = file_of(value)
    if file is None:
        return None
    name = file.name.rstrip("/").rpartition("/")[2]
    dot = name.rfind(".")
    if not 0 < dot < len(name) - 1:  # a name that begins or ends with its only dot has no ending
        dot = len(name)
    return name[:dot] if member == "stem" else name[dot:]


def with_file_parts(value: Value) -> Value:
    """The same data, in which each file has its parts."""
    if isinstance(value, list):
        return [with_file_parts(part) for part in value]
    if not isinstance(value, dict):
        return value
    if file_of(value) is None:
        return {key: with_file_parts(part) for key, part in value.items()}
    parts = {member: part for member in FILE_PARTS if (part := file_part(value, member)) is not None}
    return {**value, **parts}


def without_file_parts(value: Value) -> Value:
    """The same data, in which files are as they were."""
    if isinstance(value, list):
        return [without_file_parts(part) for part in value]
    if not isinstance(value, dict):
        return value
    is_file = file_of(value) is not None
    return {
        key: part if is_file else without_file_parts(part)
        for key, part in value.items()
        if not (is_file and key in FILE_PARTS)
    }
