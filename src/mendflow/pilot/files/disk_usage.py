"""What a folder takes on its disk: the question whose files have filled it."""

import os

_BLOCK_BYTES = 512


def used_bytes(folder: str, *, enough: int) -> int:
    """What all files in a folder take, counted no further than `enough`. What cannot be read counts nothing. A list of
    what is still to be seen in the place of recursion: a folder is as deep as its maker likes."""
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
