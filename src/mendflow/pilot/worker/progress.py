"""Two numbers in shared memory between a slot and its worker: the call that has started, and the last that may start.

The worker writes `begun` and then reads `last`. To take calls back, the slot stops the worker, reads `begun` and writes
`last`. Since the worker is stopped meanwhile, each call has either started, and the slot knows it, or never will."""

import mmap
import os
import struct

_NUMBERS = struct.Struct("=qq")
_ONE = struct.Struct("=q")
NO_LIMIT = (1 << 62) - 1


class CallProgress:
    def __init__(self, path: str, *, fresh: bool = False) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, _NUMBERS.size)
            self._map = mmap.mmap(descriptor, _NUMBERS.size)
        finally:
            os.close(descriptor)
        if fresh:
            _NUMBERS.pack_into(self._map, 0, 0, NO_LIMIT)

    def begin(self, number: int) -> bool:
        """Record that a call starts; False if it may not."""
        _ONE.pack_into(self._map, 0, number)
        return bool(number <= _ONE.unpack_from(self._map, 8)[0])

    @property
    def begun(self) -> int:
        return int(_ONE.unpack_from(self._map, 0)[0])

    def allow_until(self, number: int) -> None:
        _ONE.pack_into(self._map, 8, number)
