"""Checkpoints: what is in the log of a SQLite file is copied into the file, so that the log can begin anew.

SQLite does that by itself, within the commit that makes the log too long: it writes and syncs megabytes, and all who
write wait for a tenth of a second or more. Here a thread copies while commits go on, as often as it takes until little
is left. What is left is then copied after a commit: as long as nobody else writes, nothing is added, and the log can
begin anew."""

import os
import sqlite3
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Final

FRAMES_MAX: Final = 4_000
"""A checkpoint begins when the log has so many frames more, a page each: 16 MB."""

FRAMES_LEFT: Final = 100
COPIES_MAX: Final = 5
CHECKPOINT: Final = "PRAGMA wal_checkpoint(PASSIVE)"
_FRAMES_PLACE: Final = 16
_FRAMES_BYTES: Final = 4
"""Where the index of the log, a file that all connections share, says how many frames it has."""


class Checkpointer:
    """Its descriptors stay open as long as there is a connection: whoever closes one gives up all locks that its
    process has on the file."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA synchronous = FULL")
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._index = os.open(f"{path}-shm", os.O_RDONLY | os.O_CLOEXEC)
        self._before = 0  # how many frames there were at the end of the last checkpoint
        self._is_copying = False
        self.is_nearly_done = False
        self._work: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sqlite-checkpoints", daemon=True)
        self._thread.start()

    def after_commit(self) -> None:
        """Begin a checkpoint if one is due."""
        frames = self.frames()
        if frames < self._before:
            self._before = 0  # the log has begun anew
        if not self._is_copying and not self.is_nearly_done and frames - self._before >= FRAMES_MAX:
            self._is_copying = True
            self._work.put(True)

    def complete(self, writer: sqlite3.Connection) -> None:
        """Copy what is left, when `writer` has committed and before it writes again. One that fails is due again when
        the log has grown, and not after each commit."""
        try:
            writer.execute(CHECKPOINT).fetchall()
        finally:
            self._before = self.frames()
            self.is_nearly_done = False

    def frames(self) -> int:
        """How many frames the log has."""
        return int.from_bytes(os.pread(self._index, _FRAMES_BYTES, _FRAMES_PLACE), sys.byteorder)

    def stop(self) -> None:
        self._work.put(False)
        self._thread.join()
        self._connection.close()

    def close(self) -> None:
        """Call it when all connections are closed."""
        os.close(self._index)
        os.close(self._file)

    def _run(self) -> None:
        while self._work.get():
            try:
                self._copy()
                self.is_nearly_done = True
            except (sqlite3.Error, OSError):
                self._before = self.frames()  # as when the disk is full: the next one is tried later
            self._is_copying = False

    def _copy(self) -> None:
        for _ in range(COPIES_MAX):
            _, _, copied = self._connection.execute(CHECKPOINT).fetchone()
            os.fsync(self._file)
            if self.frames() - copied <= FRAMES_LEFT:
                return
