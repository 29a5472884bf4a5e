"""Folders in memory for what a job reads and no disk is to keep: one for each pilot's work folder, in it one for each
attempt. Whoever knows the attempt's folder knows where its folder in memory is, so a slot, the next agent and the guard
each can remove what another has made."""

import hashlib
import os
import stat
from typing import Final

from mendflow.pilot.files.work_folder import remove_tree

MOUNTS: Final = "/proc/self/mounts"
SHARED: Final = "/dev/shm"
"""Containers have this folder of the machine, too."""


def attempt_memory(folder: str) -> str:
    """Where the folder in memory of an attempt is; empty if it has none."""
    found = (path for path in _places(folder) if os.path.isdir(path))
    return next(found, "")


def make_attempt_memory(folder: str, *, shared: bool, passable: bool) -> str:
    """Make the folder in memory of an attempt; empty where there is none. `shared`: containers may see where it lies.
    `passable`: other accounts get to the one in it that is theirs."""
    in_memory = _memory_mounts()
    for place in _places(folder):
        root, own = os.path.dirname(os.path.dirname(place)), os.path.dirname(place)
        if root not in in_memory or (root == SHARED and not shared):
            continue
        try:
            os.makedirs(own, 0o700, exist_ok=True)
            if not _is_ours(own):
                continue  # somebody else has made it, to read what we would write
            os.chmod(own, 0o711 if passable else 0o700)
            os.makedirs(place, 0o700, exist_ok=True)
        except OSError:
            continue
        return place
    return ""


def remove_attempt_memory(folder: str) -> None:
    """Remove what an attempt has in memory, and what is left of its pilot's if it was the last."""
    for place in _places(folder):
        own = os.path.dirname(place)
        if os.path.isdir(own) and _is_ours(own):
            remove_tree(place)
            _remove_if_empty(own)


def remove_memory(work: str, *, but: frozenset[str] = frozenset()) -> None:
    """Remove what all attempts of a pilot's work folder have in memory, but for those of these names."""
    for own in _homes(work):
        if not os.path.isdir(own) or not _is_ours(own):
            continue
        for name in os.listdir(own):
            if name not in but:
                remove_tree(os.path.join(own, name))
        _remove_if_empty(own)


def _places(folder: str) -> list[str]:
    attempts, name = os.path.split(os.path.abspath(folder))
    return [os.path.join(own, name) for own in _homes(os.path.dirname(attempts))]


def _homes(work: str) -> list[str]:
    """Where a pilot's folder in memory may be. That of a user may be removed when the user logs out, so it is the
    second choice."""
    user = os.geteuid()
    mark = hashlib.sha256(os.path.realpath(work).encode(errors="surrogateescape")).hexdigest()[:16]
    roots = (SHARED, f"/run/user/{user}", *(("/run",) if user == 0 else ()))
    return [f"{root}/mendflow-{user}-{mark}" for root in roots]


def _memory_mounts() -> set[str]:
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            return {words[1] for words in map(str.split, file) if words[2] in ("tmpfs", "ramfs")}
    except OSError:
        return set()


def _is_ours(path: str) -> bool:
    status = os.lstat(path)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _remove_if_empty(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:
        pass  # other attempts have something there
