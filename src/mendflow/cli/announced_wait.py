"""A command that waits says for what, once that is noticed."""

import time

from mendflow.cli.printing import say

SAY_AFTER_S = 2.0


class AnnouncedWait:
    """`reason` is what a person is told, once."""

    def __init__(self, reason: str, most_s: float) -> None:
        self._reason, self._most_s = reason, most_s
        self._began = time.monotonic()
        self._said = False

    def is_over(self) -> bool:
        waited_s = time.monotonic() - self._began
        if SAY_AFTER_S < waited_s <= self._most_s and not self._said:
            self._said = True
            say(f"{self._reason}; waiting for it, {self._most_s:.0f} s at most", err=True)
        return waited_s > self._most_s
