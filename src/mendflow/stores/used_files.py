"""Which stored files were asked for a short while ago: nobody may remove those.

Whoever asks for a file may be about to refer to it, and that reference is on disk only later. So a use is noted, as an
empty file, and the file is looked at after that. Whoever removes a file puts it aside first and reads the notes then.
So either the remover sees the note, or the one who asks sees that the file is not in its place, and takes it back.
Neither waits for the other, and they may be different processes."""

import os
import time
from pathlib import Path
from typing import Final

from mendflow.core.model.retention import USE_NOTED_EVERY_MS

NOTED_FOR_S: Final = USE_NOTED_EVERY_MS / 1000
"""So long a use counts for later ones of the same process: they write no note of their own."""
NOTED_MAX: Final = 100_000


class UsedFiles:
    """Several threads may use it: each change is one step."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes
        self._noted: dict[str, float] = {}

    def is_noted(self, sha256: str) -> bool:
        """Whether this process has noted a use a moment ago."""
        return self._noted.get(sha256, -NOTED_FOR_S) > time.monotonic() - NOTED_FOR_S

    def note(self, sha256: str) -> None:
        """Somebody asks for this file. Raises OSError where that cannot be noted."""
        self._notes.mkdir(parents=True, exist_ok=True)
        path = self._notes / sha256
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
        os.utime(path)
        if len(self._noted) >= NOTED_MAX:
            self._noted.clear()
        self._noted[sha256] = time.monotonic()

    def used_since(self, sha256: str, moment_ms: int) -> bool:
        try:
            return (self._notes / sha256).stat().st_mtime_ns >= moment_ms * 1_000_000
        except FileNotFoundError:
            return False

    def forget_before(self, moment_ms: int) -> None:
        """Notes that are older protect nothing any more."""
        try:
            with os.scandir(self._notes) as found:
                old = [each.path for each in found if each.stat().st_mtime_ns < moment_ms * 1_000_000]
        except FileNotFoundError:
            return
        for path in old:
            Path(path).unlink(missing_ok=True)
