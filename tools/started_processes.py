"""Ends whatever was started in a stretch of a program, each process by its id.

Killing the parent is not enough: pilots of a site have sessions of their own, and go on without the server that started
them."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from signal import SIGKILL, SIGTERM

from mendflow.pilot.slot.processes import become_reaper, children, descendants, send

GRACE_S = 10.0
PAUSE_S = 0.1


@contextmanager
def all_ended() -> Iterator[None]:
    """Whatever is started within is gone at the end, also if that is an error. Processes whose parents have ended
    become children of this one."""
    become_reaper()
    before = set(children(os.getpid()))
    try:
        yield
    finally:
        send(_started(before), SIGTERM)
        kill_at = time.monotonic() + GRACE_S
        while started := _started(before):
            if time.monotonic() > kill_at:
                send([each for one in started for each in (one, *descendants(one))], SIGKILL)
            time.sleep(PAUSE_S)


def _started(before: set[int]) -> list[int]:
    """Our children that were not there before, and have not ended."""
    started = [each for each in children(os.getpid()) if each not in before]
    return [each for each in started if not _has_ended(each)]


def _has_ended(child: int) -> bool:
    """Whether a child has ended; it is waited for then."""
    with suppress(ChildProcessError):
        return os.waitpid(child, os.WNOHANG)[0] == child
    return True
