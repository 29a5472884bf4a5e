"""Files beside a flow that a job takes in: one by its path, or all of a folder or a pattern, as they are when the flow
is read.

A folder, whose path ends with `/`, is all files below it; a pattern is what it matches, in the order of the paths. So
the flow that is deployed names each file, and a re-run sees which of them have changed."""

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from mendflow.core.data.path_patterns import fixed_folder, is_own_folder, is_pattern, means_many, name_below
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.values import Value

LISTED_MAX = 10_000


class NoSuchFiles(ValueError):
    """A folder or a pattern gives no files; the sentence says why."""


def means_several(source: object, folder: Path) -> bool:
    """Whether a source means several files beside the flow. A file that has the signs of a pattern in its name is that
    file."""
    if not isinstance(source, str) or "${{" in source or "://" in source or source.startswith(LOGICAL_PREFIX):
        return False
    return means_many(source) and not (folder / source).is_file()


def input_files_of(inputs: dict[str, Value], folder: Path) -> dict[str, Value]:
    """The inputs of a job with each folder and each pattern as its files. Where the path in the job's folder is the
    source itself, each file stands there as it does here; else it stands below that path, by its name below the folder
    of the source. Raises NoSuchFiles."""
    found: dict[str, Value] = {}
    for path, source in inputs.items():
        if not means_several(source, folder):
            found[path] = source
            continue
        top = fixed_folder(source)
        for each in listed_files(source, folder):
            below = "" if is_own_folder(path) else f"{path.rstrip('/')}/"
            found[each if path == source else below + name_below(each, top)] = each
    return found


def listed_files(source: str, folder: Path) -> list[str]:
    """The paths that a folder or a pattern means, from the flow's folder, in order. Raises NoSuchFiles."""
    if is_pattern(source):
        matches = glob.glob(source, root_dir=folder, recursive=True)
        paths = sorted({each for match in matches for each in _below(match, folder)})
        reason = f"no file in {folder} matches `{source}`"
    else:
        if not (folder / source).is_dir():
            raise NoSuchFiles(f"there is no folder `{source}` in {folder}")
        paths = sorted(_below(source, folder))
        reason = f"there is no file in the folder `{source}`"
    if not paths:
        raise NoSuchFiles(reason)
    if len(paths) > LISTED_MAX:
        raise NoSuchFiles(f"`{source}` means {len(paths):,} files, more than {LISTED_MAX:,}: pack them into one")
    return paths


def _below(path: str, folder: Path) -> Iterator[str]:
    path = os.path.normpath(path)
    if not (folder / path).is_dir():
        yield path
        return
    for at, _, names in os.walk(folder / path):
        yield from (os.path.normpath(os.path.join(path, os.path.relpath(at, folder / path), name)) for name in names)
