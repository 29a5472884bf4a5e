"""Which stored files are known to be whole: of each, the state in which it was written or hashed.

This is remembered in memory. Of a large file it is also noted on disk, because hashing it takes long and `mendflow run`
is a new process each time. Such a note saves hashing when a file is only asked for; before a process reads a file for
the first time, it hashes it whatever the note says, since a disk can damage a file that nobody has written to."""

import os
from pathlib import Path
from typing import Final

LARGE_BYTES: Final = 1 << 20
VERIFIED_MAX: Final = 100_000
"""How many files are remembered as whole: one that is forgotten is hashed again."""

FileState = tuple[int, int, int, int]
"""Inode, size, time of modification and time of change: the same as long as nobody has written to a file. Of a file
that had another link when it was noted the time of change is `ANY_CHANGE`: it changes when that link goes."""
ANY_CHANGE: Final = 0


def state_of(place: Path) -> FileState:
    return state_by(place.stat())


def state_by(status: os.stat_result) -> FileState:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class VerifiedFiles:
    """Several threads may use it: each change is one step."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes
        self._states: dict[str, FileState] = {}

    def remember(self, sha256: str, state: FileState) -> None:
        """This file is whole, and its name lasts: nobody needs to store it again."""
        self._states.pop(sha256, None)
        self._states[sha256] = state
        while len(self._states) > VERIFIED_MAX:
            self._states.pop(next(iter(self._states)), None)
        if state[1] > LARGE_BYTES:
            self._note(sha256, state)

    def holds(self, sha256: str, state: FileState) -> bool:
        """Whether this process wrote or hashed the file in this state."""
        return _is_same(self._states.get(sha256), state)

    def was_whole(self, sha256: str, state: FileState) -> bool:
        """Whether any process did."""
        if self.holds(sha256, state):
            return True
        try:
            return state[1] > LARGE_BYTES and _is_same(_state((self._notes / sha256).read_text()), state)
        except (OSError, ValueError):
            return False

    def forget(self, sha256: str) -> None:
        """The file was removed."""
        self._states.pop(sha256, None)
        (self._notes / sha256).unlink(missing_ok=True)

    def _note(self, sha256: str, state: FileState) -> None:
        """A note that cannot be written, or is lost, costs hashing the file once more."""
        draft = self._notes / f"{sha256}.{os.getpid()}"
        try:
            self._notes.mkdir(exist_ok=True)
            draft.write_text(_text(state))
            os.replace(draft, self._notes / sha256)
        except OSError:
            draft.unlink(missing_ok=True)


def _is_same(known: FileState | None, state: FileState) -> bool:
    return known is not None and known[:3] == state[:3] and known[3] in (ANY_CHANGE, state[3])


def _state(text: str) -> FileState:
    inode, size, modified_ns, changed_ns = map(int, text.split())
    return inode, size, modified_ns, changed_ns


def _text(state: FileState) -> str:
    return " ".join(map(str, state))
