"""Retries for storage elements that are away. A job's files may be hours of work, and the element may be back in a
minute. So the pilot keeps the files and retries for as long as the element's settings say; then it uses another
element, if the job permits."""

import logging
import time
from collections.abc import Callable

from mendflow.core.model.data import StorageElement
from mendflow.core.model.faults import Fault
from mendflow.pilot.slot.messages import AttemptKey

log = logging.getLogger("mendflow.pilot")


class ElementUnavailable(Exception):
    """Retry after a pause."""


class ElementRetries:
    """What was tried for each attempt whose files are not all stored. Thread-safe, with one thread per attempt."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._since: dict[tuple[AttemptKey, str], float] = {}
        self._given_up: dict[AttemptKey, dict[str, Fault]] = {}

    def should_wait(self, key: AttemptKey, element: StorageElement, reason: str) -> bool:
        """Whether to keep waiting for an element that is away. The time counts from the first failure."""
        now = self._clock_s()
        if (key, element.name) not in self._since:
            log.warning(
                "the output files of %s wait: storage element %s refuses them: %s", key[0], element.name, reason
            )
        since = self._since.setdefault((key, element.name), now)
        return (now - since) * 1000 < element.patience_ms

    def give_up(self, key: AttemptKey, element: str, fault: Fault) -> bool:
        """Skip this element for this attempt; False if it was skipped before without success."""
        given_up = self._given_up.setdefault(key, {})
        known = element in given_up
        given_up[element] = fault
        return not known

    def avoided_elements(self, key: AttemptKey) -> tuple[str, ...]:
        return tuple(self._given_up.get(key, ()))

    def fault(self, key: AttemptKey) -> Fault | None:
        """Why the first element, the intended one, did not take a file."""
        return next(iter(self._given_up.get(key, {}).values()), None)

    def forget(self, key: AttemptKey) -> None:
        self._given_up.pop(key, None)
        for each in [each for each in list(self._since) if each[0] == key]:
            self._since.pop(each, None)
