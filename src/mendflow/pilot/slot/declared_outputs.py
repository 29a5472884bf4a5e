"""Checks declared output files: each must be a plain file in the job's own folder.

A job may put anything in their place. Whatever is not a file would keep whoever reads it waiting, or is not there any
more when it is read; and a link to somewhere else gives as the job's own work what is not. A folder, or a pattern, is
the list of its files in the order of their paths."""

import glob
import os
import stat
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from mendflow.core.data.path_patterns import fixed_folder, is_pattern
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.pilot.slot.messages import FileList

LISTED_MAX: Final = 10_000
"""So many files may be in a list of files."""

PILOTS_OWN: Final = ".mendflow."
"""How files begin that the pilot itself leaves in a job's folder."""

NAMED_CHARS_MAX: Final = 100
_KINDS = {
    stat.S_IFDIR: "is a folder, not a file; end its path with `/` to have the files in it",
    stat.S_IFIFO: "is a named pipe, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
}


class DeclaredOutputs(NamedTuple):
    """What there is of it: single files, and lists of files; or the fault of a job that did not leave them."""

    files: dict[str, str]
    lists: dict[str, FileList]
    fault: Fault | None = None


class _Missing(Exception):
    """What is wrong with a declared output."""


def find_outputs(
    files: dict[str, str], folder: str, lists: Collection[str] = (), inputs: Collection[str] = ()
) -> DeclaredOutputs:
    """The files that a job has left. `lists` are the names of those that are folders or patterns, `inputs` the paths of
    what was given to the job: a pattern does not mean these."""
    single: dict[str, str] = {}
    many: dict[str, FileList] = {}
    for name, path in files.items():
        try:
            if name in lists:
                many[name] = FileList(fixed_folder(path), _listed(path, folder, inputs))
            else:
                _check(path, folder)
                single[name] = path
        except (_Missing, OSError) as wrong:
            return DeclaredOutputs({}, {}, _fault(name, path, str(wrong)))
    return DeclaredOutputs(single, many)


def _fault(name: str, path: str, wrong: str) -> Fault:
    return Fault(
        name="missingOutput",
        category=Category.OUTPUT,
        message=f"the declared output {name} ({path}) {wrong}",
        stage=AttemptStage.STAGE_OUT,
        file=path,
        data={"output": name},
    )


def _check(path: str, folder: str) -> None:
    if wrong := _wrong_with(path, folder):
        raise _Missing(wrong)


def _listed(path: str, folder: str, inputs: Collection[str]) -> list[str]:
    if is_pattern(path):
        given = frozenset(inputs)
        found = {each for match in glob.glob(path, root_dir=folder, recursive=True) for each in _below(match, folder)}
        paths = sorted(each for each in found if each not in given)
        wrong = "matches no file that the job has made"
    else:
        paths = sorted(_below(path.rstrip("/"), folder, wants_folder=True))
        wrong = "is an empty folder"
    if not paths:
        raise _Missing(wrong)
    if len(paths) > LISTED_MAX:
        raise _Missing(f"has {len(paths):,} files, more than {LISTED_MAX:,}: pack them into one, with tar for example")
    for each in paths:
        try:
            each.encode()
        except UnicodeEncodeError:
            raise _Missing(f"has a file whose name is not UTF-8: {each!r}") from None
        if flaw := _wrong_with(each, folder):
            raise _Missing(f"has {each}, which {flaw}")
    return paths


def _below(path: str, folder: str, *, wants_folder: bool = False) -> Iterator[str]:
    """The file of that path, or the files below the folder of that path."""
    path = path.rstrip("/")
    top = os.path.join(folder, path)
    if not os.path.isdir(top) or os.path.islink(top):
        if wants_folder:
            raise _Missing("is not there" if not os.path.lexists(top) else "is not a folder")
        if not os.path.basename(path).startswith(PILOTS_OWN):
            yield os.path.normpath(path)
        return
    for at, folders, names in os.walk(top, onerror=_refuse_unreadable):
        for name in folders:
            if os.path.islink(link := os.path.join(at, name)):
                raise _Missing(f"has {os.path.relpath(link, folder)}, which is a link to a folder: copy it instead")
        yield from (os.path.relpath(os.path.join(at, name), folder) for name in names)


def _refuse_unreadable(error: OSError) -> None:
    """A folder that cannot be listed would be left out without a word."""
    raise _Missing(f"has a folder that cannot be listed ({error.strerror}): {str(error.filename)[-NAMED_CHARS_MAX:]}")


def _wrong_with(path: str, folder: str) -> str:
    full = os.path.join(folder, path)
    try:
        kind = stat.S_IFMT(os.stat(full).st_mode)
    except OSError as error:
        if os.path.islink(full):
            return f"is a link to {os.readlink(full)}, which leads nowhere"
        return "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
    if kind != stat.S_IFREG:
        return _KINDS.get(kind, "is not a file")
    real, own = os.path.realpath(full), os.path.realpath(folder)
    if not real.startswith(own + os.sep):
        return f"is a link to {real}, outside of the job's folder: copy the file instead"
    return ""
