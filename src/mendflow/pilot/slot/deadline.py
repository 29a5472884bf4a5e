"""A kernel timer that kills this process at a given moment, even while it is stopped.

A stopped process can watch nothing, and the process that should notice may be stopped too. A kernel timer with SIGKILL
depends on nobody. A slot sets it to shortly after its job must be dead, and moves it with the lease; the job dies with
the slot (parent_death.py)."""

import ctypes
import signal
import sys
import time

_ABSOLUTE = 1
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class _Event(ctypes.Structure):
    """`struct sigevent`: a value, a signal number, how to notify (0: by that signal), and padding."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("room", ctypes.c_char * 48),
    )


class _Moment(ctypes.Structure):
    """`struct itimerspec`: an interval, unused here, and a moment, each in seconds and nanoseconds."""

    _fields_ = (("interval", ctypes.c_long * 2), ("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Deadline:
    """`at` is in milliseconds of the lease's clock; 0 while the timer is off."""

    def __init__(self) -> None:
        self.at = 0
        self._timer = ctypes.c_void_p()
        self._set = _function("timer_settime")
        create = _function("timer_create")
        event = _Event(signal=signal.SIGKILL, notify=0)
        if create is None or create(_CLOCK, ctypes.byref(event), ctypes.byref(self._timer)) != 0:
            self._set = None

    def lift(self) -> None:
        """Switch the timer off."""
        self.move(0)

    def move(self, at: int) -> None:
        """Be killed at that moment, not before."""
        if at == self.at or self._set is None:
            return
        self.at = at
        moment = _Moment((0, 0), at // 1000, at % 1000 * 1_000_000)
        self._set(self._timer, _ABSOLUTE, ctypes.byref(moment), None)


def _function(name: str) -> "ctypes._NamedFuncPointer | None":
    if sys.platform != "linux":
        return None
    for library in (None, "librt.so.1"):
        try:
            return getattr(ctypes.CDLL(library), name)  # type: ignore[no-any-return]  # what a library gives is not typed
        except (OSError, AttributeError):
            continue
    return None
