"""What a job made may be hours of work, and a storage element that is away now may be back in a minute. So the pilot
keeps the files and tries again, for as long as the element asks it to; then elsewhere, if the job does not mind."""

import logging
import time
from collections.abc import Callable

from mendflow.core.model.data import StorageElement
from mendflow.core.model.faults import Fault
from mendflow.pilot.slot.messages import AttemptKey

log = logging.getLogger("mendflow.pilot")


class ElementUnavailable(Exception):
    """It is worth trying again, after a pause."""


class ElementRetries:
    """What was tried for each attempt whose files are not all safe yet. May be called from several threads, for an
    attempt from one at a time."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._since: dict[tuple[AttemptKey, str], float] = {}
        self._given_up: dict[AttemptKey, dict[str, Fault]] = {}

    def should_wait(self, key: AttemptKey, element: StorageElement, reason: str) -> bool:
        """Whether to wait longer for an element that is away. From the first failure on the time counts."""
        now = self._clock_s()
        if (key, element.name) not in self._since:
            log.warning(
                "the output files of %s wait: storage element %s refuses them: %s", key[0], element.name, reason
            )
        since = self._since.setdefault((key, element.name), now)
        return (now - since) * 1000 < element.patience_ms

    def give_up(self, key: AttemptKey, element: str, fault: Fault) -> bool:
        """Go by this element for this attempt; False if that was done already, and helped nothing."""
        given_up = self._given_up.setdefault(key, {})
        known = element in given_up
        given_up[element] = fault
        return not known

    def avoided_elements(self, key: AttemptKey) -> tuple[str, ...]:
        return tuple(self._given_up.get(key, ()))

    def fault(self, key: AttemptKey) -> Fault | None:
        """Why the first element did not take a file: the one that was meant for it."""
        return next(iter(self._given_up.get(key, {}).values()), None)

    def forget(self, key: AttemptKey) -> None:
        self._given_up.pop(key, None)
        for each in [each for each in list(self._since) if each[0] == key]:
            self._since.pop(each, None)
