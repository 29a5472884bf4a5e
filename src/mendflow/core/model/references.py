"""References inside a job's outputs: what a job may refer to.

Wherever a value goes, a reference in it is believed: a later job gets the file, a report links to it. So what a job
gives is checked once, when it is reported. It may hand on files that it was given and files that it made; it cannot
name others, and it cannot make up a spilled value, which only its pilot does."""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from mendflow.core.model.values import FileRef, Value, file_of, spilled_file

FILE_KEY: Final = "$file"
SPILLED_KEY: Final = "$spilled"
SEALED_KEY: Final = "$too-large"
"""What expressions close a spilled value up under; no value that anybody gives has it."""

NAME_CHARS_MAX: Final = 4096
_SHOWN_CHARS: Final = 80


class NamedFile(NamedTuple):
    """What a reference says about where a file is: its content, and its name in the catalogue if it has one."""

    sha256: str
    bytes: int
    logical: str


def named_file(ref: FileRef) -> NamedFile:
    return NamedFile(ref.sha256, ref.bytes, ref.logical)


def references_in(value: Value) -> Iterator[tuple[str, dict[str, Value]]]:
    """The maps in a value that stand for something stored, or say so, each with the place where it is."""
    pending: list[tuple[str, Value]] = [("", value)]
    while pending:
        place, each = pending.pop()
        if isinstance(each, list):
            pending += reversed([(f"{place}[{number}]", part) for number, part in enumerate(each)])
        elif isinstance(each, dict):
            if FILE_KEY in each or SPILLED_KEY in each or SEALED_KEY in each:
                yield place, each
            else:
                pending += reversed([(f"{place}.{key}" if place else key, part) for key, part in each.items()])


def referenced_files(*values: Value) -> Iterator[NamedFile]:
    """The files that these values refer to."""
    for _, reference in references_in(list(values)):
        if (ref := file_of(reference)) is not None:
            yield named_file(ref)


def ref_flaw(ref: FileRef) -> str:
    """Why this is no reference to a file, or nothing."""
    if file_of(ref.as_value()) is None:
        return f"{ref.sha256!r:.{_SHOWN_CHARS}} of {ref.bytes} bytes is no stored file"
    parts = ref.name.split("/")
    if len(ref.name) > NAME_CHARS_MAX or "\0" in ref.name or ".." in parts or (len(parts) > 1 and "" in parts):
        return f"a file cannot be called {ref.name!r:.{_SHOWN_CHARS}}"
    return ""


def malformed_reference(value: Value, *, spilled: bool = False) -> str:
    """What looks like a reference in a value of a job and is none, or nothing. `spilled`: its pilot has spilled what is
    too large."""
    for place, reference in references_in(value):
        if spilled and len(reference) == 2 and spilled_file(reference) is not None:
            continue
        where = _where(place)
        if FILE_KEY not in reference:
            key = SPILLED_KEY if SPILLED_KEY in reference else SEALED_KEY
            return f"{where} has the key `{key}`, which mendflow uses itself; call it something else"
        if (ref := file_of(reference)) is None or ref_flaw(ref):
            return (
                f"{where} has the key `{FILE_KEY}` like a reference to a file, and is none;"
                " call it something else, or declare the file under `files:`"
            )
    return ""


def foreign_reference(value: Value, may_name: Collection[NamedFile]) -> str:
    """Which file a value of a job refers to that is not among those that it was given and those that it made, or
    nothing."""
    for place, reference in references_in(value):
        ref = file_of(reference)
        if ref is not None and named_file(ref) not in may_name:
            return (
                f"{_where(place)} refers to the file {ref.sha256[:12]}..., which the job neither was given nor made;"
                " give it to the job as an input"
            )
    return ""


def made_up_reference(value: Value, *sources: Value) -> str:
    """Which stored file a value refers to, and none of its sources, or nothing: an expression can write any map."""
    given = {each.get(FILE_KEY) or each.get(SPILLED_KEY) for _, each in references_in(list(sources))}
    for place, reference in references_in(value):
        digest = reference.get(FILE_KEY) or reference.get(SPILLED_KEY)
        if digest not in given and (file_of(reference) is not None or spilled_file(reference) is not None):
            return f"{_where(place)} refers to the file {str(digest)[:12]}..., which nobody has given; name it itself"
    return ""


def _where(place: str) -> str:
    return f"`{place}`" if place else "it"
