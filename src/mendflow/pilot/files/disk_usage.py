"""How much disk a folder uses, to find out whose files have filled the disk."""

import os

_BLOCK_BYTES = 512


def used_bytes(folder: str, *, enough: int) -> int:
    """Bytes of all files in a folder, counted up to `enough`. Unreadable entries count as 0. Iterative, because a job
    may nest folders deeper than Python's recursion limit."""
    total = 0
    pending = [folder]
    while pending and total < enough:
        try:
            entries = os.scandir(pending.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                total += _own_bytes(entry)
                if total >= enough:
                    break
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return total


def _own_bytes(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    except OSError:
        return 0
