"""The results of a slot, kept until an agent says that the server has acknowledged them.

They are always in memory. They are also written to disk if running the job again would cost more than writing, or if
there is no agent to report to."""

import msgspec

from mendflow.pilot.files.work_folder import WorkFolder, write_atomically
from mendflow.pilot.slot.messages import AttemptKey, FinishedAttempt

KEEP_RESULT_US = 100_000
"""Results of attempts that ran longer than this are written to disk at once."""

_ENCODER = msgspec.msgpack.Encoder()


class SlotResults:
    def __init__(self, work_folder: WorkFolder) -> None:
        self._work_folder = work_folder
        self._unjudged: dict[AttemptKey, FinishedAttempt] = {}
        self._stored: set[AttemptKey] = set()

    def add(self, done: FinishedAttempt, *, heard: bool) -> None:
        """`heard`: an agent is connected and gets the result."""
        self._unjudged[done.key] = done
        if done.ran_us > KEEP_RESULT_US or not heard:
            self._store(done)

    def all(self) -> list[FinishedAttempt]:
        return list(self._unjudged.values())

    def forget(self, key: AttemptKey) -> None:
        self._unjudged.pop(key, None)
        if key in self._stored:
            self._stored.discard(key)
            self._work_folder.result(*key).unlink(missing_ok=True)

    def store_all(self) -> None:
        for done in self._unjudged.values():
            self._store(done)

    def safe(self) -> bool:
        """Whether all results are on disk; writes again those that are not."""
        for key, done in self._unjudged.items():
            if key not in self._stored:
                self._store(done)
        return self._unjudged.keys() <= self._stored

    def _store(self, done: FinishedAttempt) -> None:
        try:
            write_atomically(self._work_folder.result(done.job, done.fence), _ENCODER.encode(done))
            self._stored.add(done.key)
        except FileNotFoundError:
            self._stored.add(done.key)  # the whole folder was removed: nobody will look for the result
        except OSError:
            pass  # the disk is full: the result stays in memory while this process lives
